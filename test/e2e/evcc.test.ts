import { describe, expect, test } from "vitest";

import { chargerId, instant } from "../../src/domain/units.ts";
import { MixedFloor } from "../../src/sim/mixedFloor.ts";
import { boundTo } from "../chargers/profile/aTrial.ts";
import { silent } from "../sim/clock.ts";
import { BUS, TRAITS } from "../sim/pairing.ts";
import { aSite, anEvent } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { waitFor } from "../support/waitFor.ts";

const SOON = { timeoutMs: 25_000 };
const BAY = chargerId("bay-01");

describe.skipIf(!mosquittoAvailable)("a depot with evcc", () => {
  test("an evcc that comes back is under the new limit as soon as it obeys, not a ramp later", async () => {
    await using site = await aSite({
      over: {
        control: { verdict: { ramp: "2m" } },
        chargers: [{ id: BAY, profile: "evcc", params: { id: 1 }, current: { max: 32 } }],
        vehicles: [{ id: "veh-1", charger: BAY }],
      },
    });
    await using floor = MixedFloor.start({
      url: site.broker.url,
      chargers: [
        {
          profile: "evcc",
          params: boundTo("evcc", { id: 1 }).values,
          traits: { ...TRAITS, id: BAY },
          vehicle: BUS,
        },
      ],
      now: () => instant(Date.now()),
      log: silent,
    });
    await floor.whenOnline();
    const [evcc] = floor.chargers;
    if (evcc === undefined) throw new Error("no evcc");
    await using daemon = await site.run();
    const isOnline = async (wanted: boolean): Promise<boolean> => {
      const [charger] = await daemon.view<readonly { readonly online: boolean | null }[]>("/api/v1/chargers");
      return charger?.online === wanted;
    };
    await waitFor(() => isOnline(true), SOON);
    // Its retained online was there before it obeyed: a command that comes too early is lost until the ramp is over.
    await waitFor(() => site.floor.on("evcc/updated").length > 0, SOON);
    expect((await daemon.deliver(anEvent("EV-1", { lastsMs: 300_000, amperes: 16 }))).status).toBe(202);
    await waitFor(() => evcc.model.drawn === 16, SOON);
    await evcc.dropOff();
    await waitFor(() => isOnline(false), SOON);
    const ahead = anEvent("EV-2", { lastsMs: 300_000, amperes: 8, priority: 0 });
    expect((await daemon.deliver(ahead)).status).toBe(202);
    const backAt = performance.now();
    await evcc.reboot();
    await waitFor(() => evcc.model.drawn === 8, SOON);
    expect(performance.now() - backAt).toBeLessThan(20_000);
  });

  test("the owner's mode is back after an event in which the gateway was killed", async () => {
    await using site = await aSite({
      over: {
        chargers: [{ id: BAY, profile: "evcc", params: { id: 1 }, current: { max: 32 } }],
        vehicles: [{ id: "veh-1", charger: BAY }],
      },
    });
    const point = "evcc/loadpoints/1";
    await site.floor.publish("evcc/status", "online", true);
    await site.floor.publish(`${point}/mode`, "minpv", true);
    const told = (): readonly string[] => site.floor.on(`${point}/mode/set`).map(({ text }) => text);
    {
      await using daemon = await site.run();
      await site.floor.publish("evcc/updated", "1");
      expect((await daemon.deliver(anEvent("EV-1", { lastsMs: 15_000, amperes: 16 }))).status).toBe(202);
      await waitFor(() => told().includes("now"), SOON);
      await site.floor.publish(`${point}/mode`, "now", true);
      await waitFor(
        async () => (await daemon.get("/api/v1/audit?limit=100")).text.includes("acknowledged by"),
        SOON,
      );
    }
    await using daemon = await site.run();
    await site.floor.publish("evcc/updated", "2");
    await waitFor(() => told().at(-1) !== "now", { timeoutMs: 40_000 });
    expect([told().at(-1), await daemon.hasBroker()]).toEqual(["minpv", true]);
  });
});
