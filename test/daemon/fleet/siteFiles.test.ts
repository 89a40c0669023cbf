import { randomBytes } from "node:crypto";
import pino from "pino";
import { describe, expect, onTestFinished, test } from "vitest";

import type { Fleet, SiteLoaded } from "../../../src/config/fleet.ts";
import { missingIn, SiteFiles } from "../../../src/daemon/fleet/siteFiles.ts";
import { eventId, instant, millis } from "../../../src/domain/units.ts";
import { GENESIS } from "../../../src/store/chain.ts";
import { Commits } from "../../../src/store/postgres/commits.ts";
import { Database } from "../../../src/store/postgres/database.ts";
import { aFleetOf } from "../../store/postgres/fleetRows.ts";
import { aCluster } from "../../store/postgres/state.ts";
import { commandRecord } from "../../store/sqlite/words.ts";
import { anEvent } from "../../support/anEvent.ts";
import { postgresMissing } from "../../support/postgres.ts";

const now = instant(Date.UTC(2026, 10, 24));
const live = (over: object) => {
  const event = anEvent({ id: eventId("E"), targets: [{ type: "vehicle", values: ["v1", "v2"] }], ...over });
  return {
    kind: "live",
    id: event.id,
    revision: { event, start: now },
    source: "webhook",
    receivedAt: now,
    endings: [],
    descriptors: 0,
  } as const;
};
const file = {
  chargers: new Set<string>(),
  vehicles: new Set(["v1"]),
  vehiclesBefore: new Set(["v1", "v2"]),
};

test("a vehicle that an event which is not over needs must stay", () => {
  const running = live({ duration: millis(60_000), randomizeStart: millis(0) });
  expect(missingIn({ commands: [], events: [running] }, file, now)).toMatchObject([
    { path: "vehicles", found: "no v2, a target of the event E, which is not over" },
  ]);
  const over = live({ duration: millis(0), randomizeStart: millis(0) });
  expect(missingIn({ commands: [], events: [over] }, file, now)).toEqual([]);
});

describe.skipIf(postgresMissing() !== null)("the sites of a fleet", () => {
  const cluster = aCluster();

  /** A site with the charger bay-01, its leader, and the verbs. `limits`: the leader limits that charger. */
  async function aSiteWithLeader() {
    const operatorKey = randomBytes(32);
    const { sites, process, database, schema, lockedRow, list } = await aFleetOf(cluster(), [operatorKey]);
    await sites.put([{ site: "a", file: '{"chargers":[{"id":"bay-01"}]}', vehicles: [] }]);
    const { work } = process("one");
    const [lease] = await work.take(1);
    const stored = (await sites.read(["a"])).get("a");
    if (lease === undefined || typeof stored !== "object") throw new Error("no site");
    const at = { url: () => cluster().url, schema, siteKeys: () => [operatorKey], lease: millis(10_000) };
    const log = pino({ level: "silent" });
    const files = await SiteFiles.open({ database: at } as unknown as Fleet, {
      now: () => now,
      randomBytes,
      log,
    });
    if (typeof files === "string") throw new Error(files);
    onTestFinished(() => files[Symbol.asyncDispose]());
    const { siteKey } = stored;
    const leader = new Commits({ database, site: "a", siteKey }, lease, { head: GENESIS, number: 0 });
    const record = {
      ...commandRecord("bay-01", 1),
      progress: "acknowledged",
      sentAt: now,
      sends: 1,
    } as const;
    return { files, work, lockedRow, list, limits: () => leader.commit([{ kind: "command", record }]) };
  }

  const LIMITED =
    "bay-01 until it is released: exempt it at the page of the site, or wait for the end of the event";

  test("where the schema is gone, verbs that read name no site and make no schema", async () => {
    const at = { url: () => cluster().url, schema: "gone", siteKeys: () => [], lease: millis(10_000) };
    const machine = { now: () => now, randomBytes, log: pino({ level: "silent" }) };
    const files = await SiteFiles.open({ database: at } as unknown as Fleet, machine, false);
    if (typeof files === "string") throw new Error(files);
    await using _ = files;
    expect(await files.list()).toEqual([]);
    expect(await files.show("a")).toEqual({ ok: true, file: null });
    expect(await files.remove("a")).toBe("there is no site a");
    await using database = new Database({ ...at, patience: 10_000, log: machine.log });
    expect(await database.query("SELECT to_regnamespace('gone')::text AS schema")).toEqual([
      { schema: null },
    ]);
  });

  test("a site whose leader limits a charger while it is being removed is not removed", async () => {
    const { files, lockedRow, limits } = await aSiteWithLeader();
    // The state was read, and allows it.
    const lock = await lockedRow("LOCK TABLE fleet_vehicle IN SHARE MODE");
    const removing = files.remove("a");
    await lock.isAwaited();
    expect(await limits()).not.toHaveProperty("reason");
    await lock.release();
    expect(await removing).toBe(`no bay-01, which is limited now: ${LIMITED}`);
    // The site goes on.
    expect(await limits()).not.toHaveProperty("reason");
    expect(await files.remove("unknown")).toBe("there is no site unknown");
  });

  const without = {
    file: "a.yaml",
    loaded: {
      ok: true,
      config: { site: { id: "a" }, chargers: [], vehicles: [] },
      value: {},
      warnings: [],
    } as unknown as SiteLoaded,
  };

  test("a put that leaves out a charger is refused where the leader limits it meanwhile", async () => {
    const { files, lockedRow, limits } = await aSiteWithLeader();
    const lock = await lockedRow("LOCK TABLE fleet_vehicle IN SHARE MODE");
    const putting = files.put([without]);
    await lock.isAwaited();
    expect(await limits()).not.toHaveProperty("reason");
    await lock.release();
    expect(await putting).toMatchObject([
      { kind: "mistakes", mistakes: [{ found: "no bay-01, which is limited now", expected: LIMITED }] },
    ]);
    expect(await limits()).not.toHaveProperty("reason");
  });

  test("after a put that leaves out a charger the leader limits it no more, and the site is free for the next one", async () => {
    const { files, work, list, limits } = await aSiteWithLeader();
    expect(await files.put([without])).toEqual([]);
    expect(await limits()).toHaveProperty("reason");
    expect((await list.counts()).unled).toBe(1);
    expect(await work.take(1)).toHaveLength(1);
    // A put that leaves out none leaves the leader alone.
    expect(await files.put([without])).toEqual([]);
    expect((await list.counts()).unled).toBe(0);
  });
});
