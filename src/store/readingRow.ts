import { createHmac } from "node:crypto";
import type { SQLOutputValue } from "node:sqlite";
import type { Logger } from "pino";

import type { MeasuredKind, Reading, Measured, Stated, CommandReading } from "../domain/reading.ts";
import type { ChargerState } from "../domain/telemetry.ts";
import type { OnForeign } from "../domain/store.ts";
import { type ChargerId, instant, iso, vehicleId } from "../domain/units.ts";

const MINUTE = 60_000;

const DAY = 86_400_000;

/** Part of the primary key: readings of one minute lie together. */
export const minuteOf = (at: number): number => Math.floor(at / MINUTE);

export const dayOf = (at: number): number => Math.floor(at / DAY);

const MEASURED: readonly MeasuredKind[] = ["power", "energy", "current", "voltage", "soc", "limit"];

/** Bits of the column `marks`; one for each implausible kind follows. */
const OWN_CLOCK = 1;

const implausible = (kind: MeasuredKind): number => 2 << MEASURED.indexOf(kind);

/** The rows of these readings: one for each message. */
export function readingRows(readings: readonly Reading[]): readonly ReadingRow[] {
  const groups = Map.groupBy(readings, ({ charger, at, receivedAt }) => `${at} ${receivedAt} ${charger}`);
  return [...groups.values()].map((group) => {
    const [first] = group as [Reading, ...Reading[]];
    const { charger, vehicle, at, receivedAt } = first;
    const state = group.find(({ kind }) => kind === "state")?.value;
    const command = group.find((reading) => reading.kind === "setpoint");
    const marks = group.reduce((bits, reading) => bits | markOf(reading), 0);
    const values = MEASURED.map((wanted) => {
      const value = group.find(({ kind }) => kind === wanted)?.value;
      return typeof value === "number" ? value : null;
    });
    const commandText =
      command === undefined ? null : JSON.stringify([command.value, command.until, command.event]);
    return [
      minuteOf(at),
      text(charger),
      at,
      receivedAt - at,
      vehicle === null ? null : text(vehicle),
      marks,
      ...values,
      typeof state === "string" ? state : null,
      commandText,
    ];
  });
}

const MARKS = 5;

/** Two rows of one message as one. A newer value replaces the stored one. The marks of both hold. */
export function mergedRow(stored: ReadingRow, [minute, ...rest]: ReadingRow): ReadingRow {
  const cells = rest.map((value, index) => {
    const before = stored[index + 1] ?? null;
    return index + 1 === MARKS ? Number(value) | Number(before) : (value ?? before);
  });
  return [minute, ...cells];
}

/** The columns in their order, without the HMAC. */
export type ReadingRow = readonly [minute: number, ...(string | number | null)[]];

/** `limit` is an SQL keyword. */
const columnOf = (kind: MeasuredKind): string => (kind === "limit" ? "level" : kind);

export const COLUMNS = [
  "charger",
  "at",
  "delay",
  "vehicle",
  "marks",
  ...MEASURED.map(columnOf),
  "state",
  "told",
];

/** A row by the names of its columns. */
export const namedRow = ([minute, ...cells]: ReadingRow): Record<string, string | number | null> => ({
  minute,
  ...Object.fromEntries(COLUMNS.map((name, index) => [name, cells[index] ?? null])),
});

/** Half of an HMAC is enough, and each row has one. */
const MAC_BYTES = 16;

export const readingMac = (siteKey: Buffer, row: ReadingRow): Buffer =>
  createHmac("sha256", siteKey)
    .update(`reading\n${JSON.stringify(row)}`)
    .digest()
    .subarray(0, MAC_BYTES);

/** SQLite stores no lone surrogate: the stored id must equal the queried id. */
export const text = (id: string): string => id.toWellFormed();

function markOf(reading: Reading): number {
  if (reading.quality === "received") return OWN_CLOCK;
  const { kind } = reading;
  if (reading.quality === "good" || kind === "state" || kind === "setpoint") return 0;
  return implausible(kind);
}

/** Readings of a stored row. */
export function readingsIn(charger: ChargerId, row: Record<string, SQLOutputValue>): readonly Reading[] {
  const at = instant(Number(row["at"]));
  const vehicle = row["vehicle"] === null ? null : vehicleId(String(row["vehicle"]));
  const receivedAt = instant(at + Number(row["delay"]));
  const stamp = { charger, vehicle, at, receivedAt };
  const marks = Number(row["marks"]);
  const quality = (marks & OWN_CLOCK) === 0 ? "good" : "received";
  const measured = MEASURED.flatMap((kind): Measured[] => {
    const value = row[columnOf(kind)];
    if (typeof value !== "number") return [];
    const doubt = (marks & implausible(kind)) === 0 ? quality : "implausible";
    return [{ ...stamp, kind, value, source: kind === "soc" ? "vehicle" : "charger", quality: doubt }];
  });
  const { state, told: command } = row;
  // Only values of a Stated reading were written there.
  const value = state as ChargerState;
  const stated: Stated = { ...stamp, kind: "state", value, source: "charger", quality };
  return [
    ...measured,
    ...(state === null ? [] : [stated]),
    ...(typeof command === "string" ? [commandReadingIn(command, stamp)] : []),
  ];
}

function commandReadingIn(
  stored: string,
  stamp: Pick<CommandReading, "charger" | "vehicle" | "at" | "receivedAt">,
): CommandReading {
  const [value, until, event]: [CommandReading["value"], CommandReading["until"], CommandReading["event"]] =
    JSON.parse(stored);
  return { ...stamp, kind: "setpoint", value, until, event, source: "command", quality: "good" };
}

/** Logs that another program changed stored readings, once for each charger. */
export function foreignLog(log: Logger): OnForeign {
  const logged = new Set<ChargerId>();
  return ({ charger, at }) => {
    if (logged.has(charger)) return;
    logged.add(charger);
    log.error(
      { charger, at: iso(at) },
      "stored readings of this charger were changed by another program: those are left out of reports and proofs",
    );
  };
}
