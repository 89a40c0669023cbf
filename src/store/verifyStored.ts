import type { Steps } from "../core/steps.ts";
import { instant, iso } from "../core/units.ts";
import { verifyingBodies } from "./bodies.ts";
import type { Connection } from "./connection.ts";
import type { StoredEpoch } from "./epoch.ts";
import type { Broken } from "./fault.ts";
import { isOurReading } from "./readings.ts";
import { unsignedThrough } from "./signReadings.ts";
import { verifying, type Verified } from "./verify.ts";

/** Readings checked in one step: some milliseconds on a small gateway. */
const PAGE = 500;

/** How many readings were authenticated, by the message, and how many are from before they were. */
interface VerifiedReadings {
  readonly ok: true;
  readonly readings: number;
  readonly unsigned: number;
}

/** The whole record, then what is stored beside it. */
export function* verifyingState(
  open: () => Connection,
  siteKey: Buffer,
  epoch: () => StoredEpoch | null,
): Steps<Verified> {
  const record = yield* verifying(open, siteKey, epoch);
  if (!record.ok) return record;
  const stored = yield* verifyingStored(open, siteKey);
  return stored.ok ? { ...record, ...stored } : stored;
}

/**
 * What is stored beside the record: events, holds, what is owed to the partner, and readings. It can be left after each
 * step. `open` is asked in each step, as a fault may have the database opened anew.
 */
function* verifyingStored(open: () => Connection, siteKey: Buffer): Steps<VerifiedReadings | Broken> {
  const body = yield* verifyingBodies(open, siteKey);
  if (body !== null) return { ok: false, seq: null, reason: body };
  let [readings, unsigned] = [0, 0];
  let after: readonly [number, string, number, number] = [Number.MIN_SAFE_INTEGER, "", 0, 0];
  for (;;) {
    const connection = open();
    const trust = { siteKey, unsignedThrough: unsignedThrough(connection, siteKey) };
    const page = connection.database
      .prepare(
        `SELECT * FROM reading WHERE (minute, charger, at, delay) > (?, ?, ?, ?)
         ORDER BY minute, charger, at, delay LIMIT ${PAGE}`,
      )
      .all(...after);
    for (const row of page) {
      const [minute, charger, at, delay] = [row["minute"], row["charger"], row["at"], row["delay"]];
      if (!isOurReading(trust, row))
        return {
          ok: false,
          seq: null,
          reason: `the stored reading of ${String(charger)} at ${iso(instant(Number(at)))} was changed`,
        };
      if (row["mac"] === null) unsigned += 1;
      else readings += 1;
      after = [Number(minute), String(charger), Number(at), Number(delay)];
    }
    if (page.length < PAGE) return { ok: true, readings, unsigned };
    yield;
  }
}
