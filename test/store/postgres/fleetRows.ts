import { randomBytes } from "node:crypto";
import { Client } from "pg";
import { pino } from "pino";
import { onTestFinished } from "vitest";

import { Database, type Row } from "../../../src/store/postgres/database.ts";
import { FleetList } from "../../../src/store/postgres/fleetList.ts";
import { FleetInbox } from "../../../src/store/postgres/fleetInbox.ts";
import { FleetSites } from "../../../src/store/postgres/fleetSites.ts";
import { FleetWork } from "../../../src/store/postgres/fleetWork.ts";
import { migrate } from "../../../src/store/postgres/schema.ts";
import type { Postgres } from "../../support/postgres.ts";
import { waitFor } from "../../support/waitFor.ts";

export interface FleetOfTest {
  readonly database: Database;
  readonly schema: string;
  /** What a process of this name has of the fleet. `length`: of its leases, ms. */
  readonly process: (
    name: string,
    length?: number,
    monotonic?: () => number,
  ) => { readonly inbox: FleetInbox; readonly work: FleetWork };
  readonly sites: FleetSites;
  readonly list: FleetList;
  readonly sql: (text: string, values?: readonly unknown[]) => Promise<readonly Row[]>;
  /** Another connection locks the rows of a SELECT ... FOR UPDATE. `isAwaited`: a statement waits for them. */
  readonly lockedRow: (
    select: string,
  ) => Promise<{ readonly isAwaited: () => Promise<unknown>; readonly release: () => Promise<void> }>;
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
    schema,
    process: (name, length = 30_000, monotonic = () => performance.now()) => ({
      inbox: new FleetInbox(database, { process: name, length }, () => operatorKeys),
      work: new FleetWork(database, { process: name, length }, monotonic),
    }),
    list: new FleetList(database),
    sites: new FleetSites(database, () => operatorKeys, randomBytes),
    sql: (text, values = []) => database.query(text, values),
    lockedRow: async (select) => {
      const client = new Client({ connectionString: cluster.url, options: `-c search_path=${schema}` });
      await client.connect();
      onTestFinished(() => client.end());
      await client.query("BEGIN");
      await client.query(select);
      const waits = "SELECT 1 FROM pg_locks WHERE NOT granted AND $1 = ANY (pg_blocking_pids(pid))";
      const { rows } = await client.query("SELECT pg_backend_pid() AS pid");
      return {
        isAwaited: () => waitFor(async () => (await client.query(waits, [rows[0].pid])).rows.length > 0),
        release: async () => void (await client.query("COMMIT")),
      };
    },
  };
}
