import { existsSync } from "node:fs";
import { join } from "node:path";

import { surroundings } from "../app.ts";
import { DATABASE } from "../store/database.ts";
import { type Opened, openState } from "../store/open.ts";
import { logger } from "./logger.ts";

/** Without a daemon a verb opens the state itself, and makes none where there is none; a text says why it cannot. */
export function withState<T>(state: string, ask: (opened: Opened & { readonly ok: true }) => T): T | string {
  if (!existsSync(join(state, DATABASE))) return `there is no state in ${state}: nothing has run there yet`;
  const { now, randomBytes, log } = surroundings(logger(2, "error"));
  const opened = openState(state, { now, random: randomBytes, log, damaged: "refuse" });
  if (!opened.ok) return `the state cannot be read: ${opened.reason}`;
  using _store = opened.store;
  return ask(opened);
}
