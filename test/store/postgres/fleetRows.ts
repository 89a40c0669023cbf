import { randomBytes } from "node:crypto";
import { pino } from "pino";
import { onTestFinished } from "vitest";

import { Database, type Row } from "../../../src/store/postgres/database.ts";
import { FleetInbox } from "../../../src/store/postgres/fleetInbox.ts";
import { FleetSites } from "../../../src/store/postgres/fleetSites.ts";
import { FleetWork } from "../../../src/store/postgres/fleetWork.ts";
import { migrate } from "../../../src/store/postgres/schema.ts";
import type { Postgres } from "../../support/postgres.ts";

export interface FleetOfTest {
  readonly database: Database;
  /** What a process of this name has of the fleet. `length`: of its leases, ms. */
  readonly process: (
    name: string,
    length?: number,
    monotonic?: () => number,
  ) => { readonly inbox: FleetInbox; readonly work: FleetWork };
  readonly sites: FleetSites;
  readonly sql: (text: string, values?: readonly unknown[]) => Promise<readonly Row[]>;
}

/** An empty fleet in a schema of its own. */
export async function aFleetOf(
  cluster: Postgres,
  operatorKeys: readonly Buffer[] = [randomBytes(32)],
): Promise<FleetOfTest> {
  const schema = `fleet_${randomBytes(6).toString("hex")}`;
  const log = pino({ level: "silent" });
  const database = new Database({ url: () => cluster.url, schema, patience: 10_000, log });
  onTestFinished(() => database[Symbol.asyncDispose]());
  const unusable = await migrate(database, schema);
  if (unusable !== null) throw new Error(unusable);
  return {
    database,
    process: (name, length = 30_000, monotonic = () => performance.now()) => ({
      inbox: new FleetInbox(database, { process: name, length }, () => operatorKeys),
      work: new FleetWork(database, { process: name, length }, monotonic),
    }),
    sites: new FleetSites(database, () => operatorKeys, randomBytes),
    sql: (text, values = []) => database.query(text, values),
  };
}
