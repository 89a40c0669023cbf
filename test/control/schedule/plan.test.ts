import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { Dispatch } from "../../../src/control/schedule/expand.ts";
import { dispatchesOf, type Stretch, stretchesOf } from "../../../src/control/schedule/plan.ts";
import type { ControlSettings } from "../../../src/control/ports.ts";
import { amperes, type Instant, instant, iso, minutes, seconds, watts } from "../../../src/domain/units.ts";
import { aCharger, aContext, aVehicle } from "../../support/aCharger.ts";
import { Holds } from "../../../src/control/holds/holds.ts";
import { aLevelHold, aRelease } from "../../support/aHold.ts";
import { aDispatch, anEvent, at, live, withdrawn } from "../../support/anEvent.ts";

const clock = (moment: Instant): string => iso(moment).slice(11, 19);
const stretches = (
  dispatches: readonly Dispatch[],
  settings: Partial<ControlSettings> = {},
): readonly Stretch[] =>
  stretchesOf(aCharger(), aVehicle(), dispatches, aContext(["veh-214"], settings), clock);
const told = (dispatches: readonly Dispatch[]) =>
  stretches(dispatches).map(
    ({ from, until, winner }) => `${clock(from)} ${clock(until)} ${winner?.event.id}`,
  );
const window = (id: string, priority: number, from: string, until: string) =>
  aDispatch({ from: at(from), until: at(until) }, { id, priority });

const end = (from: string, until: string) =>
  ({ since: at(from), end: { kind: "at", at: at(until) }, cap: at("23:00") }) as const;

test("the level of a hold is a stretch with its end; an exemption is a gap; an event goes on behind both", () => {
  const holds = new Holds();
  holds.put(aLevelHold({ id: "hold-7-1", ...end("05:10", "05:20") }));
  holds.put(aLevelHold({ id: "hold-7-2", level: null, ...end("05:30", "05:40") }));
  holds.put({ ...aRelease("bay-01", ["EV-2"], at("05:50"), at("06:00")), id: "hold-7-3" });
  const dispatches = [window("EV-1", 1, "05:00", "05:55"), window("EV-2", 0, "05:45", "06:00")];
  const planned = stretchesOf(aCharger(), aVehicle(), dispatches, aContext(["veh-214"], {}), clock, holds);
  expect(planned.map(({ from, until, winner }) => [clock(from), clock(until), winner?.event.id])).toEqual([
    ["05:00:00", "05:10:00", "EV-1"],
    ["05:10:00", "05:20:00", undefined],
    ["05:20:00", "05:30:00", "EV-1"],
    ["05:40:00", "05:45:00", "EV-1"],
    ["05:45:00", "05:50:00", "EV-2"],
    ["05:50:00", "05:55:00", "EV-1"],
  ]);
  expect(planned[1]?.reason.words).toMatch(/^bay-01 \(Bus 214\) to 10 A until 05:20:00: /);
});

test("the level of a hold until events ends with them, although another hold lasts longer", () => {
  const holds = new Holds();
  const events = { kind: "events", events: [aDispatch().event.id], latest: at("05:30") } as const;
  holds.put(aLevelHold({ id: "hold-7-1", since: at("05:00"), end: events, cap: at("23:00") }));
  const elsewhere = { kind: "charger", charger: aCharger({ id: "bay-02" }).id } as const;
  holds.put(aLevelHold({ id: "hold-7-2", scope: elsewhere, ...end("05:00", "09:00") }));
  const planned = stretchesOf(aCharger(), aVehicle(), [], aContext(["veh-214"], {}), clock, holds);
  expect(planned.map(({ from, until, winner }) => [clock(from), clock(until), winner])).toEqual([
    ["05:00:00", "05:30:00", null],
  ]);
});

test("without dispatches no charger has a stretch", () => {
  expect(stretches([])).toEqual([]);
});

test("an event is one stretch, with its level and its reason", () => {
  const [only, more] = stretches([aDispatch({ setpoint: { kind: "current", amperes: amperes(3) } })]);
  expect(more).toBeUndefined();
  expect(only).toMatchObject({ charger: "bay-01", vehicle: "veh-214", desired: { kind: "pause" } });
  expect(only?.reason.words).toMatch(/^bay-01 \(Bus 214\) paused until 06:00:00: event EV-7731 priority 1/);
});

test("F54: when the winner ends the next one resumes, and between events there is a gap", () => {
  expect(
    told([
      window("A", 2, "05:00", "06:00"),
      window("B", 1, "05:20", "05:40"),
      window("C", 1, "07:00", "08:00"),
      window("D", 1, "08:00", "09:00"),
    ]),
  ).toEqual([
    "05:00:00 05:20:00 A",
    "05:20:00 05:40:00 B",
    "05:40:00 06:00:00 A",
    "07:00:00 08:00:00 C",
    "08:00:00 09:00:00 D",
  ]);
});

test("an overruled event that starts or ends does not cut the winner's stretch", () => {
  expect(told([window("A", 1, "05:00", "06:00"), window("B", 2, "05:20", "05:40")])).toEqual([
    "05:00:00 06:00:00 A",
  ]);
});

test("every vehicle's dispatch is planned, the earliest first, and none of a withdrawn event", () => {
  const later = anEvent({ id: "EV-2", start: at("07:00") });
  const events = [live(later), live(anEvent()), withdrawn(anEvent({ id: "EV-3" }), at("04:00"))];
  expect(dispatchesOf(events, aContext()).map(({ event }) => event.id)).toEqual(["EV-7731", "EV-2"]);
});

/** Seconds of an imaginary minute. */
const GRID = 60;
const second = (n: number): Instant => instant(at("05:00") + seconds(n));
const schedule = fc
  .array(
    fc.record({
      from: fc.nat(GRID - 1),
      length: fc.integer({ min: 1, max: GRID }),
      priority: fc.option(fc.integer({ min: 0, max: 3 })),
      revision: fc.nat(2),
      created: fc.nat(1),
      inPower: fc.boolean(),
      level: fc.integer({ min: 0, max: 5 }),
    }),
    { maxLength: 7 },
  )
  .map((events) =>
    events.map(({ from, length, priority, revision, created, inPower, level }, index) =>
      aDispatch(
        {
          from: second(from),
          until: second(from + length),
          setpoint: inPower
            ? { kind: "power", watts: watts(level * 6 * 690) }
            : { kind: "current", amperes: amperes(level * 6) },
        },
        { id: `EV-${index}`, priority, revision: instant(revision), created: instant(created) },
      ),
    ),
  );
const knobs = fc.record({
  priority: fc.constantFrom("lower" as const, "higher" as const),
  priorityZero: fc.constantFrom("highest" as const, "unset" as const),
  ties: fc.constantFrom("newest" as const, "mostRestrictive" as const),
});
type Knobs = typeof knobs extends fc.Arbitrary<infer T> ? T : never;

const inWatts = ({ setpoint }: Dispatch) =>
  setpoint.kind === "power" ? setpoint.watts : setpoint.amperes * 690;

/** DESIGN 5.4 read aloud: is `a` to be obeyed rather than `b`? */
function beats(a: Dispatch, b: Dispatch, { priority, priorityZero, ties }: Knobs): boolean {
  const place = ({ event }: Dispatch): "first" | "ranked" | "last" => {
    if (event.priority === null) return "last";
    if (event.priority !== 0) return "ranked";
    return priorityZero === "unset" ? "last" : "first";
  };
  const [mine, theirs] = [place(a), place(b)];
  if (mine !== theirs) return mine === "first" || theirs === "last";
  if (mine === "ranked" && a.event.priority !== b.event.priority) {
    const smaller = (a.event.priority ?? 0) < (b.event.priority ?? 0);
    return priority === "lower" ? smaller : !smaller;
  }
  if (ties === "mostRestrictive" && inWatts(a) !== inWatts(b)) return inWatts(a) < inWatts(b);
  if (a.event.revision !== b.event.revision) return a.event.revision > b.event.revision;
  if (a.event.created !== b.event.created) return a.event.created > b.event.created;
  return a.event.id > b.event.id;
}

test("F54: in every second of any schedule the winner is the one that a brute-force reading of the rules names", () => {
  fc.assert(
    fc.property(schedule, knobs, (dispatches, knobs) => {
      const plan = stretches(dispatches, knobs);
      for (let n = 0; n <= 2 * GRID; n += 1) {
        const holding = dispatches.filter(({ from, until }) => from <= second(n) && second(n) < until);
        const oracle = holding.find((one) =>
          holding.every((other) => other === one || beats(one, other, knobs)),
        );
        const now = plan.filter(({ from, until }) => from <= second(n) && second(n) < until);
        expect(now.map(({ winner }) => winner)).toEqual(oracle === undefined ? [] : [oracle]);
      }
    }),
    { numRuns: 300 },
  );
});

test("the stretches of any schedule follow each other without overlap and cover exactly what its windows cover", () => {
  fc.assert(
    fc.property(schedule, knobs, (dispatches, knobs) => {
      const plan = stretches(dispatches, knobs);
      plan.forEach(({ from, until }, index) => {
        expect(from).toBeLessThan(until);
        expect(from).toBeGreaterThanOrEqual(plan[index - 1]?.until ?? -Infinity);
      });
      expect(joined(plan)).toEqual(joined(dispatches));
    }),
  );
});

/** The union of windows, as few as possible. */
function joined(windows: readonly { readonly from: Instant; readonly until: Instant }[]) {
  const union: { from: Instant; until: Instant }[] = [];
  for (const { from, until } of windows.toSorted((a, b) => a.from - b.from)) {
    const last = union.at(-1);
    if (last !== undefined && from <= last.until) last.until = instant(Math.max(last.until, until));
    else union.push({ from, until });
  }
  return union;
}

test("20,000 vehicles in one event are planned in a moment", () => {
  const fleet = Array.from({ length: 20_000 }, (_, n) => `veh-${n}`);
  const event = anEvent({ targets: [{ type: "vehicle", values: fleet }], duration: minutes(1) });
  expect(dispatchesOf([live(event)], aContext(fleet))).toHaveLength(20_000);
});
