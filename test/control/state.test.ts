import { expect, test } from "vitest";

import type { ControlState } from "../../src/control/state.ts";
import type { StoredState } from "../../src/domain/changes.ts";
import type { CommandRecord } from "../../src/domain/command.ts";
import { summaryOf } from "../../src/domain/event.ts";
import type { Reason } from "../../src/domain/reason.ts";
import { amperes, chargerId, eventId, millis, watts } from "../../src/domain/units.ts";
import { runToEnd } from "../../src/platform/cooperative.ts";
import { aCharger, aVehicle, settingsWith } from "../support/aCharger.ts";
import { aPicture, rememberedOf } from "../support/aPicture.ts";
import { aRelease } from "../support/aHold.ts";
import { aDispatch, anEvent, at, live } from "../support/anEvent.ts";

const bay = chargerId("bay-01");
const bus = aVehicle().id;
const WHY = { words: "bay-01 to 16 A", cause: "event" } as Reason;
const noSpread = { randomizeStart: millis(0) };

const remembered = (changes: Parameters<typeof rememberedOf>[0] = {}): StoredState =>
  rememberedOf({ events: [live(anEvent(noSpread))], ...changes });

const record = (progress: CommandRecord["progress"]): CommandRecord => ({
  command: {
    charger: bay,
    epoch: 1,
    seq: 1,
    desired: { kind: "current", amperes: amperes(16) },
    until: at("06:00"),
    vehicle: bus,
    event: eventId("EV-7731"),
    cause: "event",
    decidedAt: at("05:00"),
  },
  progress,
  sentAt: null,
  sends: 0,
  failures: 0,
  replaces: null,
  judgeAt: null,
  resends: 0,
});

test("a restart keeps the future: events, commands and holds are there again", () => {
  const depot = aPicture();
  const hold = aRelease(bay, ["EV-0"], at("04:00"), at("07:00"));
  runToEnd(depot.restoring(remembered({ commands: [record("acknowledged")], holds: [hold] }), at("05:10")));
  expect(depot.verdictOn(aCharger(), at("05:10"))).toMatchObject({
    desired: { kind: "current", amperes: 16 },
  });
  expect([depot.commands.get(bay)?.command.seq, depot.holds.get(hold.id)]).toEqual([1, hold]);
});

test("restoring again starts over from the stored state", () => {
  const depot = aPicture();
  runToEnd(depot.restoring(remembered({ commands: [record("planned")] }), at("05:10")));
  runToEnd(depot.restoring(remembered({ events: [] }), at("05:11")));
  expect([depot.known.size, depot.commands.size, depot.agenda.size]).toEqual([0, 0, 0]);
});

test("the reason of a command is known again after a restart, and not once the command is gone", () => {
  const depot = aPicture();
  const commands = [record("accepted")];
  runToEnd(depot.restoring(remembered({ commands, reasons: new Map([["1-1", WHY]]) }), at("05:10")));
  expect(depot.whyOf(aCharger())).toEqual(WHY);
  runToEnd(depot.restoring(remembered({ commands, reasons: new Map([["1-2", WHY]]) }), at("05:11")));
  expect(depot.whyOf(aCharger())).toBeNull();
});

test("F20: windows that passed since the last row are kept, so that the first evaluation records them as missed", () => {
  const depot = aPicture();
  runToEnd(depot.restoring(remembered({ evaluatedAt: at("04:30") }), at("07:00")));
  expect([depot.schedule.evaluatedAt, depot.agenda.size]).toEqual([at("04:30"), 1]);
  const fresh = aPicture();
  runToEnd(fresh.restoring(remembered(), at("07:00")));
  expect([fresh.schedule.evaluatedAt, fresh.agenda.size]).toEqual([at("07:00"), 0]);
});

const commandsKept = (mode: "drive" | "observe") => {
  const depot = aPicture({ settings: settingsWith({ mode }) });
  runToEnd(depot.restoring(remembered({ commands: [record("observed")] }), at("05:10")));
  return depot.commands.size;
};

test("an observed command was never sent: in drive mode its charger counts as never commanded", () => {
  expect([commandsKept("drive"), commandsKept("observe")]).toEqual([0, 1]);
});

test("F04: after the state was lost no charger's last command is known", () => {
  expect(aPicture().unasserted.size).toBe(0);
  expect([...aPicture({ assertAll: true }).unasserted]).toEqual(["bay-01", "bay-02"]);
});

test("F04: after a failed commit a charger without a command since the state was lost is still to be asserted", () => {
  const depot = aPicture({ assertAll: true });
  for (const id of depot.chargers.keys())
    depot.recordDecision(
      { ...record("planned"), command: { ...record("planned").command, charger: id } },
      WHY,
    );
  expect(depot.unasserted.size).toBe(0);
  runToEnd(depot.restoring(remembered({ commands: [record("planned")] }), at("05:10")));
  expect([...depot.unasserted]).toEqual(["bay-02"]);
  const sure = aPicture();
  runToEnd(sure.restoring(remembered(), at("05:10")));
  expect(sure.unasserted.size).toBe(0);
});

test("commands are numbered from one in each epoch", () => {
  const depot = aPicture();
  expect([depot.nextId(), depot.nextId()]).toEqual([
    { epoch: 7, seq: 1 },
    { epoch: 7, seq: 2 },
  ]);
});

test("an empty charger is to be released, and one with the vehicle follows its event", () => {
  const depot = aPicture();
  expect([...depot.schedule.put(live(anEvent(noSpread)), at("05:10"))]).toEqual([bus]);
  const [first, second] = ["bay-01", "bay-02"].map((id) => depot.verdictOn(aCharger({ id }), at("05:10")));
  expect([first?.desired.kind, second?.desired.kind]).toEqual(["current", "release"]);
});

test("an operator's hold counts in the verdict", () => {
  const depot = aPicture();
  depot.schedule.put(live(anEvent(noSpread)), at("05:10"));
  depot.holds.put(aRelease());
  expect(depot.verdictOn(aCharger(), at("05:10"))).toMatchObject({
    winner: null,
    hold: { scope: { charger: bay } },
  });
});

/** What bay-01, limited to 11 kW, is allowed at 05:10 of 32 A that an event asks. */
function allowed(voltage: number | null, toldAt: string | null): number | null {
  const depot = aPicture();
  depot.schedule.put(live(anEvent({ ...noSpread, ask: { kind: "current", level: 32 } })), at("05:10"));
  depot.presence.update(bay, {
    online: true,
    heardAt: at("05:10"),
    voltagesAt: toldAt === null ? null : at(toldAt),
    voltage,
    currentsAt: toldAt === null ? null : at(toldAt),
    telemetry: { at: at("05:09") },
  });
  const { desired } = depot.verdictOn(aCharger({ maxPower: watts(11_000) }), at("05:10"));
  return desired.kind === "current" ? desired.amperes : null;
}

test("measured volts count while they are fresh", () => {
  expect(allowed(220, "05:07")).toBe(16.6);
  for (const [voltage, toldAt] of [
    [220, "05:06:59"],
    [220, null],
    [null, "05:09"],
  ] as const)
    expect(allowed(voltage, toldAt)).toBe(15.9);
});

/** A picture whose vehicle charges on so many phases; null: it does not say. */
const ours = (phases: number | null): ControlState => aPicture({ vehicles: [aVehicle({ phases })] });

test("measured phases count while they are fresh, and only where they are more than the vehicle declares", () => {
  const allowedOn = (depot: ControlState, currentsA: readonly number[], toldAt = "05:09"): unknown => {
    depot.schedule.put(live(anEvent({ ...noSpread, ask: { kind: "current", level: 32 } })), at("05:10"));
    const telemetry = { at: at(toldAt), currentsA };
    depot.presence.update(bay, {
      online: true,
      heardAt: at("05:10"),
      currentsAt: at(toldAt),
      telemetry,
    });
    return depot.verdictOn(aCharger({ maxPower: watts(6_900) }), at("05:10")).desired;
  };
  expect(allowedOn(ours(3), [16, 0.2, 0])).toEqual({ kind: "current", amperes: 10 });
  expect(allowedOn(ours(null), [16, 0.2, 0])).toEqual({ kind: "current", amperes: 10 });
  expect(allowedOn(ours(1), [16, 0.2, 0])).toEqual({ kind: "current", amperes: 30 });
  expect(allowedOn(ours(1), [16, 16, 16])).toEqual({ kind: "current", amperes: 10 });
  expect(allowedOn(ours(1), [16, 16, 16], "05:08:59")).toEqual({ kind: "current", amperes: 30 });
  expect(allowedOn(ours(1), [0, 0, 0])).toEqual({ kind: "current", amperes: 30 });
  const silent = ours(3);
  silent.presence.update(bay, {
    online: true,
    currentsAt: at("05:09"),
  });
  expect(silent.verdictOn(aCharger(), at("05:10")).desired).toEqual({ kind: "release" });
});

test("a charger that never sent a message is neither online nor offline", () => {
  expect(aPicture().presence.of(bay)).toMatchObject({ online: null, heardAt: null, telemetry: null });
});

test("the earlier of two requests for an evaluation counts, and the later one is due at its own time", () => {
  const depot = aPicture();
  expect(depot.next()).toBeUndefined();
  depot.wake(bay, at("05:20"));
  depot.wake(bay, at("05:30"));
  depot.wake(bay, at("05:10"));
  expect(depot.next()).toBe(at("05:10"));
  expect([depot.woken(at("05:09")).size, ...depot.woken(at("05:10"))]).toEqual([0, bay]);
  expect(depot.next()).toBe(at("05:20"));
});

test("the next evaluation is due at the next boundary or request, whichever is first", () => {
  const depot = aPicture();
  depot.schedule.put(live(anEvent(noSpread)), at("04:00"));
  expect(depot.next()).toBe(at("05:00"));
  depot.wake(bay, at("05:30"));
  expect(depot.next()).toBe(at("05:00"));
  depot.wake(bay, at("04:30"));
  expect(depot.next()).toBe(at("04:30"));
});

test("dispatches without a charger are recorded once", () => {
  const depot = aPicture();
  const dispatch = aDispatch();
  depot.schedule.markUnplugged(dispatch, 1);
  expect([depot.schedule.isUnplugged(dispatch), depot.schedule.isUnplugged(aDispatch())]).toEqual([
    true,
    false,
  ]);
});

test("F21: a window that a clock ahead had passed lies ahead again after a restart", () => {
  const depot = aPicture();
  runToEnd(depot.restoring(remembered({ evaluatedAt: at("06:30") }), at("04:30")));
  expect([depot.schedule.evaluatedAt, depot.next()]).toEqual([at("04:30"), at("05:00")]);
});

test("F21: a window that ended by a clock ahead is planned again once it is set back", () => {
  const depot = aPicture();
  runToEnd(depot.restoring(remembered(), at("04:30")));
  depot.agenda.advance(at("07:00"));
  depot.schedule.replan(at("04:31"));
  expect([depot.schedule.evaluatedAt, depot.next(), depot.agenda.size]).toEqual([
    at("04:31"),
    at("05:00"),
    1,
  ]);
});

test("F21: an evaluated window is not missed when the clock is set back over it, by the next evaluation or start", () => {
  const depot = aPicture();
  runToEnd(depot.restoring(remembered(), at("04:30")));
  const [weighed] = depot.agenda.of(bus);
  if (weighed !== undefined) depot.schedule.markEvaluated(weighed);
  depot.schedule.replan(at("04:20"));
  expect(depot.agenda.of(bus).map((dispatch) => depot.schedule.isEvaluated(dispatch))).toEqual([true]);
  const next = aPicture();
  runToEnd(next.restoring(remembered({ evaluatedAt: at("07:00") }), at("04:20")));
  expect(next.agenda.of(bus).map((dispatch) => next.schedule.isEvaluated(dispatch))).toEqual([true]);
});

test("F21: before the first evaluation no window counts as evaluated", () => {
  const depot = aPicture();
  depot.schedule.replan(at("04:30"));
  expect(depot.schedule.evaluatedAt).toBe(at("04:30"));
});

test("a request for an evaluation that an earlier one replaced wakes no charger", () => {
  const depot = aPicture();
  depot.wake(bay, at("05:05"));
  depot.wake(bay, at("05:01"));
  expect([...depot.woken(at("05:01"))]).toEqual([bay]);
  expect([...depot.woken(at("05:05"))]).toEqual([]);
  depot.wake(bay, at("05:20"));
  depot.wake(bay, at("05:10"));
  expect([...depot.woken(at("05:10"))]).toEqual([bay]);
  depot.wake(bay, at("05:30"));
  expect([...depot.woken(at("05:20"))]).toEqual([]);
  expect([...depot.woken(at("05:30"))]).toEqual([bay]);
});

test("a forgotten event leaves nothing behind", () => {
  const depot = aPicture();
  const event = live(anEvent());
  depot.schedule.put(event, at("04:00"));
  depot.schedule.forget(event.id, at("04:00"));
  expect([depot.known.size, depot.agenda.size]).toEqual([0, 0]);
});

test("a restart keeps a stored event that is over as its summary", () => {
  const depot = aPicture();
  const summary = summaryOf(live(anEvent(noSpread)), 700);
  runToEnd(depot.schedule.restoring([summary], null, at("07:00")));
  expect([depot.known.get(summary.id), depot.agenda.size]).toEqual([summary, 0]);
});

test("a live page reads of each event, of the vehicles that it plans for, of a new command and of a vehicle that moved", () => {
  const depot = aPicture();
  let woken = 0;
  using page = depot.feed.readAll(() => (woken += 1));
  const event = live(anEvent(noSpread));
  depot.schedule.put(event, at("04:00"));
  expect([woken, page.takeAll()]).toEqual([
    1,
    [
      { kind: "vehicle", id: bus },
      { kind: "event", id: event.id },
    ],
  ]);
  depot.recordDecision(record("planned"), WHY);
  expect(page.takeAll()).toEqual([{ kind: "vehicle", id: bus }]);
  depot.occupancy.note(chargerId("bay-02"), { at: at("05:00"), vehicle: bus }, at("05:00"));
  expect(page.takeAll()).toEqual([{ kind: "vehicle", id: bus }]);
  depot.schedule.forget(event.id, at("05:00"));
  expect(page.takeAll()).toHaveLength(2);
  expect(woken).toBe(4);
});
