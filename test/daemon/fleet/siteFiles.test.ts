import { randomBytes } from "node:crypto";
import pino from "pino";
import { describe, expect, onTestFinished, test } from "vitest";

import type { Fleet } from "../../../src/config/fleet.ts";
import { missingIn, SiteFiles } from "../../../src/daemon/fleet/siteFiles.ts";
import { eventId, instant, millis } from "../../../src/domain/units.ts";
import { GENESIS } from "../../../src/store/chain.ts";
import { Commits } from "../../../src/store/postgres/commits.ts";
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

  test("a site whose leader limits a charger while it is being removed is not removed", async () => {
    const operatorKey = randomBytes(32);
    const { sites, process, database, schema, lockedRow } = await aFleetOf(cluster(), [operatorKey]);
    await sites.put([{ site: "a", file: "{}", vehicles: [] }]);
    const [lease] = await process("one").work.take(1);
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
    // The state was read, and allows it.
    const lock = await lockedRow("LOCK TABLE fleet_vehicle IN SHARE MODE");
    const removing = files.remove("a");
    await lock.isAwaited();
    const { siteKey } = stored;
    const leader = new Commits({ database, site: "a", siteKey }, lease, { head: GENESIS, number: 0 });
    const record = {
      ...commandRecord("bay-01", 1),
      progress: "acknowledged",
      sentAt: now,
      sends: 1,
    } as const;
    expect(await leader.commit([{ kind: "command", record }])).not.toHaveProperty("reason");
    await lock.release();
    expect(await removing).toBe(
      "no bay-01, which is limited now: bay-01 until it is released: exempt it at the page of the site, or wait for the end of the event",
    );
    // The site goes on.
    expect(await leader.commit([{ kind: "command", record }])).not.toHaveProperty("reason");
    expect(await files.remove("unknown")).toBe("there is no site unknown");
  });
});
