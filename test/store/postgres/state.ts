import { randomBytes, randomUUID } from "node:crypto";
import { pino } from "pino";
import { afterAll, beforeAll, onTestFinished } from "vitest";

import type { Opened } from "../../../src/domain/store.ts";
import { openPostgres, type OpenPostgresOptions } from "../../../src/store/postgres/open.ts";
import type { PostgresStore } from "../../../src/store/postgres/store.ts";
import { Postgres } from "../../support/postgres.ts";
import { aDirectory } from "../sqlite/state.ts";
import { NOON } from "../sqlite/words.ts";

/** A cluster for the tests of a file. */
export function aCluster(): () => Postgres {
  let cluster: Postgres | null = null;
  beforeAll(async () => {
    cluster = await Postgres.start();
  }, 60_000);
  afterAll(() => cluster?.[Symbol.asyncDispose]());
  return () => {
    if (cluster === null) throw new Error("no cluster yet");
    return cluster;
  };
}

export type NewProcess = (options?: Partial<OpenPostgresOptions>) => Promise<Opened<PostgresStore>>;

/** A site of its own in the database. Each call opens it as another process would, at noon unless told. */
export function aSite(cluster: () => Postgres): NewProcess {
  const site = `depot-${randomUUID()}`;
  const directory = aDirectory();
  return async (options = {}) => {
    const opened = await openPostgres({
      url: () => cluster().url,
      schema: "setpointd",
      site,
      process: "test",
      length: 10_000,
      directory,
      keys: { site: null, proof: null },
      siteKeys: null,
      now: () => NOON,
      random: randomBytes,
      monotonic: () => performance.now(),
      log: pino({ level: "silent" }),
      ...options,
    });
    if (opened.ok) onTestFinished(() => opened.store[Symbol.asyncDispose]());
    return opened;
  };
}

/** As `aSite`, where nothing but success will do. */
export const openedSite = (cluster: () => Postgres) => {
  const open = aSite(cluster);
  return async (options?: Partial<OpenPostgresOptions>) => {
    const opened = await open(options);
    if (!opened.ok) throw new Error(opened.reason);
    return opened;
  };
};
