import * as fc from "fast-check";
import { expect, test } from "vitest";
import { Agenda } from "../../../src/control/schedule/agenda.ts";
import type { Dispatch } from "../../../src/control/schedule/expand.ts";
import { eventId, instant, vehicleId } from "../../../src/domain/units.ts";
import { settingsWith } from "../../support/aCharger.ts";
import { aDispatch } from "../../support/anEvent.ts";
import { runToEnd } from "../../../src/platform/cooperative.ts";

const dispatch = (event: string, vehicle: string, from: number, until: number): Dispatch =>
  aDispatch({ vehicle: vehicleId(vehicle), from: instant(from), until: instant(until) }, { id: event });
const EV = eventId("EV-1");
const bus = vehicleId("veh-1");

test("a window is due when it starts and when it ends, and is then dropped", () => {
  const agenda = new Agenda(settingsWith());
  const window = dispatch("EV-1", "veh-1", 10, 20);
  expect([...runToEnd(agenda.replace(EV, [window], instant(5)))]).toEqual([]);
  expect([agenda.next(), agenda.size]).toEqual([10, 1]);
  expect(agenda.advance(instant(9)).affectedVehicles.size).toBe(0);
  expect(agenda.advance(instant(10))).toEqual({
    affectedVehicles: new Set([bus]),
    started: [window],
    ended: [],
    isComplete: true,
  });
  expect([agenda.next(), agenda.allInForce(bus, instant(10))]).toEqual([20, [window]]);
  expect(agenda.advance(instant(20))).toEqual({
    affectedVehicles: new Set([bus]),
    started: [],
    ended: [window],
    isComplete: true,
  });
  expect([agenda.next(), agenda.size, agenda.of(bus)]).toEqual([undefined, 0, []]);
});

test("boundaries of many vehicles are handled in parts, and an event replaced in between leaves nothing behind", () => {
  const agenda = new Agenda(settingsWith());
  const windows = ["veh-1", "veh-2", "veh-3"].map((vehicle) => dispatch("EV-1", vehicle, 10, 20));
  runToEnd(agenda.replace(EV, windows, instant(15)));
  const first = agenda.advance(instant(20), 1);
  expect([first.isComplete, first.ended.length, agenda.next(), agenda.size]).toEqual([false, 1, 20, 2]);
  const second = agenda.advance(instant(20), 1);
  expect([second.isComplete, second.ended.length]).toEqual([false, 1]);
  runToEnd(agenda.replace(EV, [dispatch("EV-1", "veh-1", 30, 40)], instant(20)));
  expect([agenda.advance(instant(20), 1).isComplete, agenda.size]).toEqual([true, 1]);
  expect(agenda.advance(instant(40))).toMatchObject({ ended: [{ from: 30 }], isComplete: true });
  expect([agenda.size, agenda.ofEvent(EV)]).toEqual([0, []]);
});

test("a dispatch in force affects its vehicle at once, and only its end is still due", () => {
  const agenda = new Agenda(settingsWith());
  expect([...runToEnd(agenda.replace(EV, [dispatch("EV-1", "veh-1", 10, 20)], instant(15)))]).toEqual([bus]);
  expect(agenda.next()).toBe(20);
});

test("a withdrawn event affects the vehicles that it held, and no other", () => {
  const agenda = new Agenda(settingsWith());
  const later = dispatch("EV-1", "veh-2", 50, 60);
  runToEnd(agenda.replace(EV, [dispatch("EV-1", "veh-1", 10, 20), later], instant(5)));
  expect([...runToEnd(agenda.replace(EV, [], instant(15)))]).toEqual([bus]);
  expect([agenda.size, agenda.of(later.vehicle)]).toEqual([0, []]);
});

test("other events of the same vehicle stay when one is replaced", () => {
  const agenda = new Agenda(settingsWith());
  const other = dispatch("EV-2", "veh-1", 10, 30);
  runToEnd(agenda.replace(EV, [dispatch("EV-1", "veh-1", 10, 20)], instant(0)));
  runToEnd(agenda.replace(eventId("EV-2"), [other], instant(0)));
  runToEnd(agenda.replace(EV, [], instant(0)));
  expect(agenda.of(bus)).toEqual([other]);
});

test("F57: a window that is over when it arrives is not kept", () => {
  const agenda = new Agenda(settingsWith());
  expect([...runToEnd(agenda.replace(EV, [dispatch("EV-1", "veh-1", 10, 20)], instant(20)))]).toEqual([]);
  expect([agenda.size, agenda.next()]).toEqual([0, undefined]);
});

test("an event whose windows have all ended can still be replaced", () => {
  const agenda = new Agenda(settingsWith());
  runToEnd(agenda.replace(EV, [dispatch("EV-1", "veh-1", 10, 20)], instant(0)));
  agenda.advance(instant(30));
  expect([...runToEnd(agenda.replace(EV, [dispatch("EV-1", "veh-1", 40, 50)], instant(30)))]).toEqual([]);
  expect(agenda.next()).toBe(40);
});

test("F59: an event that is edited without end does not fill the memory with boundaries", () => {
  const agenda = new Agenda(settingsWith());
  for (let edit = 0; edit < 5_000; edit += 1) {
    const far = dispatch("EV-1", "veh-1", 1_000_000 + edit, 2_000_000 + edit);
    runToEnd(agenda.replace(EV, [far], instant(edit)));
  }
  let looks = 0;
  for (let next = agenda.next(); next !== undefined; next = agenda.next()) {
    looks += 1;
    agenda.advance(next);
  }
  expect(looks).toBeLessThan(1_200);
});

test("a window that lies ahead still starts at its time after another event was edited thousands of times", () => {
  const agenda = new Agenda(settingsWith());
  const ahead = dispatch("EV-2", "veh-2", 500_000, 600_000);
  runToEnd(agenda.replace(eventId("EV-2"), [ahead], instant(0)));
  for (let edit = 0; edit < 5_000; edit += 1) {
    runToEnd(
      agenda.replace(EV, [dispatch("EV-1", "veh-1", 1_000_000 + edit, 2_000_000 + edit)], instant(edit)),
    );
  }
  agenda.advance(instant(499_999));
  expect(agenda.next()).toBe(500_000);
  expect(agenda.advance(instant(500_000)).started).toEqual([ahead]);
});

test("nothing is kept of a withdrawn event", () => {
  const agenda = new Agenda(settingsWith());
  runToEnd(agenda.replace(EV, [dispatch("EV-1", "veh-1", 10, 20)], instant(5)));
  runToEnd(agenda.replace(EV, [], instant(6)));
  expect([...agenda.ofEvent(EV)]).toEqual([]);
});

const step = fc.record({
  event: fc.constantFrom("EV-1", "EV-2", "EV-3"),
  windows: fc.array(
    fc.record({
      vehicle: fc.constantFrom("veh-1", "veh-2"),
      from: fc.nat(60),
      length: fc.integer({ min: 1, max: 30 }),
    }),
    { maxLength: 3 },
  ),
  pause: fc.nat(10),
  advance: fc.boolean(),
});

test("after any events and any passage of time, the agenda equals a plain list of dispatches", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const agenda = new Agenda(settingsWith());
      let list: readonly Dispatch[] = [];
      let now = instant(0);
      let seen = instant(0);
      const cameAt = new Map<Dispatch, number>();
      const holding = (vehicle: string, moment: number) =>
        list.filter((d) => d.vehicle === vehicle && d.from <= moment && moment < d.until);
      for (const { event, windows, pause, advance } of steps) {
        now = instant(now + pause);
        if (advance) {
          const starts = (d: Dispatch) => Math.max(seen, cameAt.get(d) ?? 0) < d.from && d.from <= now;
          const crossed = list.filter((d) => starts(d) || d.until <= now);
          const { affectedVehicles: touched, ended } = agenda.advance(now);
          for (const { vehicle } of crossed) expect(touched).toContain(vehicle);
          expect(new Set(ended)).toEqual(new Set(list.filter((d) => d.until <= now)));
          list = list.filter((d) => d.until > now);
          seen = now;
        }
        const planned = windows.map((w) =>
          dispatch(event, w.vehicle, now + w.from - 30, now + w.from - 30 + w.length),
        );
        for (const one of planned) cameAt.set(one, now);
        const held = list.filter((d) => d.event.id === event && d.from <= now && now < d.until);
        const fresh = planned.filter((d) => d.from <= now && now < d.until);
        const touched = runToEnd(agenda.replace(eventId(event), planned, now));
        expect(touched).toEqual(new Set([...held, ...fresh].map(({ vehicle }) => vehicle)));
        list = [...list.filter((d) => d.event.id !== event), ...planned.filter((d) => d.until > now)];
        expect(agenda.size).toBe(list.length);
        for (const vehicle of ["veh-1", "veh-2"]) {
          expect(new Set(agenda.of(vehicleId(vehicle)))).toEqual(
            new Set(list.filter((d) => d.vehicle === vehicle)),
          );
          expect(new Set(agenda.allInForce(vehicleId(vehicle), now))).toEqual(new Set(holding(vehicle, now)));
        }
        const boundaries = list.flatMap(({ from, until }) => [from, until]).filter((moment) => moment > now);
        expect(agenda.next() ?? Infinity).toBeLessThanOrEqual(Math.min(Infinity, ...boundaries));
      }
    }),
  );
});
