import { expect, test } from "vitest";

import { rollBack } from "../../src/control/recovery.ts";
import { scopeOf } from "../../src/domain/changes.ts";
import { chargerId, eventId, millis, vehicleId } from "../../src/domain/units.ts";
import { commandRecord } from "../store/sqlite/words.ts";
import { aVehicle } from "../support/aCharger.ts";
import { aDispatch, anEvent, at, live } from "../support/anEvent.ts";
import { aRelease } from "../support/aHold.ts";
import { aPicture, rememberedOf } from "../support/aPicture.ts";

const bay = chargerId("bay-01");
const bus = aVehicle().id;
const noSpread = { randomizeStart: millis(0) };
const nothing = {
  events: new Set([eventId("EV-7731")]),
  chargers: new Set([bay]),
  holds: new Set<string>(),
  mode: false,
};

test("an event that was never stored is forgotten, a charger without a stored command has none", () => {
  const depot = aPicture();
  depot.schedule.put(live(anEvent(noSpread)), at("05:10"));
  depot.commands.record(commandRecord(bay, 1));
  rollBack(depot, nothing, rememberedOf({}), at("05:10"));
  expect([depot.known.size, depot.agenda.size, depot.commands.size]).toEqual([0, 0, 0]);
});

test("a stored revision replaces one that was not stored, and evaluated windows stay evaluated", () => {
  const depot = aPicture();
  const stored = live(anEvent({ ...noSpread, revision: at("04:00") }));
  depot.schedule.put(live(anEvent({ ...noSpread, revision: at("04:05") })), at("04:10"));
  const [planned] = depot.agenda.of(bus);
  if (planned !== undefined) depot.schedule.markEvaluated(planned);
  if (planned !== undefined) depot.schedule.markUnplugged(planned, 1);
  depot.schedule.committed(1);
  depot.schedule.markUnplugged(aDispatch({ vehicle: vehicleId("veh-9") }), 2);
  rollBack(depot, nothing, rememberedOf({ events: [stored] }), at("04:10"));
  expect(depot.known.get(stored.id)).toBe(stored);
  const marks = depot.agenda
    .of(bus)
    .map((one) => [depot.schedule.isEvaluated(one), depot.schedule.isUnplugged(one)]);
  expect(marks).toEqual([[true, true]]);
});

test.each([
  { starts: "may happen", isEvaluated: true },
  { starts: "may not happen", isEvaluated: false },
])(
  "where starts $starts, a stored window that had begun and that the dropped revision lacked counts as evaluated: $isEvaluated; it is recorded again if it was not stored",
  ({ isEvaluated }) => {
    const depot = aPicture();
    if (isEvaluated) depot.allowStarts();
    depot.schedule.evaluatedTo(at("05:30"));
    depot.schedule.put(live(anEvent({ ...noSpread, start: at("05:20") })), at("05:30"));
    for (const one of depot.agenda.of(bus)) depot.schedule.markUnplugged(one, 1);
    const affected = rollBack(
      depot,
      nothing,
      rememberedOf({ events: [live(anEvent(noSpread))] }),
      at("05:30"),
    );
    expect([...affected]).toEqual([bus]);
    expect(
      depot.agenda.of(bus).map((one) => [depot.schedule.isEvaluated(one), depot.schedule.isUnplugged(one)]),
    ).toEqual([[isEvaluated, false]]);
  },
);

test("a hold that was stored holds again, and one that was not stored never was", () => {
  const depot = aPicture();
  const [hold, unstored] = [aRelease(), { ...aRelease(), id: "hold-7-2" }];
  depot.holds.put(unstored);
  rollBack(
    depot,
    { ...nothing, holds: new Set([hold.id, unstored.id]) },
    rememberedOf({ holds: [hold] }),
    at("05:10"),
  );
  expect(depot.holds.all()).toEqual([hold]);
});

const row = (charger: string | null) =>
  ({
    kind: "audit",
    entry: {
      at: at("05:00"),
      kind: "outcome",
      charger: charger === null ? null : chargerId(charger),
      vehicle: null,
      event: null,
      command: null,
      words: "",
      facts: null,
    },
  }) as const;

test("observe that was not stored never began, and a failed commit without it leaves observe on", () => {
  const depot = aPicture();
  const until = at("06:00");
  depot.mode.begin({ since: at("05:00"), until, cap: until, by: "anna", reason: "works" });
  rollBack(depot, nothing, rememberedOf({}), at("05:10"));
  expect(depot.mode.current).toBe("observe");
  rollBack(depot, { ...nothing, mode: true }, rememberedOf({}), at("05:10"));
  expect(depot.mode.current).toBe("drive");
});

test("the scope of a failed commit is the events and chargers of its changes and rows", () => {
  const held = aRelease("bay-03");
  const scope = scopeOf([
    { kind: "event", known: live(anEvent()) },
    { kind: "command", record: commandRecord("bay-01", 1) },
    { kind: "commandForgotten", charger: chargerId("bay-02") },
    { kind: "holdForgotten", id: "hold-7-9" },
    { kind: "hold", hold: { ...held, id: "hold-7-3", scope: { kind: "site" } } },
    { kind: "hold", hold: held },
    row("bay-04"),
    row(null),
    { kind: "evaluated", at: at("05:00") },
  ]);
  expect([...scope.events]).toEqual(["EV-7731"]);
  expect([...scope.chargers].toSorted()).toEqual(["bay-01", "bay-02", "bay-03", "bay-04"]);
  expect([...scope.holds]).toEqual(["hold-7-9", "hold-7-3", "hold-7-1"]);
});
