import type { Change } from "../../domain/changes.ts";
import type { Instant } from "../../domain/units.ts";
import { signBodies } from "./bodies.ts";
import type { OpenedDatabase } from "./openDatabase.ts";
import { inTransaction } from "./disk.ts";
import { sealed } from "./chain.ts";
import { upgradeReadings } from "./readings.ts";

/**
 * Seals the head for this run and signs the data of an earlier version as it is: both or neither. Returns the
 * number of signed bodies. Null: not from an earlier version. Throws SQLite errors.
 */
export function upgradeBodies(
  { connection, head, isUpgrade }: OpenedDatabase,
  siteKey: Buffer,
  epoch: number,
): number | null {
  let signed: number | null = null;
  inTransaction(connection.database, () => {
    if (isUpgrade) {
      signed = signBodies(connection, siteKey);
      upgradeReadings(connection, siteKey);
    }
    connection.putMeta.run("head", sealed(siteKey, head, epoch));
  });
  return signed;
}

/** Goes on record, because changes before this moment cannot be detected any more. */
export const upgraded = (at: Instant, signed: number): Change => ({
  kind: "audit",
  entry: {
    at,
    kind: "daemon",
    charger: null,
    vehicle: null,
    event: null,
    command: null,
    words: `this state was written by an earlier version: its ${signed} stored events, holds and reports, and its readings, are signed from now on as they were found`,
    facts: { signed },
  },
});
