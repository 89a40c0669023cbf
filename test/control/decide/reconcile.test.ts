import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { Command, CommandRecord } from "../../../src/domain/command.ts";
import type { Dispatch } from "../../../src/control/schedule/expand.ts";
import { reconcile, type Situation, type Step } from "../../../src/control/decide/reconcile.ts";
import type { Desired } from "../../../src/domain/setpoint.ts";
import type { Verdict } from "../../../src/control/decide/verdict.ts";
import type { AtEnd } from "../../../src/domain/charger.ts";
import {
  amperes,
  chargerId,
  eventId,
  type Instant,
  instant,
  minutes,
  seconds,
  watts,
} from "../../../src/domain/units.ts";
import { aCharger, aVehicle, settingsWith } from "../../support/aCharger.ts";
import { aDispatch, at } from "../../support/anEvent.ts";
import { aLevelHold, aRelease } from "../../support/aHold.ts";
import { type Circumstances, circumstancesOf, verdict } from "../../support/aVerdict.ts";

const A = (level: number): Desired & { kind: "current" } => ({ kind: "current", amperes: amperes(level) });
const W = (level: number): Desired & { kind: "power" } => ({ kind: "power", watts: watts(level) });
const PAUSE: Desired = { kind: "pause" };
const RELEASE: Desired = { kind: "release" };

/** What should hold on bay-01 for veh-214: these dispatches, nothing unless told. */
const should = (
  inForce: readonly Dispatch[] = [],
  charger: Parameters<typeof aCharger>[0] = {},
  more: Partial<Circumstances> = {},
): Verdict => verdict(circumstancesOf(inForce, { charger: aCharger(charger), ...more }), settingsWith());
const event = (level: number, id = "EV-7731") => aDispatch({ setpoint: A(level) }, { id });

/** A command of EV-7731 for veh-214, sent and acknowledged at 05:10. */
const commanded = (
  desired: Desired,
  command: Partial<Command> = {},
  record: Partial<CommandRecord> = {},
): CommandRecord => ({
  command: {
    charger: chargerId("bay-01"),
    epoch: 1,
    seq: 1,
    desired,
    until: desired.kind === "current" || desired.kind === "power" ? at("06:00") : null,
    vehicle: aVehicle().id,
    event: eventId("EV-7731"),
    cause: desired.kind === "release" ? "ended" : "event",
    decidedAt: at("05:10"),
    ...command,
  },
  progress: "acknowledged",
  sentAt: at("05:10"),
  sends: 1,
  failures: 0,
  replaces: null,
  judgeAt: null,
  resends: 0,
  ...record,
});

const nextStep = (
  verdict: Verdict,
  last: CommandRecord | undefined,
  situation: Partial<Situation> = {},
): Step =>
  reconcile(verdict, {
    now: at("05:10:30"),
    last,
    writableAt: at("00:00"),
    rampAt: at("00:00"),
    reassert: false,
    assertOnce: false,
    isOutnumbered: false,
    isLastInForce: false,
    startsAllowed: true,
    ...situation,
  });
const decisionIn = (step: Step) => (step.kind === "decide" ? step.decision : step);

test("a charger that was never commanded gets nothing, also after a return", () => {
  for (const reassert of [false, true])
    expect(nextStep(should(), undefined, { reassert })).toEqual({ kind: "nothing", evaluateAt: null });
});

test("a refresh that was not published is tried again, before the next one is due", () => {
  expect(nextStep(should([event(16)]), commanded(A(16), {}, { failures: 1 }))).toMatchObject({
    kind: "again",
  });
  expect(nextStep(should([event(16)]), commanded(A(16)))).toMatchObject({ kind: "nothing" });
});

test("a command whose number the charger refuses is sent once more under a new one", () => {
  const last = commanded(A(16));
  const step = nextStep(should([event(16)]), last, { reassert: true, isOutnumbered: true });
  expect(decisionIn(step)).toMatchObject({ desired: A(16), until: at("06:00"), cause: "event" });
  expect(nextStep(should([event(16)]), last, { isOutnumbered: true })).toMatchObject({ kind: "nothing" });
  expect(nextStep(should([event(16)]), last, { reassert: true })).toMatchObject({ kind: "again" });
});

test("a lower level whose number the charger refuses gets a new one, also while its increase has to wait", () => {
  const last = commanded(A(10));
  const waits = { writableAt: at("05:20"), isOutnumbered: true };
  const step = nextStep(should([event(16)]), last, { ...waits, reassert: true });
  expect(step).toMatchObject({
    kind: "decide",
    decision: { until: at("06:00"), event: "EV-7731", cause: "event" },
    deferral: { until: at("05:20") },
  });
  // The same level, not a copy of it: it still replaces what the refused command replaced.
  expect(step.kind === "decide" && step.decision.desired).toBe(last.command.desired);
  expect(nextStep(should([event(16)]), last, waits)).toMatchObject({ kind: "wait" });
});

test("F04: after the state was lost every charger is asserted once, release included", () => {
  expect(decisionIn(nextStep(should(), undefined, { assertOnce: true }))).toEqual({
    desired: RELEASE,
    until: null,
    vehicle: null,
    event: null,
    cause: "ended",
  });
  expect(decisionIn(nextStep(should([event(16)]), undefined, { assertOnce: true }))).toMatchObject({
    desired: A(16),
  });
});

test("an event in force is decided, until the winner's own end", () => {
  expect(decisionIn(nextStep(should([event(16)]), undefined))).toEqual({
    desired: A(16),
    until: at("06:00"),
    vehicle: "veh-214",
    event: "EV-7731",
    cause: "event",
  });
});

test("a pause carries no end, and names the event", () => {
  expect(decisionIn(nextStep(should([event(0)]), undefined))).toMatchObject({
    desired: PAUSE,
    until: null,
    event: "EV-7731",
  });
});

test("an unchanged command is only sent again when its refresh is due, with the same id", () => {
  const [verdict, last] = [should([event(16)]), commanded(A(16))];
  expect(nextStep(verdict, last)).toEqual({ kind: "nothing", evaluateAt: at("05:11") });
  expect(nextStep(verdict, last, { now: at("05:11") })).toMatchObject({ kind: "again", evaluateAt: null });
});

test("a command is not refreshed where writes are limited, but sent again after a return", () => {
  const [verdict, last] = [should([event(16)], { refresh: null }), commanded(A(16))];
  expect(nextStep(verdict, last, { now: at("05:50") })).toEqual({ kind: "nothing", evaluateAt: null });
  expect(nextStep(verdict, last, { now: at("05:50"), reassert: true })).toMatchObject({ kind: "again" });
});

test("a pause is refreshed like any level", () => {
  expect(nextStep(should([event(0)]), commanded(PAUSE), { now: at("05:11") }).kind).toBe("again");
});

test("F80 F88: when the broker or the charger is back, the command is sent once more", () => {
  expect(nextStep(should([event(16)]), commanded(A(16)), { reassert: true }).kind).toBe("again");
});

test("a publish that failed is tried again by the next evaluation", () => {
  const never = commanded(
    A(16),
    {},
    { progress: "planned", sentAt: null, sends: 0, failures: 1, replaces: null, judgeAt: null, resends: 0 },
  );
  expect(nextStep(should([event(16)]), never).kind).toBe("again");
  expect(nextStep(should([event(16)]), { ...never, progress: "refused" }).kind).toBe("again");
});

test.each([
  ["another level", [event(10)]],
  ["another end", [aDispatch({ until: at("05:40") })]],
  ["another event", [event(16, "EV-7732")]],
] as const)("%s is a new command", (_, inForce) => {
  expect(nextStep(should(inForce), commanded(A(16))).kind).toBe("decide");
});

test("another vehicle on the charger is a new command", () => {
  expect(
    nextStep(should([event(16)]), commanded(A(16), { vehicle: aVehicle({ id: "veh-1" }).id })).kind,
  ).toBe("decide");
});

test("power and current, pause and level are different setpoints", () => {
  expect(nextStep(should([event(16)]), commanded(W(16))).kind).toBe("decide");
  expect(nextStep(should([aDispatch({ setpoint: W(11_000) })]), commanded(W(11_000))).kind).toBe("nothing");
  expect(nextStep(should([aDispatch({ setpoint: W(11_000) })]), commanded(A(11_000))).kind).toBe("decide");
  expect(nextStep(should([event(0)]), commanded(A(16))).kind).toBe("decide");
});

test("when the last event has ended the charger is released, and the release names that event", () => {
  expect(decisionIn(nextStep(should(), commanded(A(16)), { now: at("06:00") }))).toEqual({
    desired: RELEASE,
    until: null,
    vehicle: "veh-214",
    event: "EV-7731",
    cause: "ended",
  });
});

test("at the end of an event a charger is paused, or limited to a level, where that is configured", () => {
  const end = (atEnd: Parameters<typeof aCharger>[0] & object) =>
    decisionIn(nextStep(should([], atEnd), commanded(A(16))));
  expect(end({ atEnd: { kind: "pause" } })).toMatchObject({ desired: PAUSE, until: null, cause: "ended" });
  expect(end({ atEnd: A(40) })).toMatchObject({ desired: A(32), until: null, cause: "ended" });
  expect(end({ atEnd: W(11_000) })).toMatchObject({ desired: W(11_000) });
});

test("the level configured for the end applies to the event's vehicle: a charger that it has left is released", () => {
  const atEnd = { atEnd: A(10) };
  const gone = should([], atEnd, { vehicle: null, occupant: { kind: "nobody" } });
  const other = should([], atEnd, { vehicle: aVehicle({ id: "veh-1" }) });
  for (const verdict of [gone, other])
    expect(decisionIn(nextStep(verdict, commanded(A(16))))).toMatchObject({ desired: RELEASE });
});

test("a charger at its configured end level is not commanded, and that level is refreshed", () => {
  const rest = commanded(A(10), { cause: "ended", until: null });
  expect(nextStep(should([], { atEnd: A(10) }), rest)).toEqual({ kind: "nothing", evaluateAt: at("05:11") });
  expect(nextStep(should(), commanded(RELEASE, { cause: "operator" }, { progress: "followed" }))).toEqual({
    kind: "nothing",
    evaluateAt: null,
  });
});

test("the level configured for the end goes with its vehicle: a charger that it leaves later is released", () => {
  const rest = commanded(PAUSE, { cause: "ended", until: null });
  const atEnd = { atEnd: PAUSE };
  const gone = should([], atEnd, { vehicle: null, occupant: { kind: "nobody" } });
  expect(decisionIn(nextStep(gone, rest))).toMatchObject({ desired: RELEASE, cause: "ended" });
  expect(nextStep(should([], atEnd), rest).kind).toBe("nothing");
});

test("after the state was lost no charger is released before the partner was polled", () => {
  expect(nextStep(should(), undefined, { assertOnce: true, startsAllowed: false }).kind).toBe("nothing");
  expect(decisionIn(nextStep(should(), undefined, { assertOnce: true }))).toMatchObject({
    desired: RELEASE,
    event: null,
  });
});

test("an operator's hold releases what its events had limited", () => {
  const hold = aRelease();
  expect(decisionIn(nextStep(should([event(16)], {}, { hold }), commanded(A(16))))).toMatchObject({
    desired: RELEASE,
    cause: "operator",
  });
});

test("the level of a hold is sent until the hold's end, and its pause without an end", () => {
  const [level, pause] = [aLevelHold(), aLevelHold({ level: { kind: "pause" } })];
  const under = (hold: typeof level) => decisionIn(nextStep(should([event(16)], {}, { hold }), undefined));
  const common = { event: null, vehicle: aVehicle().id, cause: "operator" };
  expect(under(level)).toEqual({ ...common, desired: A(10), until: at("06:00") });
  expect(under(pause)).toEqual({ ...common, desired: PAUSE, until: null });
});

test("after our own stop, a released charger stays released, a paused one is released", () => {
  expect(nextStep(should(), commanded(RELEASE, { cause: "stop" }, { progress: "accepted" })).kind).toBe(
    "nothing",
  );
  expect(decisionIn(nextStep(should(), commanded(PAUSE, { cause: "stop" })))).toMatchObject({
    desired: RELEASE,
  });
  expect(nextStep(should([event(0)]), commanded(PAUSE, { cause: "stop" })).kind).toBe("decide");
});

const released = (record: Partial<CommandRecord>, situation: Partial<Situation> = {}) =>
  nextStep(should(), commanded(RELEASE, {}, record), { now: at("05:11"), ...situation }).kind;

test("a release is refreshed until it is followed, or three times", () => {
  expect([1, 3, 4].map((sends) => released({ sends }))).toEqual(["again", "again", "nothing"]);
  expect(released({ progress: "accepted" })).toBe("again");
  expect(released({ progress: "followed" })).toBe("nothing");
});

const freeWithout = (record: Partial<CommandRecord>, situation: Partial<Situation> = {}) =>
  nextStep(should([], { refreshesRelease: true }), commanded(RELEASE, {}, record), {
    now: at("05:11"),
    ...situation,
  }).kind;

test("a charger that needs refreshes to charge gets its release refreshed too", () => {
  expect(freeWithout({ progress: "followed", sends: 40 })).toBe("again");
  expect(freeWithout({ progress: "followed" }, { now: at("05:10:30") })).toBe("nothing");
  expect(freeWithout({ progress: "accepted" }, { now: at("05:10:30"), reassert: true })).toBe("again");
});

test("a charger that returns is sent its release again, unless it accepted it", () => {
  expect(released({ sends: 4 }, { reassert: true })).toBe("again");
  const soon = { now: at("05:10:30"), reassert: true };
  expect(released({}, soon)).toBe("again");
  expect(released({ progress: "accepted" }, soon)).toBe("nothing");
});

test("a clock that was set back neither holds a release nor lets a lease run out (F21)", () => {
  const before = { now: at("05:00") };
  expect(decisionIn(nextStep(should(), commanded(A(16)), before))).toMatchObject({ desired: RELEASE });
  expect(nextStep(should([event(16)]), commanded(A(16)), before).kind).toBe("again");
});

test("a withdrawal or edit sends nothing before the charger's slot in the release ramp", () => {
  const soon = { cutAt: at("05:10"), until: at("05:20") };
  const cut = { ...event(16), ...soon };
  expect(nextStep(should([cut]), commanded(A(16))).kind).toBe("nothing");
  expect(nextStep(should([{ ...cut, cutAt: null }]), commanded(A(16))).kind).toBe("decide");
  expect(nextStep(should([{ ...event(10), ...soon }]), commanded(A(16))).kind).toBe("decide");
});

test("in observe mode nothing is sent", () => {
  const observed = commanded(A(16), {}, { progress: "observed", sentAt: null });
  expect(nextStep(should([event(16)]), observed, { reassert: true })).toEqual({
    kind: "nothing",
    evaluateAt: null,
  });
});

test("an increase smaller than the dead band keeps the level, a reduction of any size passes", () => {
  const charger = { deadband: amperes(1) };
  expect(nextStep(should([event(16.9)], charger), commanded(A(16))).kind).toBe("nothing");
  expect(decisionIn(nextStep(should([event(17)], charger), commanded(A(16))))).toMatchObject({
    desired: A(17),
  });
  expect(decisionIn(nextStep(should([event(15.9)], charger), commanded(A(16))))).toMatchObject({
    desired: A(15.9),
  });
  const power = (level: number) => should([aDispatch({ setpoint: W(level) })], charger);
  expect(nextStep(power(11_689), commanded(W(11_000))).kind).toBe("nothing");
  expect(nextStep(power(11_690), commanded(W(11_000))).kind).toBe("decide");
});

test("within the dead band another event still gets a command of its own, at the same level", () => {
  const next = nextStep(should([event(16.5, "EV-7732")], { deadband: amperes(1) }), commanded(A(16)));
  expect(decisionIn(next)).toMatchObject({ desired: A(16), event: "EV-7732" });
});

test("F59: an increase waits for the charger's minimum interval", () => {
  const charger = { minInterval: seconds(45) };
  expect(nextStep(should([event(20)], charger), commanded(A(16)))).toMatchObject({
    kind: "wait",
    evaluateAt: at("05:10:45"),
  });
  expect(nextStep(should([event(20)], charger), commanded(A(16)), { now: at("05:10:45") }).kind).toBe(
    "decide",
  );
  const power = should([aDispatch({ setpoint: W(12_000) })], charger);
  expect(nextStep(power, commanded(W(11_000))).kind).toBe("wait");
  expect(nextStep(should([event(16)], charger), commanded(PAUSE)).kind).toBe("wait");
});

test("a release waits as well, but never past the end of the last command", () => {
  const charger = { minInterval: minutes(30) };
  expect(nextStep(should([], charger), commanded(A(16)))).toMatchObject({ kind: "wait" });
  expect(nextStep(should([], charger), commanded(A(16), { until: at("05:10:20") })).kind).toBe("decide");
});

test("a waiting increase does not let the last command's lease run out", () => {
  const charger = { minInterval: minutes(30) };
  const wait = (now: Instant) => nextStep(should([event(20)], charger), commanded(A(16)), { now });
  expect(wait(at("05:10:30"))).toMatchObject({ kind: "wait", evaluateAt: at("05:11") });
  expect(wait(at("05:11"))).toMatchObject({ kind: "again", evaluateAt: at("05:40") });
});

test("a reduction that did not arrive is tried again while an increase waits", () => {
  const failed = commanded(
    A(10),
    {},
    { progress: "planned", sentAt: null, sends: 0, failures: 1, replaces: null, judgeAt: null, resends: 0 },
  );
  expect(nextStep(should([event(20)], { minInterval: minutes(30) }), failed).kind).toBe("again");
});

test("new starts wait until the partner was polled once, the last command goes on", () => {
  const closed = { startsAllowed: false };
  expect(nextStep(should([event(16)]), undefined, closed)).toMatchObject({ kind: "wait", evaluateAt: null });
  expect(nextStep(should([event(10)]), commanded(A(16)), closed)).toMatchObject({
    kind: "wait",
    evaluateAt: at("05:11"),
  });
  expect(nextStep(should([event(10)]), commanded(A(16)), { ...closed, reassert: true })).toMatchObject({
    kind: "again",
    evaluateAt: null,
  });
  expect(nextStep(should(), commanded(A(16)), closed).kind).toBe("decide");
});

test("F01: a pause of an event that ended while the daemon was down is not sent again, whatever waits to start", () => {
  const closed = { startsAllowed: false, reassert: true };
  const paused = commanded(PAUSE);
  const next = event(10, "EV-2");
  expect(nextStep(should([next]), paused, closed)).toMatchObject({ kind: "wait", evaluateAt: null });
  expect(nextStep(should([next]), undefined, closed).kind).toBe("wait");
  const both = [aDispatch({ setpoint: A(10) }, { id: "EV-2", priority: 0 }), event(0)];
  expect(nextStep(should(both), paused, { ...closed, isLastInForce: true }).kind).toBe("again");
  expect(nextStep(should([event(10)]), paused, closed).kind).toBe("again");
});

test("the level of our own stop is not sent again before an event in force, but a pause keeps its lease", () => {
  const closed = { startsAllowed: false, reassert: true };
  const [paused, released] = [commanded(PAUSE, { cause: "stop" }), commanded(RELEASE, { cause: "stop" })];
  const inForce = should([event(10)]);
  for (const last of [paused, released]) expect(nextStep(inForce, last, closed).kind).toBe("wait");
  const late = { ...closed, now: at("05:12") };
  expect([nextStep(inForce, paused, late).kind, nextStep(inForce, released, late).kind]).toEqual([
    "again",
    "wait",
  ]);
  expect(nextStep(should(), released, closed).kind).toBe("again");
});

test("the level of a hold that is over is not sent again before an event in force may start", () => {
  const closed = { startsAllowed: false, reassert: true };
  const [held, freed] = [commanded(PAUSE, { cause: "operator" }), commanded(RELEASE, { cause: "operator" })];
  const inForce = should([event(10)]);
  expect(nextStep(inForce, held, closed)).toMatchObject({ kind: "wait", evaluateAt: null });
  expect(nextStep(inForce, freed, closed).kind).toBe("again");
});

test("F93: no command is sent again past its own end", () => {
  const over = commanded(A(16), { until: at("05:10:20") }, { progress: "planned", sentAt: null });
  expect(nextStep(should([event(20)]), over, { startsAllowed: false, reassert: true })).toMatchObject({
    kind: "wait",
    evaluateAt: null,
  });
});

const level = fc.oneof(
  fc.integer({ min: -2, max: 40 }).map(A),
  fc.integer({ min: -1_000, max: 25_000 }).map(W),
);
const someVerdict = fc
  .record({
    inForce: fc.array(fc.tuple(level, fc.constantFrom("EV-1", "EV-2"), fc.integer({ min: 1, max: 50 })), {
      maxLength: 2,
    }),
    vehicle: fc.constantFrom("veh-214", "veh-1", null),
    charger: fc.record({
      atEnd: fc.constantFrom<AtEnd>({ kind: "release" }, { kind: "pause" }, A(10)),
      minInterval: fc.constantFrom(seconds(0), seconds(20), minutes(30)),
      deadband: fc.constantFrom(0, 1, 3).map(amperes),
      belowMinimum: fc.constantFrom("pause" as const, "hold" as const),
      maxDischarge: fc.constantFrom(null, watts(500)),
    }),
  })
  .map(({ inForce, vehicle, charger }) =>
    should(
      vehicle === null
        ? []
        : inForce.map(([setpoint, id, ends]) => {
            const until = instant(at("05:10:30") + minutes(ends));
            return aDispatch({ setpoint, until, vehicle: aVehicle({ id: vehicle }).id }, { id });
          }),
      charger,
      { vehicle: vehicle === null ? null : aVehicle({ id: vehicle }) },
    ),
  );
const someRecord = fc.option(
  fc
    .record({
      desired: fc.oneof(level, fc.constantFrom(PAUSE, RELEASE)),
      cause: fc.constantFrom("event" as const, "ended" as const, "operator" as const, "stop" as const),
      progress: fc.constantFrom(
        "planned" as const,
        "acknowledged" as const,
        "accepted" as const,
        "refused" as const,
      ),
      sentAt: fc.constantFrom(null, at("05:09"), at("05:10:10")),
      sends: fc.nat(4),
    })
    .map(({ desired, cause, ...record }) => commanded(desired, { cause, decidedAt: at("05:10:10") }, record)),
  { nil: undefined },
);
const someSituation = fc.record({
  reassert: fc.boolean(),
  assertOnce: fc.boolean(),
  startsAllowed: fc.boolean(),
});

/** The record after what was said has been done, and went well. */
function done(step: Step, last: CommandRecord | undefined, now: Instant): CommandRecord | undefined {
  switch (step.kind) {
    case "nothing":
    case "wait":
      return last;
    case "again":
      return last === undefined
        ? last
        : {
            ...last,
            progress: last.progress === "planned" ? "acknowledged" : last.progress,
            sentAt: now,
            sends: last.sends + 1,
          };
    case "decide":
      return {
        command: { ...step.decision, charger: chargerId("bay-01"), epoch: 1, seq: 2, decidedAt: now },
        progress: "acknowledged",
        sentAt: now,
        sends: 1,
        failures: 0,
        replaces: null,
        judgeAt: null,
        resends: 0,
      };
  }
}

test("reconciling again after a step gives no further step", () => {
  fc.assert(
    fc.property(someVerdict, someRecord, someSituation, (verdict, last, situation) => {
      const now = at("05:10:30");
      const after = done(nextStep(verdict, last, { ...situation, now }), last, now);
      const again = nextStep(verdict, after, {
        ...situation,
        now,
        reassert: false,
        assertOnce: after === undefined && situation.assertOnce,
      });
      expect(["nothing", "wait"]).toContain(again.kind);
    }),
    { numRuns: 3_000 },
  );
});

test("a reduction or a pause is never delayed, whatever the dead band and the minimum interval", () => {
  fc.assert(
    fc.property(someVerdict, someRecord, (verdict, last) => {
      const step = nextStep(verdict, last);
      const { desired, winner } = verdict;
      if (winner === null || last === undefined) return;
      const before = last.command.desired;
      const less =
        (desired.kind === "pause" && before.kind !== "pause") ||
        (desired.kind === "current" && before.kind === "current" && desired.amperes < before.amperes) ||
        (desired.kind === "power" && before.kind === "power" && desired.watts < before.watts);
      if (less) expect(decisionIn(step)).toMatchObject({ desired, event: winner.event.id });
    }),
    { numRuns: 3_000 },
  );
});

test("every wait has a next evaluation, unless it waits for the partner", () => {
  fc.assert(
    fc.property(someVerdict, someRecord, (verdict, last) => {
      const step = nextStep(verdict, last);
      if (step.kind === "wait") expect(step.evaluateAt).toBeGreaterThan(at("05:10:30"));
    }),
  );
});
