import { describe, expect, test } from "vitest";

import { aSite, type Site, anEvent } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { waitFor } from "../support/waitFor.ts";

const ROOT = "setpointd/depot/holds";

const request = (over: object = {}): string =>
  JSON.stringify({
    scope: { vehicle: "veh-1" },
    kind: "level",
    level: { currentA: 12 },
    until: { at: new Date(Date.now() + 3_600_000).toISOString() },
    reason: "leaves early",
    ...over,
  });

/** The answers so far, oldest first. */
const results = (site: Site) =>
  site.floor.on("/holds/result").map(({ text, retain }) => ({ retain, answer: JSON.parse(text) }));

describe.skipIf(!mosquittoAvailable)("holds from MQTT", () => {
  test("a hold beats the event in force, its answer names the level, and its end gives the event back", async () => {
    await using site = await aSite({ over: { operator: { listen: "127.0.0.1:0", mqttHolds: true } } });
    await using daemon = await site.run();
    await daemon.deliver(anEvent("EV-1", { lastsMs: 60_000, amperes: 10, vehicles: ["veh-1"] }));
    await site.floor.nth("bay-01", 1);
    await site.floor.publish(`${ROOT}/set`, request());
    await site.floor.nth("bay-01", 2);
    expect(site.floor.told("bay-01")[1]).toMatch(/^12 A /);
    const [first] = await waitFor(() => (results(site).length > 0 ? results(site) : undefined));
    expect(first).toMatchObject({
      retain: false,
      answer: { id: expect.stringMatching(/^hold-/), effect: [{ charger: "bay-01", overrules: ["EV-1"] }] },
    });
    const ended = await fetch(`${daemon.operatorUrl}/api/v1/holds/${first?.answer.id}`, {
      method: "DELETE",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ reason: "stays after all" }),
    });
    expect(ended.status).toBe(200);
    await site.floor.nth("bay-01", 3);
    expect(site.floor.told("bay-01")[2]).toBe("10 A EV-1");
    const rows = await daemon.view<{ readonly kind: string; readonly facts: object }[]>("/api/v1/audit");
    expect(rows.filter(({ kind }) => kind === "operator").map(({ facts }) => facts)).toContainEqual(
      expect.objectContaining({ by: "mqtt", opened: true }),
    );
  });

  test("a mistake and a retained request are answered with the problem; no charger gets a command", async () => {
    await using site = await aSite({ over: { operator: { listen: "127.0.0.1:0", mqttHolds: true } } });
    await site.floor.publish(`${ROOT}/set`, request(), true);
    await using _daemon = await site.run();
    await site.floor.publish(`${ROOT}/set`, "{");
    await site.floor.publish(`${ROOT}/set`, request({ scope: { vehicle: "veh-9" } }));
    const all = await waitFor(() => (results(site).length > 2 ? results(site) : undefined));
    expect(all.map(({ answer }) => answer.errors[0].expected)).toEqual([
      "a message that is not retained",
      "a JSON object",
      "one of veh-1, veh-2, veh-3, veh-4",
    ]);
    expect(site.floor.sets("bay-01")).toEqual([]);
  });

  test("without operator.mqttHolds the topic is not read", async () => {
    await using site = await aSite();
    await using daemon = await site.run();
    await site.floor.publish(`${ROOT}/set`, request());
    // The event comes after the request, so its command shows that the request had its chance.
    await daemon.deliver(anEvent("EV-1", { lastsMs: 60_000, amperes: 10, vehicles: ["veh-1"] }));
    await site.floor.nth("bay-01", 1);
    expect(site.floor.told("bay-01")).toEqual(["10 A EV-1"]);
    expect(results(site)).toEqual([]);
  });
});
