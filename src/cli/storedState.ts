import { surroundings } from "../app.ts";
import type { Broken } from "../store/fault.ts";
import { nothingYet, type Opened, openState } from "../store/open.ts";
import { askDaemon } from "./daemon.ts";
import { logger } from "./logger.ts";

/** For what the daemon does a little at a time: an event of a whole fleet, or the whole record, is a lot to read. */
export const LONG_PATIENCE_MS = 600_000;

/**
 * What the running daemon answers, or, where none runs, what `read` finds in the stored state: the same, in its JSON.
 * A text says why it cannot be had, unless `onBroken` makes something of a record that does not hold. `path`: of the
 * control socket (DESIGN 6.4).
 */
export async function askOrRead<T>(
  state: string,
  path: string,
  read: (opened: Opened & { readonly ok: true }) => T,
  patienceMs?: number,
  onBroken?: (broken: Broken) => T,
): Promise<T | string> {
  const answer = await askDaemon(state, "GET", path, null, patienceMs);
  if (answer.kind === "absent") return withState(state, read, onBroken);
  if (answer.kind === "failed") return answer.reason;
  if (answer.status === 200) return answer.body as T;
  const { error } = answer.body as { readonly error?: string };
  return `the running daemon refuses (${answer.status}): ${error ?? path}`;
}

/** Without a daemon a verb opens the state itself, and makes none where there is none; a text says why it cannot. */
export function withState<T>(
  state: string,
  ask: (opened: Opened & { readonly ok: true }) => T,
  onBroken?: (broken: Broken) => T,
): T | string {
  const nothing = nothingYet(state);
  if (nothing !== null) return nothing;
  const { now, randomBytes, log } = surroundings(logger(2, "error"));
  const opened = openState(state, { now, random: randomBytes, log, damaged: "refuse" });
  if (!opened.ok && opened.broken !== undefined && onBroken !== undefined) return onBroken(opened.broken);
  if (!opened.ok) return `the state cannot be read: ${opened.reason}`;
  using _store = opened.store;
  return ask(opened);
}
