import { surroundings } from "../app.ts";
import type { Config } from "../config/schema.ts";
import type { Broken } from "../store/fault.ts";
import { nothingYet, type Opened, openState } from "../store/open.ts";
import { askDaemon } from "./daemon.ts";
import { logger } from "./logger.ts";

/** For what the daemon does a little at a time: an event of a whole fleet, or the whole record, is a lot to read. */
export const LONG_PATIENCE_MS = 600_000;

/** What a verb needs of the configuration to open the state. */
export type StateOfSite = Pick<Config, "state" | "keys">;

/**
 * What the running daemon answers, or, where none runs, what `read` finds in the stored state: the same, in its JSON.
 * A text says why it cannot be had, unless `onBroken` makes something of a record that does not hold. `path`: of the
 * control socket (DESIGN 6.4).
 */
export async function askOrRead<T>(
  site: StateOfSite,
  path: string,
  read: (opened: Opened & { readonly ok: true }) => T,
  patienceMs?: number,
  onBroken?: (broken: Broken) => T,
): Promise<T | string> {
  const answer = await askDaemon(site.state, "GET", path, null, patienceMs);
  if (answer.kind === "absent") return withState(site, read, onBroken);
  if (answer.kind === "failed") return answer.reason;
  if (answer.status === 200) return answer.body as T;
  const { error } = answer.body as { readonly error?: string };
  return `the running daemon refuses (${answer.status}): ${error ?? path}`;
}

/** Without a daemon a verb opens the state itself, and makes none where there is none; a text says why it cannot. */
export function withState<T>(
  { state, keys }: StateOfSite,
  ask: (opened: Opened & { readonly ok: true }) => T,
  onBroken?: (broken: Broken) => T,
): T | string {
  const nothing = nothingYet(state);
  if (nothing !== null) return nothing;
  const { now, randomBytes, log } = surroundings(logger(2, "error"));
  const opened = openState(state, { now, random: randomBytes, keys, log, damaged: "refuse" });
  if (!opened.ok && opened.broken !== undefined && onBroken !== undefined) return onBroken(opened.broken);
  if (!opened.ok) return `the state cannot be read: ${opened.reason}`;
  using _store = opened.store;
  return ask(opened);
}
