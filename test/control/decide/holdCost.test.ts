import { expect, test } from "vitest";

import { estimatedCosts, formatCost, noteCosts } from "../../../src/control/decide/holdCost.ts";
import type { Hold } from "../../../src/domain/hold.ts";
import { eventId, millis, vehicleId } from "../../../src/domain/units.ts";
import { runToEnd } from "../../../src/platform/cooperative.ts";
import { aCharger, aVehicle } from "../../support/aCharger.ts";
import { anEvent, at, live } from "../../support/anEvent.ts";
import { aLevelHold } from "../../support/aHold.ts";
import { aPicture } from "../../support/aPicture.ts";

const SEVEN_KW = { ask: { kind: "power", level: 7 }, randomizeStart: millis(0) } as const;
const event = eventId("EV-7731");

/** The event of 7 kW from 05:00 to 06:00, for the vehicle on bay-01. */
function aSite(setup: Parameters<typeof aPicture>[0] = {}) {
  const depot = aPicture(setup);
  depot.schedule.put(live(anEvent(SEVEN_KW)), at("04:00"));
  return depot;
}

const exempt = (changes: Partial<Hold> = {}): Hold =>
  aLevelHold({
    level: null,
    end: { kind: "at", at: at("05:30") },
    cap: null,
    since: at("04:00"),
    ...changes,
  });

const costs = (depot: ReturnType<typeof aSite>, hold: Hold) =>
  runToEnd(estimatedCosts(depot, hold, at("04:00"))).map(({ event: of, estimatedWh }) => [of, estimatedWh]);

test("a hold takes what it allows above a coming event, whether it is open or not, and no more than the most", () => {
  const depot = aSite();
  expect(costs(depot, exempt())).toEqual([["EV-7731", (22_080 - 7_000) / 2]]);
  depot.holds.put(exempt());
  expect(costs(depot, exempt())).toEqual([["EV-7731", (22_080 - 7_000) / 2]]);
  const level = { kind: "power", watts: 9_000 } as never;
  expect(costs(depot, exempt({ level }))).toEqual([["EV-7731", 1_000]]);
});

test("a hold below the event, or over before it, takes nothing, and neither does one of an empty charger", () => {
  const depot = aSite();
  expect(costs(depot, exempt({ level: { kind: "pause" } }))).toEqual([]);
  expect(costs(depot, exempt({ end: { kind: "at", at: at("04:30") } }))).toEqual([]);
  expect(
    costs(depot, exempt({ scope: { kind: "charger", charger: aCharger({ id: "bay-02" }).id } })),
  ).toEqual([]);
  expect(costs(depot, exempt({ scope: { kind: "charger", charger: aCharger({ id: "gone" }).id } }))).toEqual(
    [],
  );
  expect(costs(aPicture(), exempt())).toEqual([]);
});

test("a hold of the site yields to a narrower one, and its cost is what it takes beside that", () => {
  const depot = aSite();
  const narrow = exempt({ id: "hold-7-2", level: { kind: "pause" }, end: { kind: "at", at: at("05:15") } });
  depot.holds.put(narrow);
  depot.holds.put(exempt({ id: "hold-7-3", scope: { kind: "site" }, level: { kind: "pause" } }));
  const site = exempt({ id: "hold-7-4", scope: { kind: "site" }, end: { kind: "at", at: at("05:45") } });
  // Until 05:30 another hold of the site pauses: without this one there is no event to take from.
  expect(costs(depot, site)).toEqual([["EV-7731", (22_080 - 7_000) / 4]]);
});

test("without a limit of charger and vehicle the energy is unknown", () => {
  const open = { maxCurrent: null, maxPower: null } as const;
  const depot = aSite({ chargers: [aCharger(open)], vehicles: [aVehicle(open)] });
  expect(costs(depot, exempt())).toEqual([["EV-7731", null]]);
  expect(costs(depot, exempt({ scope: { kind: "vehicle", vehicle: vehicleId("veh-9") } }))).toEqual([]);
});

test("costs are stored with the hold and recorded on the event", () => {
  const depot = aSite();
  const hold = exempt();
  expect(noteCosts(depot, hold.id, [], "estimated", at("04:00")).changes).toEqual([]);
  depot.holds.put(hold);
  const estimated = { event, estimatedWh: 7_540, measured: null };
  const [stored, row] = noteCosts(depot, hold.id, [estimated], "estimated", at("04:00")).changes;
  expect(stored).toEqual({ kind: "hold", hold: { ...hold, costs: [estimated] } });
  expect(row).toMatchObject({
    entry: {
      event,
      words: "hold hold-7-1 of anna takes 7.5 kWh from event EV-7731 (estimated)",
      facts: { hold: "hold-7-1", cost: "estimated", estimatedWh: 7_540, measuredWh: null },
    },
  });
  const measured = { ...estimated, measured: { wh: 7_000, vehicles: 1, unknown: 0 } };
  const [over, last] = noteCosts(depot, hold.id, [measured], "measured", at("06:00")).changes;
  expect(over).toMatchObject({ hold: { costs: [measured], isMeasured: true } });
  expect(last).toMatchObject({
    entry: {
      words: "hold hold-7-1 of anna took 7 kWh from event EV-7731 (measured)",
      facts: { measuredWh: 7_000 },
    },
  });
});

test.each([
  [{ event, estimatedWh: null, measured: null }, "takes an unknown energy from event EV-7731"],
  [{ event, estimatedWh: 1_000, measured: null }, "takes 1 kWh from event EV-7731 (estimated)"],
  [
    { event, estimatedWh: 1_000, measured: { wh: null, vehicles: 1, unknown: 1 } },
    "took an unknown energy from event EV-7731: no readings",
  ],
  [
    { event, estimatedWh: 1_000, measured: { wh: 900, vehicles: 3, unknown: 2 } },
    "took 0.9 kWh from event EV-7731 (measured, unknown for 2 of 3 vehicles)",
  ],
])("the cost %j reads: %s", (cost, text) => {
  expect(formatCost(cost)).toBe(text);
});
