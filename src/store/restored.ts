import type { CommandRecord } from "../core/control/command.ts";
import { type Connection, metaValue } from "./connection.ts";

/** A state that was put back from a copy: what chargers were told between the copy and then is not on record. */
export interface Restored {
  /** Of the first run on it. An epoch, as no clock can be wrong about it. */
  readonly epoch: number;
  /** The record says so. */
  readonly isTold: boolean;
}

const TOLD = " told";

/** Null: it is no copy. */
export function restoredIn(connection: Connection): Restored | null {
  const value = metaValue(connection, "restored");
  return value === null ? null : { epoch: Number.parseInt(value, 10), isTold: value.endsWith(TOLD) };
}

export function markRestored(connection: Connection, epoch: number, isTold: boolean): void {
  connection.putMeta.run("restored", `${epoch}${isTold ? TOLD : ""}`);
}

/** Without the releases from before the copy was put back: their chargers may have been limited since. */
export const knownSince = (
  commands: readonly CommandRecord[],
  restored: Restored | null,
): readonly CommandRecord[] =>
  restored === null
    ? commands
    : commands.filter(({ command }) => command.desired.kind !== "release" || command.epoch >= restored.epoch);
