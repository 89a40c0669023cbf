import { randomBytes } from "node:crypto";
import { pino } from "pino";
import { describe, expect, test } from "vitest";

import { recordInFleet } from "../../src/daemon/offline.ts";
import { minutes } from "../../src/domain/units.ts";
import { postgresMissing } from "../support/postgres.ts";
import { aCluster } from "../store/postgres/state.ts";
import { aDirectory } from "../store/sqlite/state.ts";
import { NOON } from "../store/sqlite/words.ts";

describe.skipIf(postgresMissing() !== null)("the record of a fleet", () => {
  const cluster = aCluster();

  test("what several people change at once is on record within seconds, also with a lease of minutes", async () => {
    const shared = {
      site: { id: "", timezone: "UTC", board: [], maintenance: [] },
      state: aDirectory(),
      keys: { site: null, proof: null },
      database: {
        url: () => cluster().url,
        schema: "setpointd",
        siteKeys: () => [Buffer.alloc(32, 7)],
        lease: minutes(5),
      },
    };
    const machine = { now: () => NOON, randomBytes, log: pino({ level: "silent" }) };
    const act = { at: NOON, message: "kari signed in", facts: { by: "kari" } };
    const stored = await Promise.all(Array.from({ length: 4 }, () => recordInFleet(shared, machine, [act])));
    expect(stored).toEqual([null, null, null, null]);
  });
});
