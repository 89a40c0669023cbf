import { expect, test } from "vitest";

import {
  type Ended,
  limitedSentence,
  reasonOf,
  reasonWhileDeferred,
} from "../../../src/control/decide/reason.ts";
import type { Dispatch } from "../../../src/control/schedule/expand.ts";
import type { Decision } from "../../../src/domain/command.ts";
import type { Hold } from "../../../src/domain/hold.ts";
import { reasonIn, restIn, restOf } from "../../../src/domain/reason.ts";
import {
  amperes,
  eventId,
  type Instant,
  instant,
  iso,
  millis,
  seconds,
  vehicleId,
  watts,
} from "../../../src/domain/units.ts";
import { aCharger, aVehicle, settingsWith } from "../../support/aCharger.ts";
import { type Circumstances, circumstancesOf, verdict } from "../../support/aVerdict.ts";
import { aLevelHold, aRelease } from "../../support/aHold.ts";
import { aDispatch, at } from "../../support/anEvent.ts";

const clock = (moment: Instant): string => iso(moment).slice(11, 19);

function reason(
  inForce: readonly Dispatch[],
  decision: Partial<Decision> = {},
  more: Partial<Circumstances> = {},
  ended: Ended = "in its time",
) {
  const now = verdict(circumstancesOf(inForce, more), settingsWith());
  const { desired, until, winner } = now;
  const told: Decision = {
    desired,
    until,
    vehicle: vehicleId("veh-214"),
    event: winner?.event.id ?? eventId("EV-7731"),
    cause: winner === null ? "ended" : "event",
    ...decision,
  };
  return reasonOf(now, told, clock, ended);
}

const offset = seconds(137);
const from = instant(at("05:00") + offset);
const winner = aDispatch({ offset, from, until: at("06:00:41") }, { id: "EV-7731", priority: 1 });
const loser = aDispatch({}, { id: "EV-7702", priority: 2 });

test("the reason names the winner, its end, its offset, and the overruled events", () => {
  expect(reason([loser, winner]).words).toBe(
    "bay-01 (Bus 214) to 16 A until 06:00:41: event EV-7731 priority 1, offset 137 s of 600 s; overrules EV-7702",
  );
});

test("the reason has the same facts as values", () => {
  expect(reason([loser, winner])).toMatchObject({
    cause: "event",
    until: "2026-11-21T06:00:41.000Z",
    winner: {
      event: "EV-7731",
      priority: 1,
      asked: "16 A",
      from: "2026-11-21T05:02:17.000Z",
      until: "2026-11-21T06:00:41.000Z",
      offsetMs: 137_000,
      spreadMs: 600_000,
      cutAt: null,
    },
    overruled: [{ event: "EV-7702" }],
    limits: [],
    hold: null,
    occupant: { kind: "vehicle", vehicle: "veh-214", source: "fixed" },
  });
});

test("an event without a random start names no offset", () => {
  const punctual = aDispatch({ offset: millis(0) }, { priority: 1, randomizeStart: millis(0) });
  expect(reason([punctual]).words).toMatch(/: event EV-7731 priority 1$/);
});

test("every limit that applied is named", () => {
  const asked = aDispatch({ ...winner, setpoint: { kind: "current", amperes: amperes(40) } }, { id: "EV-1" });
  const limited = reason([asked], {}, { vehicle: aVehicle({ maxCurrent: amperes(20) }) });
  expect(limited.words).toMatch(
    /600 s; 40 A asked, the charger allows 32 A; 32 A asked, the vehicle allows 20 A$/,
  );
  expect(limited.limits).toEqual([
    { by: "charger maximum", asked: "40 A", allowed: "32 A" },
    { by: "vehicle maximum", asked: "32 A", allowed: "20 A" },
  ]);
});

test.each([
  [{ kind: "current", amperes: amperes(3) }, {}, "3 A asked, less than the charger can: pause"],
  [
    { kind: "current", amperes: amperes(3) },
    { belowMinimum: "hold" },
    "3 A asked, less than the charger can: held at 6 A",
  ],
  [{ kind: "power", watts: watts(-9000) }, {}, "-9 kW asked, it cannot feed back: pause"],
  [
    { kind: "power", watts: watts(-9000) },
    { maxDischarge: watts(5000) },
    "-9 kW asked, it can feed back -5 kW",
  ],
] as const)("%j on a charger with %j reads: %s", (setpoint, charger, words) => {
  expect(reason([aDispatch({ ...winner, setpoint })], {}, { charger: aCharger(charger) }).words).toContain(
    `; ${words}`,
  );
});

test("a pause names its end, an event without priority is described as such, offsets keep their tenths", () => {
  const pause = aDispatch(
    { ...winner, offset: millis(2_440), setpoint: { kind: "current", amperes: amperes(0) } },
    { priority: null },
  );
  expect(reason([{ ...pause, event: { ...pause.event, priority: null } }]).words).toBe(
    "bay-01 (Bus 214) paused until 06:00:41: event EV-7731 without priority, offset 2.4 s of 600 s; 0 A asked: pause",
  );
});

test("F53: a spread release names the withdrawal or change of its event, and when", () => {
  const cut = reason([{ ...winner, cutAt: at("05:40") }]);
  expect(cut.words).toMatch(/; withdrawn or changed at 05:40:00, release is spread$/);
  expect(cut.winner).toMatchObject({ cutAt: "2026-11-21T05:40:00.000Z" });
});

const nobody = { occupant: { kind: "nobody" }, vehicle: null } as const;
const hold = aRelease("bay-01", ["EV-7731", "EV-7702"]);

test.each([
  ["its event has ended", {}, {}, "bay-01 (Bus 214) released: event EV-7731 has ended"],
  ["its vehicle has left", {}, nobody, "bay-01 released: veh-214 has left"],
  [
    "its vehicle has left for another of ours",
    {},
    { vehicle: aVehicle({ id: "veh-1", name: "Bus 1" }) },
    "bay-01 (Bus 1) released: veh-214 has left",
  ],
  ["nobody knows who was there", { vehicle: null }, nobody, "bay-01 released: the vehicle has left"],
  [
    "a stranger has come",
    {},
    { occupant: { kind: "unknown", identity: "rfid 7" }, vehicle: null } as const,
    "bay-01 released: veh-214 has left, rfid 7 is not ours",
  ],
  [
    "a stranger has come after nobody we know of",
    { vehicle: null },
    { occupant: { kind: "unknown", identity: "rfid 7" }, vehicle: null } as const,
    "bay-01 released: the vehicle has left, rfid 7 is not ours",
  ],
  ["setpointd stops", { cause: "stop" }, {}, "bay-01 (Bus 214) released: setpointd stops"],
  ["an operator freed it", { cause: "operator" }, {}, "bay-01 (Bus 214) released: by an operator"],
  [
    "the state was lost",
    { event: null },
    {},
    "bay-01 (Bus 214) released: the state was lost, so its former setpoint is not known",
  ],
] as const)("a release names its reason: %s", (_, decision, more, words) => {
  expect(reason([], { desired: { kind: "release" }, ...decision }, more).words).toBe(words);
});

test("the record keeps the member `said` of an unknown vehicle", () => {
  const occupant = { kind: "unknown", identity: "rfid 7" } as const;
  const released = { desired: { kind: "release" } } as const;
  expect(reason([], released, { occupant, vehicle: null }).occupant).toEqual({
    kind: "unknown",
    said: "rfid 7",
  });
});

test.each([
  ["withdrawn", "was withdrawn"],
  ["no longer asked", "was changed and no longer asks for Bus 214"],
  ["cut short", "was changed and has ended"],
  ["put off", "was changed and does not ask for Bus 214 yet"],
] as const)("a release names how its event ended: %s", (ended, words) => {
  const { words: said } = reason([], { desired: { kind: "release" } }, {}, ended);
  expect(said).toBe(`bay-01 (Bus 214) released: event EV-7731 ${words}`);
});

test("an operator's release names the events that it ends, and until when", () => {
  const freed = reason([winner, loser], { desired: { kind: "release" }, cause: "operator" }, { hold });
  expect(freed.words).toBe("bay-01 (Bus 214) released: by an operator, from EV-7731, EV-7702 until 06:00:00");
  expect(freed.hold).toEqual({
    id: "hold-7-1",
    scope: { charger: "bay-01" },
    kind: "exempt",
    level: null,
    end: "events",
    by: "operator",
    reason: "release",
    since: "2026-11-21T05:10:00.000Z",
    until: "2026-11-21T06:00:00.000Z",
    events: ["EV-7731", "EV-7702"],
    eventCount: 2,
  });
});

const heldWords = (changes: Partial<Hold>) =>
  reason([winner], { desired: { kind: "release" }, cause: "operator" }, { hold: aLevelHold(changes) }).words;

test("another hold is named with its owner, its end, and the reason where one was given", () => {
  expect(heldWords({ level: null })).toBe(
    "bay-01 (Bus 214) released: hold hold-7-1 of anna, until 06:00:00: leaves early",
  );
  expect(heldWords({ level: null, reason: "" })).toBe(
    "bay-01 (Bus 214) released: hold hold-7-1 of anna, until 06:00:00",
  );
});

test("five of hundreds of overruled or excluded dispatches are named, and the rest is counted", () => {
  const losers = Array.from({ length: 460 }, (_, index) =>
    aDispatch({}, { id: `EV-${index}`, priority: index + 2 }),
  );
  const why = reason([winner, ...losers]);
  expect(why.words).toContain("; overrules EV-0, EV-1, EV-2, EV-3, EV-4 and 455 more");
  expect([why.overruled.length, why.overruledCount]).toEqual([5, 460]);
  const events = losers.map(({ event }) => event.id);
  const freed = reason(
    losers,
    { desired: { kind: "release" }, cause: "operator" },
    { hold: aRelease("bay-01", events) },
  );
  expect(freed.words).toContain("from EV-0, EV-1, EV-2, EV-3, EV-4 and 455 more until");
  expect(freed.hold).toMatchObject({ events: events.slice(0, 5), eventCount: 460 });
});

test("a reason that an earlier version wrote out in full is read with five names and the count", () => {
  const { overruledCount: _, ...old } = reason([winner, loser]);
  const named = Array.from({ length: 20 }, () => old.overruled[0] ?? null);
  const read = reasonIn({ ...old, overruled: named });
  expect([read?.overruled.length, read?.overruledCount]).toEqual([5, 20]);
});

test("a held-back increase names its cause and its end, as text and as values", () => {
  const stays = reason([], {
    desired: { kind: "current", amperes: amperes(10) },
    until: at("06:05"),
    cause: "held",
  });
  expect(stays.words).toBe("bay-01 (Bus 214) stays at 10 A until 06:05:00: the next level has to wait");
  expect(stays.held).toBeNull();
  const held = reasonWhileDeferred(stays, { by: "release ramp", until: at("06:05") }, aCharger(), clock);
  expect(held.words).toMatch(/; held back until 06:05:00: others rise first \(release ramp\)$/);
  expect(held.held).toEqual({ by: "release ramp", until: "2026-11-21T06:05:00.000Z" });
  const worn = { by: "writes per hour", until: at("06:05") } as const;
  expect(reasonWhileDeferred(stays, worn, aCharger({ writesPerHour: 12 }), clock).words).toContain(
    "12 writes an hour",
  );
});

test("a power for a charger that accepts amperes names the equivalent", () => {
  const charger = aCharger({ takesWatts: false });
  const power = aDispatch(
    { setpoint: { kind: "power", watts: watts(7400) } },
    { id: "EV-7731", priority: 1 },
  );
  expect(reason([power], {}, { charger }).words).toContain("7.4 kW asked, at this charger 10.7 A");
});

test("a switch of phases names its purpose, and why it has not come yet", () => {
  const phaseSwitching = { every: seconds(900), settle: seconds(10), deadTime: seconds(60) };
  const little = aDispatch(
    { setpoint: { kind: "power", watts: watts(2300) } },
    { id: "EV-7731", priority: 1 },
  );
  const charger = aCharger({ takesWatts: false, phaseSwitching });
  const phases = { count: 1, since: at("05:00"), chargingSince: null } as const;
  const words = reason(
    [little],
    { desired: { kind: "current", amperes: amperes(10), phases } },
    { charger },
  ).words;
  expect(words).toMatch(/^bay-01 \(Bus 214\) to 10 A on 1 phase until /);
  expect(words).toMatch(
    /; 2.3 kW asked, less than three phases can: on 1 phase; 2.3 kW asked, at this charger 10 A$/,
  );
  const told = (by: "phase switch" | "phase interval") =>
    reasonOf(
      {
        charger,
        occupant: { kind: "nobody" },
        vehicle: null,
        winner: little,
        overruled: [],
        overruledCount: 0,
        desired: { kind: "pause" },
        limits: [{ by, asked: "1 phase", allowed: "pause" }],
        phases: null,
        until: null,
        hold: null,
      },
      { desired: { kind: "pause" }, until: null, vehicle: null, event: null, cause: "event" },
      clock,
    ).words;
  expect(told("phase switch")).toMatch(/; paused to be switched to 1 phase$/);
  expect(told("phase interval")).toMatch(
    /; 1 phase would do it, but phases were switched too recently: pause$/,
  );
});

test("the row of a decision gives back its reason, and one that is not whole gives none", () => {
  const why = reason([loser, winner]);
  expect(reasonIn({ ...why, told: { kind: "current" } })).toEqual(why);
  for (const broken of [{ words: 1 }, { cause: null }, { overruled: {} }, { limits: "none" }])
    expect(reasonIn({ ...why, ...broken })).toBeNull();
  expect(reasonIn(null)).toBeNull();
});

const facts = { event: "EV-7731", asked: "11 kW", from: iso(from), until: "2026-11-21T06:00:41.000Z" };
const because = "until 06:00:41 because event EV-7731";

test.each([
  [
    "limited",
    {},
    `limited to 16 A ${because} (priority 1) asks for 16 A; started 05:02:17 (random offset 137 s of max 600 s); overrules EV-7702`,
  ],
  [
    "limited by more than the event",
    { limits: [{ by: "the charger takes whole amperes", asked: "15.9 A", allowed: "15 A" }], overruled: [] },
    `limited to 15 A ${because} (priority 1) asks for 16 A; started 05:02:17 (random offset 137 s of max 600 s); the charger takes whole amperes: 15.9 A to 15 A`,
  ],
  [
    "paused by an event without priority or random start",
    {
      winner: facts,
      overruled: [],
      limits: [{ by: "another program" }, { by: "takes amperes", asked: "11 kW", allowed: "pause" }],
    },
    `paused ${because} (no priority) asks for 11 kW; started 05:02:17`,
  ],
  [
    "limited by an event that was withdrawn",
    {
      winner: { ...facts, cutAt: "2026-11-21T05:30:00.000Z", spreadMs: 60_000 },
      // The second is of a later version.
      overruled: [{ event: "EV-7702" }, {}],
      overruledCount: 9,
    },
    `limited to 11 kW ${because} (no priority) asks for 11 kW; started 05:02:17 (random offset 0 s of max 60 s); withdrawn or changed at 05:30:00, its release is spread; overrules EV-7702 and 8 more`,
  ],
])("a person reads why a vehicle is %s", (_, changes, expected) => {
  const decided = { ...reason([loser, winner]), ...changes };
  const sentence = (isAhead: boolean): string =>
    limitedSentence("Bus 214", decided, { isAhead, verb: "is" }, clock);
  expect(sentence(false)).toBe(`Bus 214 is ${expected}`);
  expect(sentence(true)).toContain("; starts 05:02:17");
});

test("a reason of another program, and one that waits, keep their words", () => {
  const decided = reason([loser, winner]);
  for (const changes of [{ winner: { event: "EV-7731" } }, { held: { rule: "pace" } }])
    expect(
      limitedSentence("Bus 214", { ...decided, ...changes }, { isAhead: false, verb: "is" }, clock),
    ).toBe(decided.words);
});

test("a level that stays after the last event is found in a command and on record, and nowhere else", () => {
  const level = { kind: "power", watts: watts(7_000) } as const;
  expect(restOf({ cause: "ended", desired: level })).toEqual({ powerW: 7_000 });
  expect(restOf({ cause: "ended", desired: { kind: "release" } })).toBeNull();
  expect(restOf({ cause: "event", desired: level })).toBeNull();
  expect(restOf(undefined)).toBeNull();
  const told = { kind: "power", value: 7_000, unit: "W" };
  expect(restIn({ cause: "ended", told })).toEqual({ powerW: 7_000 });
  expect(restIn({ cause: "ended", told: { kind: "pause", value: null, unit: null } })).toEqual({
    pause: true,
  });
  expect(restIn({ cause: "ended" })).toBeNull();
  expect(restIn({ cause: "event", told })).toBeNull();
});
