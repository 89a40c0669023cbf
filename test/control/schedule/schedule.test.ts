import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

import { expect, test } from "vitest";

import { after, chargerId, millis, minutes, vehicleId } from "../../../src/domain/units.ts";
import { runToEnd } from "../../../src/platform/cooperative.ts";
import { aVehicle, settingsWith } from "../../support/aCharger.ts";
import { anEvent, at, live, targetsOf } from "../../support/anEvent.ts";
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
  expect(() => runToEnd(schedule.restoring(unreadable(), null, at("05:20")))).toThrow("disk I/O error");
  expect(before).toHaveLength(1);
  expect(schedule.agenda.of(bus)).toEqual(before);
});

test("a vehicle at no charger is reported once, and again where that was not stored", () => {
  const { schedule } = aPicture();
  schedule.put(stored, at("05:10"));
  const [first] = schedule.agenda.of(bus);
  if (first === undefined) throw new Error("no dispatch");
  expect([schedule.markUnplugged(first, 1), schedule.markUnplugged(first, 1)]).toEqual([true, false]);
  runToEnd(schedule.restoring([stored], null, at("05:20")));
  const [planned] = schedule.agenda.of(bus);
  expect(planned && schedule.markUnplugged(planned, 1)).toBe(true);
  schedule.committed(1);
  runToEnd(schedule.restoring([stored], null, at("05:20")));
  const [kept] = schedule.agenda.of(bus);
  expect(kept && schedule.isUnplugged(kept)).toBe(true);
});

test("a vehicle that is reported at no charger while a commit runs is reported again where the next commit fails", () => {
  const vehicles = [aVehicle(), aVehicle({ id: vehicleId("veh-215") })];
  const { schedule } = aPicture({ vehicles });
  const event = anEvent({ randomizeStart: millis(0), targets: targetsOf("veh-214", "veh-215") });
  schedule.put(live(event), at("05:10"));
  const [early, late] = vehicles.map(({ id }) => schedule.agenda.of(id)[0]);
  if (early === undefined || late === undefined) throw new Error("no dispatch");
  schedule.markUnplugged(early, 1);
  schedule.markUnplugged(late, 2);
  schedule.committed(1);
  expect([...schedule.unreported]).toEqual(["veh-215"]);
  schedule.retractUnreported();
  expect([schedule.isUnplugged(early), schedule.isUnplugged(late)]).toEqual([true, false]);
});

test("a plan that was never evaluated is made anew after the clock was set back", () => {
  const { schedule } = aPicture({
    vehicles: [aVehicle({ id: vehicleId("veh-214"), charger: chargerId("bay-01") })],
  });
  schedule.put(stored, at("05:10"));
  schedule.replan(at("04:00"));
  expect([schedule.agenda.of(bus).length, schedule.evaluatedAt]).toEqual([1, at("04:00")]);
});

test("an event that is put off a hundred times is looked at once before its end, not once for each edit", () => {
  const { schedule } = aPicture();
  schedule.put(stored, at("05:10"));
  for (let edit = 1; edit <= 100; edit += 1) {
    const start = after(at("05:10"), minutes(edit));
    schedule.put(live(anEvent({ randomizeStart: millis(0), start })), at("05:10"));
  }
  expect([...schedule.dueForSummary(at("06:00"))]).toEqual([stored.id]);
  schedule.condenseLater(stored.id, at("07:50"));
  expect([...schedule.dueForSummary(at("07:49"))]).toEqual([]);
  expect([...schedule.dueForSummary(at("07:50"))]).toEqual([stored.id]);
});

function heapUsed(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  return process.memoryUsage().heapUsed;
}

test("a hundred events in force for the same 500 vehicles take at most 140 bytes each for a vehicle", () => {
  const vehicles = Array.from({ length: 500 }, (_, index) => aVehicle({ id: `veh-${index}`, charger: null }));
  const { schedule } = aPicture({ vehicles, settings: settingsWith({ untargeted: "all" }) });
  const putAll = (first: number, count: number): void => {
    for (let index = first; index < first + count; index += 1)
      schedule.put(live(anEvent({ id: `EV-${index}`, targets: [], duration: minutes(600) })), at("05:10"));
  };
  // The last four expansions are kept, and each vehicle has a plan.
  putAll(0, 20);
  schedule.agenda.advance(at("07:00"));
  const before = heapUsed();
  putAll(20, 100);
  schedule.agenda.advance(at("07:01"));
  expect(schedule.agenda.size).toBe(60_000);
  expect((heapUsed() - before) / 50_000).toBeLessThan(140);
});
