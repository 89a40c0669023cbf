import { assert, expect, test, vi } from "vitest";

import type { CommandRecord } from "../../src/domain/command.ts";
import type { KnownEvent } from "../../src/domain/event.ts";
import type { Change, StoredState } from "../../src/domain/changes.ts";
import {
  chargerId,
  type EventId,
  eventId,
  type Instant,
  millis,
  minutes,
  seconds,
  vehicleId,
  instant,
} from "../../src/domain/units.ts";
import { advance } from "../../src/control/schedule/advance.ts";
import { evaluate } from "../../src/control/decide/evaluate.ts";
import { clockStepRow, onClockMovedBack, recoverAfterFailedCommit } from "../../src/control/recovery.ts";
import type { ControlState } from "../../src/control/state.ts";
import { type Pending, Stages } from "../../src/control/stages.ts";
import { SharedRoom } from "../../src/platform/cooperative.ts";
import { SqliteReads } from "../../src/store/sqlite/reads.ts";
import { aCharger, aVehicle } from "../support/aCharger.ts";
import { aDepot } from "../support/aDepot.ts";
import { anEvent, at, live, targetsOf, withdrawn } from "../support/anEvent.ts";
import { aPicture, rememberedOf, restoreState } from "../support/aPicture.ts";
import { commandRecord } from "../store/sqlite/words.ts";
import { quietEdges } from "../support/quietEdges.ts";

/** As a later version may find what an earlier one has stored. */
const broken: KnownEvent = JSON.parse(
  JSON.stringify({ ...live(anEvent({ id: "EV-broken" })), revision: { event: { targets: [] } } }),
);

test("F15: a stored event that triggers a bug is quarantined and forgotten, and the others are restored", () => {
  const depot = aPicture();
  const changes = restoreState(depot, rememberedOf({ events: [broken, live(anEvent())] }), at("04:00"));
  expect([...depot.known.keys()]).toEqual(["EV-7731"]);
  expect(depot.next()).toBeGreaterThanOrEqual(at("05:00"));
  expect(changes.map(({ kind }) => kind)).toEqual(["quarantine", "audit", "eventForgotten"]);
  expect(changes[0]).toMatchObject({
    rejected: { id: "EV-broken", reason: expect.stringContaining("a bug: this program cannot plan it") },
    source: "state",
  });
  expect(changes[2]).toEqual({ kind: "eventForgotten", id: eventId("EV-broken") });
});

test("F15: beside an event that triggers a bug, a window that was acted on before the start is not missed", () => {
  const depot = aPicture();
  const stored = rememberedOf({ events: [live(anEvent()), broken], evaluatedAt: at("05:30") });
  restoreState(depot, stored, at("07:00"));
  expect(advance(depot, at("07:00")).missed).toEqual([]);
});

test("an event that another program edited is quarantined with its reason, forgotten, and never planned", () => {
  const depot = aPicture();
  const edited = [{ id: eventId("EV-edited"), raw: '{"amperes":32}' }];
  const changes = restoreState(depot, rememberedOf({ events: [live(anEvent())], edited }), at("04:00"));
  expect([...depot.known.keys()]).toEqual(["EV-7731"]);
  expect(changes).toMatchObject([
    {
      kind: "quarantine",
      source: "state",
      rejected: {
        id: "EV-edited",
        reason: expect.stringContaining("edited its stored copy"),
        raw: '{"amperes":32}',
      },
    },
    { kind: "audit", entry: { kind: "rejected", event: "EV-edited" } },
    { kind: "eventForgotten", id: "EV-edited" },
  ]);
});

test("stored events that no longer fit in memory are set aside, so that a start never ends the process", () => {
  const vehicles = ["v1", "v2"].map((id) => aVehicle({ id, charger: null }));
  const depot = aPicture({ vehicles, room: new SharedRoom(2).part() });
  const events = ["EV-1", "EV-2"].map((id) => live(anEvent({ id, targets: targetsOf("v1", "v2") })));
  const changes = restoreState(depot, rememberedOf({ events }), at("04:00"));
  expect([[...depot.known.keys()], depot.agenda.size]).toEqual([["EV-1"], 2]);
  expect(changes).toMatchObject([
    { kind: "quarantine", source: "state", rejected: { id: "EV-2", path: "targets" } },
    { kind: "audit", entry: { kind: "rejected", event: "EV-2" } },
    { kind: "eventForgotten", id: "EV-2" },
  ]);
});

test("stored events of the best priority are those that a start keeps where not all fit in memory", () => {
  const vehicles = ["v1", "v2"].map((id) => aVehicle({ id, charger: null }));
  const depot = aPicture({ vehicles, room: new SharedRoom(2).part() });
  const events = [3, 1, null].map((priority) =>
    live(anEvent({ id: `EV-${priority}`, priority, targets: targetsOf("v1", "v2") })),
  );
  const gone = [1, 2].map((number) => withdrawn(anEvent({ id: `EV-gone-${number}` }), at("03:00")));
  restoreState(depot, rememberedOf({ events: [...events, ...gone] }), at("04:00"));
  expect([...depot.known.keys()]).toEqual(["EV-1", "EV-gone-1", "EV-gone-2"]);
});

test("where other sites hold the room, a start keeps the events that have begun, also with a worse priority", () => {
  const vehicles = ["v1", "v2"].map((id) => aVehicle({ id, charger: null }));
  const room = new SharedRoom(4);
  room.part().take(3);
  const depot = aPicture({ vehicles, room: room.part() });
  const [later, begun] = [
    { id: "EV-later", priority: 1, start: at("09:00") },
    { id: "EV-begun", priority: 9, start: at("03:00") },
  ].map((event) => live(anEvent({ ...event, targets: targetsOf("v1", "v2") })));
  const changes = restoreState(depot, rememberedOf({ events: [later!, begun!] }), at("04:00"));
  expect([...depot.known.keys()]).toEqual(["EV-begun"]);
  expect(changes).toMatchObject([{ kind: "quarantine", rejected: { id: "EV-later" } }, {}, {}]);
});

test("an event that holds when the process ends is kept by a start with less memory, whatever its priority", () => {
  const vehicles = ["v1", "v2"].map((id) => aVehicle({ id, charger: null }));
  const targets = targetsOf("v1", "v2");
  const next = live(anEvent({ id: "EV-next", priority: 1, targets, start: at("06:00") }));
  const runs = live(anEvent({ id: "EV-runs", priority: 9, targets }));
  const edited = live(anEvent({ id: "EV-edited", priority: 8, targets, start: at("07:00") }), {
    endings: [{ revision: runs.revision, at: at("05:29"), receivedAt: at("04:00") }],
  });
  // The rest of the earlier revision takes room as well.
  for (const [held, room] of [
    [runs, 2],
    [edited, 3],
  ] as const) {
    const depot = aPicture({ vehicles, room: new SharedRoom(room).part() });
    restoreState(depot, rememberedOf({ events: [next, held] }), at("05:30"));
    expect([...depot.known.keys()]).toEqual([held.id]);
  }
});

test("a bug that no event triggers ends the start", () => {
  const depot = aPicture();
  const noCommands: StoredState = JSON.parse(JSON.stringify({ ...rememberedOf({}), commands: null }));
  expect(() => restoreState(depot, noCommands, at("04:00"))).toThrow(TypeError);
});

/** A site for which one event takes several evaluations. */
const FLEET = Array.from({ length: 1_200 }, (_, index) => String(index));

const largeSite = () =>
  aPicture({
    chargers: FLEET.map((name) => aCharger({ id: `c${name}` })),
    vehicles: FLEET.map((name) => aVehicle({ id: vehicleId(`v${name}`), charger: chargerId(`c${name}`) })),
  });

/** Ends an evaluation that began at once. */
async function commit(stages: Stages, pending: Pending | null): Promise<void> {
  assert(pending !== null);
  await stages.committed(pending);
}

/** A run of the stages of control, with all that it writes. `passed`: of the monotonic clock, ms. */
function aRun(depot: ControlState, time: { now: Instant; passed?: number }) {
  const written: Change[] = [];
  const stages = new Stages(depot, {
    ...quietEdges,
    now: () => time.now,
    monotonic: () => millis(time.passed ?? 0),
    write: (changes) => written.push(...changes),
  });
  return { stages, written };
}

test("windows that began while the clock was doubted do not show that a clock at 1970 is right", async () => {
  const time = { now: at("04:00") };
  const depot = aPicture();
  restoreState(depot, rememberedOf({ evaluatedAt: at("04:00") }), time.now);
  const { stages, written } = aRun(depot, time);
  const evaluated = async (affected: ReturnType<typeof stages.run>): Promise<void> =>
    commit(stages, stages.evaluate(await affected));
  depot.blockStarts("clock doubted");
  const notices = [{ kind: "event", event: anEvent({ randomizeStart: millis(0) }) }] as const;
  const delivery = { source: "webhook", at: time.now, askedAt: time.now, notices, complete: false } as const;
  await evaluated(stages.ingest([{ delivery, settle: () => {} }]));
  time.now = at("05:00");
  await evaluated(stages.run([() => stages.advance()]));
  // The partner did not confirm it, so the clock of the machine counts again.
  time.now = instant(0);
  await evaluated(stages.run([() => stages.allowStarts()]));
  const marks = written.flatMap((change) => (change.kind === "evaluated" ? [change.at] : []));
  expect(marks).toEqual([at("05:00")]);
});

/** Vehicles that a start after the end of the window, with what was written before, records as missed. */
function missedAfter(written: readonly Change[], now: Instant): readonly string[] {
  const depot = largeSite();
  restoreState(
    depot,
    rememberedOf({
      events: written.flatMap((change) => (change.kind === "event" ? [change.known] : [])),
      commands: written.flatMap((change) => (change.kind === "command" ? [change.record] : [])),
      evaluatedAt: written.findLast((change) => change.kind === "evaluated")?.at ?? null,
    }),
    now,
  );
  const missed: string[] = [];
  for (let isComplete = false; !isComplete;) {
    const step = advance(depot, now);
    isComplete = step.isComplete;
    for (const change of step.missed)
      if (change.kind === "audit" && change.entry.kind === "missed") missed.push(change.entry.vehicle ?? "");
  }
  return missed;
}

const fleetEvent = anEvent({
  randomizeStart: millis(0),
  targets: targetsOf(...FLEET.map((name) => `v${name}`)),
});

test.for([
  ["its delivery while it is in force", at("05:30"), at("05:30")],
  ["its start", at("04:30"), at("05:00")],
] as const)(
  "a crash between the evaluations of a large event after %s, until it is over, leaves no vehicle unrecorded",
  async ([, receivedAt, startsAt]) => {
    const time = { now: at("04:00"), passed: 0 };
    const passTo = (moment: Instant): void => {
      time.passed += moment - time.now;
      time.now = moment;
    };
    const depot = largeSite();
    const { stages, written } = aRun(depot, time);
    const evaluated = async (affected: ReturnType<typeof stages.run>): Promise<void> =>
      commit(stages, stages.evaluate(await affected));
    await evaluated(stages.run([() => stages.allowStarts()]));
    while (stages.isBehind()) await commit(stages, stages.evaluateNext());
    expect(written).toContainEqual({ kind: "evaluated", at: at("04:00") });
    passTo(receivedAt);
    const notices = [{ kind: "event", event: fleetEvent }] as const;
    const delivery = {
      source: "webhook",
      at: time.now,
      askedAt: time.now,
      notices,
      complete: false,
    } as const;
    await evaluated(stages.ingest([{ delivery, settle: () => {} }]));
    if (receivedAt !== startsAt) {
      expect(stages.isBehind()).toBe(false);
      passTo(startsAt);
      await evaluated(stages.run([() => stages.advance()]));
    }
    const decided = written.flatMap((change) =>
      change.kind === "command" ? [change.record.command.vehicle] : [],
    );
    expect(decided.length).toBeGreaterThan(100);
    expect(decided.length).toBeLessThan(FLEET.length);
    const missed = missedAfter(written, at("07:00"));
    expect(missed).toHaveLength(FLEET.length - decided.length);
    expect(new Set([...missed, ...decided])).toEqual(new Set(FLEET.map((name) => `v${name}`)));
    // Without a crash all of them are evaluated, and none is missed.
    while (stages.isBehind() || (depot.next() ?? Infinity) <= time.now) {
      if (!stages.isBehind()) await evaluated(stages.run([() => stages.advance()]));
      else await commit(stages, stages.evaluateNext());
    }
    expect(missedAfter(written, at("07:00"))).toEqual([]);
  },
);

test("a start with a clock at 1970 takes back nothing that an earlier run evaluated", async () => {
  const time = { now: instant(0) };
  const depot = aPicture();
  restoreState(depot, rememberedOf({ evaluatedAt: at("04:00") }), time.now);
  const { stages, written } = aRun(depot, time);
  const evaluated = async (affected: ReturnType<typeof stages.run>): Promise<void> =>
    commit(stages, stages.evaluate(await affected));
  const marks = () => written.flatMap((change) => (change.kind === "evaluated" ? [change.at] : []));
  await evaluated(stages.run([() => stages.allowStarts()]));
  const notices = [{ kind: "event", event: anEvent({ randomizeStart: millis(0) }) }] as const;
  const delivery = { source: "webhook", at: time.now, askedAt: time.now, notices, complete: false } as const;
  await evaluated(stages.ingest([{ delivery, settle: () => {} }]));
  expect(marks()).toEqual([]);
  // The clock is right again, and a window begins.
  time.now = at("05:00");
  await evaluated(stages.run([() => stages.advance()]));
  expect(marks()).toEqual([at("05:00")]);
});

test("the parts of a list count as evaluated after the last one: its chargers are evaluated then", async () => {
  const time = { now: at("04:00") };
  const { stages, written } = aRun(aPicture(), time);
  const evaluated = async (affected: ReturnType<typeof stages.run>): Promise<void> =>
    commit(stages, stages.evaluate(await affected));
  await evaluated(stages.run([() => stages.allowStarts()]));
  const marks = () => written.filter(({ kind }) => kind === "evaluated").length;
  const before = marks();
  for (const [id, isPart] of [
    ["EV-1", true],
    ["EV-2", false],
  ] as const) {
    expect(marks()).toBe(before);
    const notices = [{ kind: "event", event: anEvent({ id, randomizeStart: millis(0) }) }] as const;
    time.now = at("05:30");
    const delivery = { source: "fetch", at: time.now, askedAt: time.now, notices, complete: false } as const;
    await evaluated(stages.ingest([{ delivery, isPart, settle: () => {} }]));
  }
  expect(marks()).toBe(before + 1);
});

test("a delivery that cannot be stored is answered so, and changes nothing (F05)", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").startingAt("08:10").pollingEvery("1h").running();
  depot.disk.full = true;
  const answer = await depot.deliver({ start: "08:00", amperes: 10 });
  expect(answer).toMatchObject({ kind: "refused", status: 503 });
  await depot.passes(60_000);
  expect(depot.messages()).toEqual([]);
  depot.disk.full = false;
  expect(await depot.deliver({ start: "08:00", amperes: 10 })).toMatchObject({ ingested: { accepted: 1 } });
  expect(depot.commands()).toEqual(["bay-01 10 A"]);
});

test("a failed commit is rolled back once, and only its own scope is read back", async () => {
  const depot = await aDepot()
    .withVehicles(3)
    .pollingEvery("1h")
    .withEvent({ id: "EV-old", start: "06:00", minutes: 10, amperes: 8, vehicles: ["v3"] })
    .withEvent({ id: "EV-1", start: "08:00", minutes: 60, amperes: 10, vehicles: ["v1"] })
    .running();
  await depot.until("08:10");
  const read = vi.spyOn(SqliteReads.prototype, "stored");
  depot.disk.full = true;
  await depot.deliver({ id: "EV-2", start: "08:00", amperes: 12, vehicles: ["v2"] });
  expect(read.mock.calls.map(([{ events, chargers }]) => [[...events], [...chargers]])).toEqual([
    [["EV-2"], ["bay-02"]],
  ]);
  read.mockRestore();
  depot.disk.full = false;
  await depot.until("08:11");
  expect(depot.standing()).toEqual(["bay-01 10 A until 09:00:00.000"]);
});

test("while the disk is full nothing new is sent and commands keep their lease; control recovers by itself (F05)", async () => {
  const depot = await aDepot()
    .withVehicles(3)
    .withEvent({ id: "EV-1", start: "08:00", minutes: 180, amperes: 10, vehicles: ["v1"] })
    .withEvent({ id: "EV-2", start: "08:20", minutes: 60, amperes: 12, vehicles: ["v2"] })
    .withEvent({ id: "EV-3", start: "08:20", minutes: 60, amperes: 14, vehicles: ["v1"], priority: 0 })
    .running();
  await depot.until("08:10:30");
  depot.forget();
  depot.disk.full = true;
  const looks = depot.looks;
  await depot.until("08:30:30");
  expect(depot.commands()).toEqual([]);
  const times = depot.floor.published.map(({ at }) => at);
  expect(times.length).toBeGreaterThan(15);
  for (const [index, at] of times.slice(1).entries()) expect(at - (times[index] ?? 0)).toBeLessThan(70_000);
  expect(depot.looks - looks).toBeLessThan(600);
  depot.disk.full = false;
  await depot.until("08:30:40");
  expect(depot.standing()).toEqual(["bay-01 14 A until 09:20:00.000", "bay-02 12 A until 09:20:00.000"]);
});

test("a publish that could not be recorded is refreshed, not repeated with every try (F05)", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", minutes: 60, amperes: 10 })
    .running();
  await depot.until("08:00");
  depot.disk.full = true;
  await depot.until("08:05:30");
  expect(depot.commands()).toEqual(["bay-01 10 A"]);
  expect(depot.messages().length).toBeLessThan(10);
  depot.disk.full = false;
  await depot.until("08:07");
  expect(depot.audit("outcome").filter((words) => words.includes("acknowledged by the broker"))).toHaveLength(
    1,
  );
});

test.for([
  ["reporting alone waited for it", "08:05:29.952", "08:05:30.020"],
  ["nothing waited for it", "08:05:20.000", "08:05:20.200"],
] as const)(
  "the broker's acknowledgement is on record although its commit failed and %s (F05)",
  async ([, start, until]) => {
    const usage = { payloadType: "USAGE", readingType: "DIRECT_READ" };
    const depot = await aDepot().withVehicles(2).withSilentChargers().reporting().running();
    await depot.deliver({ id: "EV-1", start: "08:00", minutes: 5, vehicles: ["v1"], reports: [usage] });
    await depot.deliver({ id: "EV-2", start, amperes: 10, vehicles: ["v2"] });
    await depot.until(start);
    await depot.passes(4);
    depot.disk.full = true;
    await depot.until(until);
    depot.disk.full = false;
    await depot.until("08:08");
    expect(depot.commands()).toContain("bay-02 10 A");
    const outcomes = depot.audit("outcome").filter((message) => message.startsWith("bay-02"));
    expect(outcomes).toEqual([expect.stringMatching("acknowledged by the broker after . ms")]);
  },
);

test("a start that could not be stored is retried every few seconds, without any other input (F05)", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .pollingEvery("1h")
    .withEvent({ start: "08:00", minutes: 60, amperes: 10 })
    .running();
  await depot.until("07:59:50");
  depot.disk.full = true;
  await depot.until("08:00:12");
  depot.disk.full = false;
  await depot.until("08:00:18");
  expect(depot.commands()).toEqual(["bay-01 10 A"]);
});

test("two evaluations that share a failed commit are both repeated (F05)", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withVehicle("v2", null)
    .withCharger("bay-02")
    .withEvent({ start: "08:00", minutes: 60, amperes: 10 })
    .running();
  await depot.until("08:10");
  depot.disk.full = true;
  const delivered = depot.deliver({ id: "EV-2", start: "08:00", amperes: 8, vehicles: ["v1"], priority: 0 });
  const pluggedIn = depot.telemetry("bay-02", { state: "charging", vehicle: "v2" });
  expect(await delivered).toMatchObject({ kind: "refused" });
  await pluggedIn;
  depot.partner.events.delete("EV-2");
  depot.disk.full = false;
  await depot.until("08:10:10");
  expect(depot.timedCommands()).toEqual(["08:00:00.000 bay-01 10 A", "08:10:05.000 bay-02 10 A"]);
});

test("F04, F05: after the state was lost a first failed commit only delays the assertion of the chargers", () => {
  const depot = aPicture({ assertAll: true });
  depot.allowStarts();
  restoreState(depot, rememberedOf({}), at("04:00"));
  const touches = [...depot.chargers.keys()].map((charger) => ({ charger, reassert: false }));
  expect(evaluate(depot, touches, at("04:00")).send).toEqual(["bay-01", "bay-02"]);
  const scope = {
    events: new Set<EventId>(),
    chargers: new Set(depot.chargers.keys()),
    holds: new Set<string>(),
    mode: false,
  };
  recoverAfterFailedCommit(depot, scope, rememberedOf({}), new Map(), at("04:00"));
  expect(evaluate(depot, touches, at("04:01")).send).toEqual(["bay-01", "bay-02"]);
});

test("F05: a pause for a switch of phases whose outcome could not be recorded goes on, also where nothing is refreshed", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .equippedWith({
      refresh: null,
      phaseSwitching: { every: minutes(15), settle: seconds(10), deadTime: seconds(60) },
    })
    .withEvent({ start: "08:00", minutes: 120, kilowatts: 2.3 })
    .running();
  await depot.until("07:59:50");
  depot.floor.publishing("bay-01", { takesMs: 1000 });
  await depot.until("08:00:00.500");
  depot.disk.full = true;
  await depot.until("08:00:12");
  expect(depot.messages()).toEqual(["08:00:00.000 bay-01 pause"]);
  depot.disk.full = false;
  await depot.until("09:59");
  expect(depot.commands()).toEqual(["bay-01 pause", "bay-01 pause on 1 phase", "bay-01 10 A on 1 phase"]);
  const arrived = depot.audit("outcome").filter((words) => words.includes("acknowledged by the broker"));
  expect(arrived).toHaveLength(3);
});

test("F05: a publish that could not be recorded is judged all the same, where nothing is refreshed", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .equippedWith({ refresh: null })
    .withEvent({ id: "EV-1", start: "08:00", minutes: 120, amperes: 10 })
    .running();
  await depot.until("07:59:50");
  depot.floor.publishing("bay-01", { takesMs: 1000 });
  await depot.until("08:00:00.500");
  depot.disk.full = true;
  await depot.deliver({ id: "EV-2", start: "09:00", minutes: 10, amperes: 8 });
  await depot.until("08:00:02");
  depot.partner.events.delete("EV-2");
  await depot.deliver({ id: "EV-3", start: "09:00", minutes: 10, amperes: 8 });
  depot.partner.events.delete("EV-3");
  depot.disk.full = false;
  await depot.until("08:05");
  expect(depot.messages()).toEqual(["08:00:00.000 bay-01 10 A"]);
  await depot.telemetry("bay-01", { state: "charging", limitA: 32, currentsA: [32, 32, 32] });
  expect(depot.messages()).toHaveLength(2);
  expect(depot.audit("outcome").map((words) => words.split(" ").slice(2, 4).join(" "))).toEqual([
    "acknowledged by",
    "not followed:",
  ]);
});

test("tries that were counted in memory stay counted, and a judgement since then stays (F05)", () => {
  const sent: CommandRecord = { ...commandRecord(chargerId("bay-01"), 1), sentAt: at("05:05"), sends: 3 };
  const restored = (stored: Partial<CommandRecord>, was: Partial<CommandRecord>) => {
    const depot = aPicture();
    const last = { record: { ...sent, judgeAt: at("05:09"), ...was }, rows: [] };
    const commands = [{ ...sent, sentAt: at("05:00"), sends: 1, judgeAt: at("05:01"), ...stored }];
    const bay = chargerId("bay-01");
    const scope = {
      events: new Set<EventId>(),
      chargers: new Set([bay]),
      holds: new Set<string>(),
      mode: false,
    };
    recoverAfterFailedCommit(depot, scope, rememberedOf({ commands }), new Map([[bay, last]]), at("05:10"));
    const { progress, resends, judgeAt, sends } = depot.commands.get(chargerId("bay-01")) ?? sent;
    return { progress, resends, judgeAt, sends };
  };
  const refused = { progress: "refused" } as const;
  expect(restored(refused, { ...refused, resends: 1 })).toEqual({
    ...refused,
    resends: 1,
    judgeAt: at("05:09"),
    sends: 3,
  });
  expect(restored({ ...refused, resends: 2 }, { ...refused, resends: 1 })).toMatchObject({
    resends: 2,
    judgeAt: at("05:01"),
  });
  expect(restored({ progress: "followed" }, { progress: "acknowledged" })).toEqual({
    progress: "followed",
    resends: 0,
    judgeAt: at("05:01"),
    sends: 3,
  });
});

test("failed publishes stay counted through a failed commit, so that the pauses between tries go on growing (F05)", () => {
  const bay = chargerId("bay-01");
  const scope = { events: new Set<never>(), chargers: new Set([bay]), holds: new Set<never>(), mode: false };
  const failuresAfter = (live: CommandRecord): number | undefined => {
    const depot = aPicture();
    depot.commands.record(live);
    recoverAfterFailedCommit(
      depot,
      scope,
      rememberedOf({ commands: [commandRecord(bay, 1)] }),
      new Map(),
      at("05:10"),
    );
    return depot.commands.get(bay)?.failures;
  };
  expect(failuresAfter({ ...commandRecord(bay, 1), failures: 3 })).toBe(3);
  // Those of a command that was never stored are gone with it.
  expect(failuresAfter({ ...commandRecord(bay, 2), failures: 3 })).toBe(0);
});

test("F21: after the clock was set back a charger is judged in the time that it would have had", () => {
  const depot = aPicture();
  const bay = chargerId("bay-01");
  depot.commands.record({ ...commandRecord(bay, 1), sentAt: at("07:00"), judgeAt: at("07:01") });
  onClockMovedBack(depot, at("05:00"));
  expect(depot.commands.get(bay)?.judgeAt).toBeLessThan(at("05:05"));
});

test("the row of a clock step has whole milliseconds, whatever it was measured with", () => {
  expect(clockStepRow(millis(3_600_000.051941), at("08:00"))).toMatchObject({
    entry: {
      words: "the clock of this machine was set forward by 3600 s: every charger is evaluated again",
      facts: { jumpMs: 3_600_000 },
    },
  });
});
