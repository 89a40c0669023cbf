import { expect, test } from "vitest";

import { isDrawing, KeptLimits } from "../../../src/control/observe/claims.ts";
import { chargerId, vehicleId } from "../../../src/domain/units.ts";
import { at } from "../../support/anEvent.ts";

const [bay1, bay2] = [chargerId("bay-01"), chargerId("bay-02")];
const bus = vehicleId("veh-214");

test("two chargers may keep the limit of one vehicle, each until it is dropped", () => {
  const kept = new KeptLimits();
  kept.keep(bay1, bus, at("05:00"));
  kept.keep(bay2, bus, at("05:00"));
  kept.keep(bay1, bus, at("05:00"));
  expect([...kept.chargersOf(bus)].toSorted()).toEqual([bay1, bay2]);
  kept.drop(bay1);
  kept.drop(bay1);
  expect([kept.of(bay1), kept.of(bay2), [...kept.chargersOf(bus)]]).toEqual([null, bus, [bay2]]);
  kept.drop(bay2);
  expect([...kept.chargersOf(bus)]).toEqual([]);
});

test("a charger is idle a minute after its first report of no draw, unless it draws meanwhile", () => {
  const kept = new KeptLimits();
  kept.draws(bay1, false, at("05:00"));
  expect(kept.idleAt(bay1)).toBeNull();
  kept.keep(bay1, bus, at("05:00"));
  kept.draws(bay1, false, at("05:00"));
  kept.draws(bay1, false, at("05:00:30"));
  kept.draws(bay1, null, at("05:00:40"));
  expect(kept.idleAt(bay1)).toBe(at("05:01"));
  kept.draws(bay1, true, at("05:00:50"));
  expect(kept.idleAt(bay1)).toBeNull();
  kept.draws(bay1, false, at("05:02"));
  // The clock was set back.
  kept.draws(bay1, false, at("04:00"));
  expect(kept.idleAt(bay1)).toBe(at("04:01"));
});

test("the last evaluation that found a charger limited counts, also after the clock was set back", () => {
  const kept = new KeptLimits();
  kept.limited(bay1, at("05:00"));
  expect(kept.limitedAt(bay1)).toBeNull();
  kept.keep(bay1, bus, at("05:00"));
  kept.limited(bay1, at("05:10"));
  kept.limited(bay1, at("04:00"));
  expect(kept.limitedAt(bay1)).toBe(at("05:10"));
});

test("standby is no draw, feeding back is one, and no measurement changes nothing", () => {
  expect([isDrawing({ currentsA: [0.2, 0, 0] }), isDrawing({ powerW: 30 })]).toEqual([false, false]);
  expect([isDrawing({ currentsA: [0, 6, 0] }), isDrawing({ powerW: -5000 })]).toEqual([true, true]);
  expect(isDrawing({ state: "charging" })).toBeNull();
});
