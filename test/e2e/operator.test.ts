import { describe, expect, test } from "vitest";

import { aSite, anEvent } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { waitFor } from "../support/waitFor.ts";

const SECOND = 1000;
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

describe.skipIf(!mosquittoAvailable)("the operator listener of a real daemon", () => {
  test("status, events, chargers, vehicles and audit agree", async () => {
    await using site = await aSite();
    await using daemon = await site.run();
    const event = anEvent("EV-1", {
      lastsMs: 60 * SECOND,
      amperes: 40,
      priority: 2,
      vehicles: ["veh-1", "vhe-2"],
    });
    await daemon.deliver(event);
    const { set } = await site.floor.nth("bay-01", 1);
    await site.floor.publish(
      "setpointd/depot/chargers/bay-01/ack",
      JSON.stringify({ id: set.id, accepted: true, value: 32, reason: null }),
    );
    const at = new Date().toISOString();
    await site.floor.publish(
      "setpointd/depot/chargers/bay-01/telemetry",
      JSON.stringify({ at, state: "charging", powerW: 11_000, currentsA: [16, 16, 16], limitA: 32 }),
    );
    const chargers = await waitFor(async () => {
      const seen = await daemon.view<{ verdict: string; measured: unknown }[]>("/api/v1/chargers");
      return seen[0]?.verdict === "accepted" && seen[0].measured !== null ? seen : null;
    });

    expect(set).toMatchObject({
      value: 32,
      until: new Date(Date.parse(event.intervalPeriod.start) + 60_000).toISOString(),
    });
    expect(chargers).toHaveLength(4);
    expect(chargers[0]).toMatchObject({
      charger: "bay-01",
      vehicle: "veh-1",
      asked: { kind: "current", value: 40, unit: "A", event: "EV-1" },
      allowed: { kind: "current", value: 32, unit: "A" },
      measured: { at, state: "charging", powerW: 11_000, currentsA: [16, 16, 16], limitA: 32 },
      command: set.id,
      until: set.until,
      reason: {
        winner: { event: "EV-1" },
        limits: [{ by: "charger maximum", asked: "40 A", allowed: "32 A" }],
      },
    });
    expect(chargers[1]).toMatchObject({ charger: "bay-02", asked: null, allowed: null, verdict: "none" });

    expect(await daemon.view("/api/v1/status")).toMatchObject({
      site: "depot",
      mode: "drive",
      ready: true,
      now: expect.stringMatching(ISO),
      next: expect.stringMatching(ISO),
      epoch: set.epoch,
      partner: {
        ok: true,
        answeredAt: expect.stringMatching(ISO),
        polledAt: expect.stringMatching(ISO),
        failures: 0,
        stale: false,
      },
      broker: { connected: true },
      chargers: { total: 4, limited: 1, refused: 0 },
      events: { known: 1, dispatches: 1 },
      quarantine: [],
    });
    expect(await daemon.view("/api/v1/events")).toMatchObject([
      {
        id: "EV-1",
        state: "active",
        priority: 2,
        start: event.intervalPeriod.start,
        ask: { kind: "current", level: 40 },
        vehicles: ["veh-1"],
        foreignVehicles: 1,
        unknownVehicles: [{ id: "vhe-2", didYouMean: "veh-2" }],
        odd: ["1 of its vehicles is not ours: vhe-2 (did you mean veh-2?)"],
        source: "webhook",
      },
    ]);
    expect(await daemon.view("/api/v1/vehicles")).toMatchObject([
      { id: "veh-1", charger: "bay-01", command: set.id, planned: [{ event: "EV-1", until: set.until }] },
      { id: "veh-2", charger: "bay-02", command: null, planned: [] },
      { id: "veh-3" },
      { id: "veh-4" },
    ]);

    const rows =
      await daemon.view<{ seq: number; kind: string; hash: string; command: string }[]>("/api/v1/audit");
    expect(rows.map(({ seq }) => seq)).toEqual(rows.map((_, index) => index + 1));
    expect(rows.slice(0, 5).map(({ kind }) => kind)).toEqual([
      "daemon",
      "event",
      "decision",
      "outcome",
      "outcome",
    ]);
    expect(rows.every(({ hash }) => /^[0-9a-f]{64}$/.test(hash))).toBe(true);
    const page = await daemon.view<{ seq: number }[]>("/api/v1/audit?charger=bay-01&limit=1&newest=true");
    expect(page.map(({ seq }) => seq)).toEqual([rows.length]);
    expect((await daemon.get("/api/v1/audit?limit=many")).status).toBe(400);
    expect((await daemon.get("/api/v1/nothing")).status).toBe(404);
  });

  test("healthz and readyz are well although neither partner nor broker is there, and status names both", async () => {
    await using site = await aSite();
    await site.partner[Symbol.asyncDispose]();
    await site.broker.kill();
    await using daemon = await site.start();
    const [health, ready] = [await daemon.get("/healthz"), await daemon.get("/readyz")];
    expect([health.status, ready.status]).toEqual([200, 200]);
    const status = await waitFor(async () => {
      const seen = await daemon.view<{ partner: { failures: number } }>("/api/v1/status");
      return seen.partner.failures > 0 ? seen : null;
    });
    expect(status).toMatchObject({
      ready: true,
      partner: { ok: false, answeredAt: null, lastFailure: expect.any(String) },
      broker: { connected: false },
    });
  });
});
