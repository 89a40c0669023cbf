import { expect, test } from "vitest";

import { allowedAhead, mostWatts } from "../../../src/control/decide/ahead.ts";
import { amperes, instant, iso, millis, watts } from "../../../src/domain/units.ts";
import { aCharger, aVehicle } from "../../support/aCharger.ts";
import { anEvent, at, live } from "../../support/anEvent.ts";
import { aLevelHold } from "../../support/aHold.ts";
import { aPicture } from "../../support/aPicture.ts";

const clock = (moment: number): string => iso(instant(moment)).slice(11, 16);
const lasting = { since: at("03:00"), end: { kind: "at", at: at("04:45") }, cap: at("04:45") } as const;
const unlimited = { maxCurrent: null, maxPower: null } as const;

test("the largest power follows from amperes, from watts, or has no limit", () => {
  expect(mostWatts(aCharger(), aVehicle())).toBe(32 * 3 * 230);
  expect(mostWatts(aCharger({ ...unlimited, maxPower: watts(150_000) }), aVehicle(unlimited))).toBe(150_000);
  expect(mostWatts(aCharger(unlimited), aVehicle(unlimited))).toBe(Infinity);
});

test("a vehicle is allowed the power of the event, after that the largest, and the level of a hold meanwhile", () => {
  const depot = aPicture();
  const ask = { kind: "power", level: 7 } as const;
  depot.schedule.put(live(anEvent({ ask, randomizeStart: millis(0) })), at("04:00"));
  depot.holds.put(aLevelHold({ level: { kind: "pause" }, ...lasting }));
  const window = { from: at("04:00"), until: at("12:00") };
  const stretches = [...allowedAhead(depot, aCharger(), aVehicle(), window)];
  const shown = stretches.map(({ until, allowedW, event, hold }) => [
    clock(until),
    allowedW,
    event,
    hold?.id,
  ]);
  expect(shown).toEqual([
    ["04:45", 0, null, "hold-7-1"],
    ["05:00", 22_080, null, undefined],
    ["06:00", 7_000, "EV-7731", undefined],
    ["12:00", 22_080, null, undefined],
  ]);
});

test("after its events a limited charger has the level that is configured for the end", () => {
  const depot = aPicture();
  depot.schedule.put(live(anEvent({ randomizeStart: millis(0) })), at("04:00"));
  const charger = aCharger({ atEnd: { kind: "current", amperes: amperes(10) } });
  const window = { from: at("05:30"), until: at("12:00") };
  const stretches = [...allowedAhead(depot, charger, aVehicle(), window)];
  expect(stretches.map(({ until, allowedW }) => [clock(until), allowedW])).toEqual([
    ["06:00", 11_040],
    ["12:00", 6_900],
  ]);
});

test("a hold until an energy ends when that is drawn, also before the first reading", () => {
  const depot = aPicture();
  const meter = { charger: aCharger().id, register: "energyWh", fromWh: 100, deliveredWh: 0 } as const;
  const end = { kind: "energy", wh: 3_450, meter } as const;
  const level = { kind: "current", amperes: amperes(10) } as const;
  depot.holds.put(aLevelHold({ since: at("04:00"), end, level, cap: at("23:00") }));
  const window = { from: at("04:00"), until: at("12:00") };
  const stretches = [...allowedAhead(depot, aCharger(), aVehicle(), window)];
  expect(stretches.map(({ until, allowedW }) => [clock(until), allowedW])).toEqual([
    ["04:30", 6_900],
    ["12:00", 22_080],
  ]);
});
