import type { Change } from "../../domain/changes.ts";
import type { Instant } from "../../domain/units.ts";
import { signBodies } from "./bodies.ts";
import type { OpenedDatabase } from "./openDatabase.ts";
import { inTransaction } from "./disk.ts";
import { sealed } from "./chain.ts";
import { upgradeReadings } from "./readings.ts";

/**
 * The head becomes that of this run, and what an earlier version stored is signed as it is: both or neither. Answers
 * how many bodies were signed; null: the state is not from an earlier version. Throws SQLite errors.
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

/** On record, as nobody can tell any more what was changed before. */
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
