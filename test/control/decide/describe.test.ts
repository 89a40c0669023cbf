import { expect, test } from "vitest";
import {
  eventAudit,
  formatAsk,
  formatChange,
  nameOf,
  eventWarnings,
  levelRangeOf,
  unprovenDelete,
} from "../../../src/control/decide/describe.ts";
import type { Ask, KnownEvent } from "../../../src/domain/event.ts";
import type { Charger } from "../../../src/domain/charger.ts";
import { targeting } from "../../../src/control/schedule/targeting.ts";
import { amperes, type Instant, iso, minutes, seconds, watts } from "../../../src/domain/units.ts";
import { aCharger, aContext, settingsWith } from "../../support/aCharger.ts";
import { anEvent, at, live, targetsOf, withdrawn } from "../../support/anEvent.ts";

const clock = (moment: Instant): string => iso(moment).slice(11, 19);
const fleet = aContext(["veh-214", "veh-215"]);
type Changes = Parameters<typeof anEvent>[0];
const revision = (changes: Changes = {}) => live(anEvent(changes)).revision;
const asked = (changes: Changes = {}) =>
  formatAsk(revision(changes), targeting(anEvent(changes), fleet), settingsWith(), clock);
const changed = (changes: Changes) => formatChange(revision(), revision(changes), settingsWith(), clock);
const usage = {
  payloadType: "USAGE",
  readingType: "DIRECT_READ",
  targets: [],
  aggregate: false,
  historical: true,
  frequency: null,
  numIntervals: null,
  repeat: null,
  startInterval: null,
};
const delivery = {
  source: "webhook",
  at: at("05:10"),
  askedAt: at("05:10"),
  notices: [],
  complete: false,
} as const;
const by = { expansion: fleet, settings: settingsWith(), wallClock: clock, levelRange: levelRangeOf([]) };

test("an event's text has its level, vehicles, times, random start and priority", () => {
  expect(asked()).toBe("16 A for 1 vehicle, 05:00:00 to 06:00:00, spread 600 s, priority 1");
  expect(
    asked({
      ask: { kind: "power", level: 11 },
      targets: targetsOf("veh-214", "veh-215"),
      randomizeStart: seconds(0),
      priority: null,
    }),
  ).toBe("11 kW for 2 vehicles, 05:00:00 to 06:00:00, no priority");
});

test("F55: an unknown payload type is shown as received", () => {
  expect(asked({ ask: { kind: "unknown", payloadType: "Dimming" } })).toMatch(/^Dimming for 1 vehicle/);
});

test("F52: a change names each difference, with both values", () => {
  expect(changed({ duration: minutes(90), ask: { kind: "current", level: 10 } })).toBe(
    "until 06:00:00 -> 06:30:00, asks 16 A -> 10 A",
  );
  const rest = { start: at("05:30"), randomizeStart: seconds(60), priority: null, targets: [] };
  expect(changed(rest)).toBe(
    "from 05:00:00 -> 05:30:00, until 06:00:00 -> 06:30:00, spread 600 s -> 60 s, priority 1 -> null, other targets",
  );
  expect(changed({ reports: [usage] })).toBe("other reports");
  expect(changed({ name: "Morning peak" })).toBe("nothing that is acted on");
});

function odd(changes: Changes, chargers: readonly Charger[] = [aCharger()], settings = fleet.settings) {
  const context = { ...fleet, settings };
  const aim = targeting(anEvent(changes), context);
  return eventWarnings(revision(changes), aim, context, levelRangeOf(chargers), at("04:30"));
}

test("an ordinary event has no warnings", () => {
  expect(odd({})).toEqual([]);
});

test("F55 F57: an event that is never acted on has a warning", () => {
  expect(odd({ ask: { kind: "unknown", payloadType: "X" } })).toEqual([
    "payload type X is not known, CurrentLevel and PowerLevel are: never acted on",
  ]);
  expect(odd({ duration: minutes(0) })).toEqual(["its duration is zero: never acted on"]);
  expect(odd({ start: at("03:00") })).toEqual(["it is over already"]);
  expect(odd({ start: at("03:21") })).toEqual([]);
});

test("F56: targets that are not ours are counted and named, and target types that would be known are listed", () => {
  expect(odd({ targets: targetsOf("veh-214", "x") })).toEqual(["1 of its vehicles is not ours: x"]);
  const targets = [...targetsOf("veh-214", "x", "y"), { type: "group", values: ["all"] }];
  expect(odd({ targets })).toEqual([
    "2 of its vehicles are not ours: x, y",
    "target types group mean no vehicles here, only vehicle (control.vehicleTargetTypes)",
  ]);
});

test("at a site of many with one account at the partner, vehicles of the others are no warning", () => {
  const settings = settingsWith({ sharesAccount: true });
  expect(odd({ targets: targetsOf("veh-214", "x") }, [aCharger()], settings)).toEqual([]);
});

test("an event without targets has a warning that names its vehicles", () => {
  expect(odd({ targets: [] })).toEqual(["it has no targets: nobody"]);
  const all = settingsWith({ untargeted: "all" });
  expect(odd({ targets: [] }, [aCharger()], all)).toEqual(["it has no targets: all vehicles"]);
});

test("a level that suggests wrong units has a warning", () => {
  const asks = (ask: Ask) => odd({ ask }, [aCharger({ id: "a" }), aCharger({ id: "b" })]).length;
  const A = (level: number) => asks({ kind: "current", level });
  expect([A(640), A(641), A(0.3), A(0.29), A(0), A(-641)]).toEqual([0, 1, 0, 1, 0, 1]);
  const kW = (level: number) => asks({ kind: "power", level });
  expect([kW(441), kW(442), kW(0.207), kW(0.206)]).toEqual([0, 1, 0, 1]);
  expect(odd({ ask: { kind: "power", level: 11_000 } })).toEqual([
    "11000 kW is far outside what the chargers can do: are the units right?",
  ]);
  expect(odd({ ask: { kind: "power", level: 11 } }, [aCharger()], settingsWith({ powerUnit: "W" }))).toEqual([
    "11 W is far outside what the chargers can do: are the units right?",
  ]);
});

test("a charger that declares only watts, or nothing, is measured by what it declares", () => {
  const dc = { minCurrent: null, maxCurrent: null, minPower: watts(6_900), maxPower: watts(69_000) };
  const A = (level: number, charger: Partial<Charger>) =>
    odd({ ask: { kind: "current", level } }, [aCharger({ ...dc, ...charger })]).length;
  expect([A(2_000, {}), A(2_001, {}), A(0.5, {}), A(0.49, {})]).toEqual([0, 1, 0, 1]);
  expect([A(1e9, { minPower: null, maxPower: null }), A(1e-9, { minPower: null, maxPower: null })]).toEqual([
    0, 0,
  ]);
  expect(odd({}, [aCharger({ minCurrent: amperes(0) })])).toEqual([]);
});

test("an event is called by its id, and by its name where it has one", () => {
  expect([nameOf(anEvent()), nameOf(anEvent({ name: "" }))]).toEqual([
    'event EV-7731 "Evening peak"',
    "event EV-7731",
  ]);
});

test("the row of a withdrawn event has its name where that was known, and the row of a doubtful delete its id", () => {
  const rowOf = (before: KnownEvent | undefined) =>
    eventAudit(by, withdrawn(anEvent(), at("05:10")), before, "withdrawn", delivery);
  const { id } = anEvent();
  const named = anEvent({ name: "Evening peak" });
  expect(rowOf(live(named))).toMatchObject({
    entry: { words: `event ${id} "Evening peak" was withdrawn (webhook)`, event: id },
  });
  for (const before of [undefined, withdrawn(named, at("05:05"))])
    expect(rowOf(before)).toMatchObject({ entry: { words: `event ${id} was withdrawn (webhook)` } });
  expect(unprovenDelete(id, delivery)).toMatchObject({
    entry: { event: id, facts: { outcome: "unproven", source: "webhook" } },
  });
});

test("the row of a new event has each report that it asks for, with long names cut", () => {
  const reports = [usage, { ...usage, payloadType: "X".repeat(200), readingType: "MEAN" }];
  const known = live(anEvent({ reports }));
  expect(eventAudit(by, known, undefined, "new", delivery)).toMatchObject({
    entry: {
      facts: {
        outcome: "new",
        reports: [
          { payloadType: "USAGE", readingType: "DIRECT_READ" },
          { payloadType: "X".repeat(128), readingType: "MEAN" },
        ],
      },
    },
  });
});
