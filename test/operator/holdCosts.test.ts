import { expect, test } from "vitest";

import { after, eventId, millis, minutes, vehicleId } from "../../src/domain/units.ts";
import { holdCosts } from "../../src/operator/holdCosts.ts";
import { fillContext } from "../support/aReading.ts";
import { aDepot } from "../support/aDepot.ts";
import { aLevelHold } from "../support/aHold.ts";
import { aPicture } from "../support/aPicture.ts";
import { aDirectory, opened } from "../store/sqlite/state.ts";
import { NOON, row } from "../store/sqlite/words.ts";

const value = (answer: unknown) => (answer as { readonly value: Record<string, never> }).value;
const request = {
  scope: { charger: "bay-01" },
  kind: "exempt",
  until: { at: "2026-11-21T00:40:00Z" },
  reason: "leaves early",
};
/** Two vehicles, 10 A (6.9 kW) for the first hour; a charger gives 32 A (22.08 kW). */
const aSite = () =>
  aDepot()
    .withVehicle("v1", "bay-01")
    .withVehicle("v2", "bay-02")
    .withEvent({ start: "00:00", minutes: 60, amperes: 10 });

test("a preview shows what a hold would take from a running event, and opens none", async () => {
  const depot = await aSite().running();
  await depot.until("00:10");
  const preview = value(await depot.previewHold({ ...request, scope: { site: true } }));
  expect(preview).toMatchObject({
    sentence: "the site: exempt until 00:40:00",
    chargers: 2,
    costs: [
      {
        event: "EV-1",
        sentence: "takes 15.2 kWh from event EV-1 (estimated)",
        estimatedWh: 15_180,
        measured: null,
      },
    ],
  });
  expect(depot.holds()).toEqual({ ok: true, value: [] });
  expect(await depot.previewHold({ ...request, reason: "" })).toMatchObject({ problem: { status: 400 } });
});

test("an opened hold has its estimate, which survives a restart; over, it has what the meter counted", async () => {
  const depot = await aSite().reporting().running();
  await depot.until("00:10");
  const opened = value(await depot.hold(request));
  const estimate = { event: "EV-1", estimatedWh: 7_590, measured: null };
  expect(opened["costs"]).toMatchObject([estimate]);
  for (let minute = 10; minute <= 40; minute += 1) {
    await depot.until(`00:${minute}`);
    await depot.telemetry("bay-01", { state: "charging", energyWh: 300 * (minute - 10), powerW: 18_000 });
    if (minute === 25) await depot.restart();
    expect(depot.holds()).toMatchObject({ value: [{ costs: [estimate] }] });
  }
  await depot.until("00:41");
  await depot.settleCosts();
  expect(depot.holds()).toMatchObject({ value: [{ state: "ended", costs: [estimate] }] });
  await depot.until("00:43");
  await depot.settleCosts();
  await depot.settleCosts();
  const [cost] = (value(depot.holds()) as never)[0]["costs"] as readonly [{ measured: { wh: number } }];
  expect(cost).toMatchObject({ measured: { vehicles: 1, unknown: 0 } });
  // 9 kWh by the meter, 3.45 kWh of them within the event.
  expect(cost.measured.wh).toBeGreaterThan(5_400);
  expect(cost.measured.wh).toBeLessThan(5_700);
  expect(depot.audit("operator").filter((words) => / kWh from event /.test(words))).toEqual([
    expect.stringContaining("takes 7.6 kWh from event EV-1 (estimated)"),
    expect.stringContaining("kWh from event EV-1 (measured)"),
  ]);
});

test("without readings the energy is unknown, and an event that came later is counted too", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  await depot.hold(request);
  await depot.deliver({ id: "EV-9", start: "00:10", minutes: 20, amperes: 10 });
  await depot.until("00:43");
  await depot.settleCosts();
  expect(depot.holds()).toMatchObject({
    value: [
      {
        costs: [
          {
            event: "EV-9",
            sentence: "took an unknown energy from event EV-9: no readings",
            estimatedWh: null,
            measured: { wh: null, vehicles: 1, unknown: 1 },
          },
        ],
      },
    ],
  });
});

test("a hold of the site is measured vehicle by vehicle, with turns of the event loop in between", async () => {
  const { store } = opened(aDirectory());
  const depot = aPicture();
  const ended = { at: NOON, by: "anna", why: "over" };
  const hold = aLevelHold({ scope: { kind: "site" }, since: after(NOON, millis(-60_000)), costs: [], ended });
  depot.holds.put(hold);
  const effect = (n: number) =>
    row("set aside", {
      kind: "operator",
      event: eventId("EV-1"),
      vehicle: vehicleId(`veh-${n}`),
      facts: { hold: hold.id, effect: true },
    });
  store.write(Array.from({ length: 300 }, (_, n) => effect(n)));
  await store.durable();
  const now = after(NOON, minutes(5));
  let elapsed = 0;
  const costs = holdCosts({
    state: depot,
    store,
    context: fillContext(),
    request: async (change) => change(depot, now),
    now: () => now,
    monotonic: () => (elapsed += 1),
  });
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  await costs();
  isOver = true;
  expect(depot.holds.get(hold.id)?.costs).toMatchObject([{ measured: { vehicles: 300, unknown: 300 } }]);
  expect(turns).toBeGreaterThan(25);
});
