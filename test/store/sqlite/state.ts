import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { onTestFinished } from "vitest";
import type { Instant } from "../../../src/domain/units.ts";
import type { Opened } from "../../../src/domain/store.ts";
import { openState, type OpenOptions } from "../../../src/store/sqlite/open.ts";
import type { SqliteStore } from "../../../src/store/sqlite/store.ts";
import { NOON } from "./words.ts";

/** An empty directory that goes with the test. */
export function aDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "store-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** Opens as the daemon does, at noon unless told. */
export const open = (
  directory: string,
  options: Partial<OpenOptions> & { at?: Instant } = {},
): Opened<SqliteStore> =>
  openState(directory, {
    now: () => options.at ?? NOON,
    random: randomBytes,
    keys: { site: null, proof: null },
    log: pino({ level: "silent" }),
    ...options,
  });

/** As `open`, where nothing but success will do; closed with the test. */
export function opened(directory: string, options: Partial<OpenOptions> & { at?: Instant } = {}) {
  const state = open(directory, options);
  if (!state.ok) throw new Error(state.reason);
  onTestFinished(() => state.store[Symbol.dispose]());
  return state;
}
