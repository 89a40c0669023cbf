import { expect, test } from "vitest";

import { chargerId, millis, vehicleId } from "../../../src/domain/units.ts";
import { aVehicle } from "../../support/aCharger.ts";
import { anEvent, at, live } from "../../support/anEvent.ts";
import { aPicture } from "../../support/aPicture.ts";

const bus = aVehicle().id;
const stored = live(anEvent({ randomizeStart: millis(0) }));

test("after stored events that cannot be read, the agenda is as it was", () => {
  const { schedule } = aPicture();
  schedule.put(stored, at("05:10"));
  const before = schedule.agenda.of(bus);
  function* unreadable() {
    yield stored;
    throw new Error("disk I/O error");
  }
  expect(() => schedule.restore(unreadable(), null, at("05:20"))).toThrow("disk I/O error");
  expect(before).toHaveLength(1);
  expect(schedule.agenda.of(bus)).toEqual(before);
});

test("a vehicle at no charger is reported once, and again where that was not stored", () => {
  const { schedule } = aPicture();
  schedule.put(stored, at("05:10"));
  const [first] = schedule.agenda.of(bus);
  if (first === undefined) throw new Error("no dispatch");
  expect([schedule.markUnplugged(first), schedule.markUnplugged(first)]).toEqual([true, false]);
  schedule.restore([stored], null, at("05:20"));
  const [planned] = schedule.agenda.of(bus);
  expect(planned && schedule.markUnplugged(planned)).toBe(true);
  schedule.committed();
  schedule.restore([stored], null, at("05:20"));
  const [kept] = schedule.agenda.of(bus);
  expect(kept && schedule.isUnplugged(kept)).toBe(true);
});

test("a plan that was never evaluated is made anew after the clock was set back", () => {
  const { schedule } = aPicture({
    vehicles: [aVehicle({ id: vehicleId("veh-214"), charger: chargerId("bay-01") })],
  });
  schedule.put(stored, at("05:10"));
  schedule.replan(at("04:00"));
  expect([schedule.agenda.of(bus).length, schedule.evaluatedAt]).toEqual([1, at("04:00")]);
});
