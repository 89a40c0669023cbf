import { expect, test } from "vitest";

import { decide } from "../../../src/control/decide/evaluate.ts";
import { recordOutcome } from "../../../src/control/send/outcome.ts";
import { type Command, type CommandRecord, isDoubted, nextJudgement } from "../../../src/domain/command.ts";
import { chargerId, seconds } from "../../../src/domain/units.ts";
import { commandRecord } from "../../store/sqlite/words.ts";
import { aCharger } from "../../support/aCharger.ts";
import { aDepot } from "../../support/aDepot.ts";
import { at } from "../../support/anEvent.ts";
import { aPicture } from "../../support/aPicture.ts";

const oneCharger = () =>
  aDepot().withVehicle("v1", "bay-01").withEvent({ start: "08:00", minutes: 60, amperes: 10 });

test("a command is refreshed every minute with the same number, a lease of three minutes, and no row of the record", async () => {
  const depot = await oneCharger().running();
  await depot.until("08:01");
  const rows = depot.audit().length;
  await depot.until("08:10:30");
  expect(depot.floor.published).toHaveLength(11);
  expect(new Set(depot.floor.published.map(({ id }) => id)).size).toBe(1);
  expect(new Set(depot.floor.published.map(({ lease }) => lease))).toEqual(new Set([180_000]));
  expect(depot.audit()).toHaveLength(rows);
});

test("decision, acknowledgement and acceptance are three rows of the record", async () => {
  const depot = await oneCharger().running();
  await depot.until("08:05");
  const [decided, acknowledged, accepted] = depot.audit("decision", "outcome");
  expect(decided).toContain("bay-01 (v1) to 10 A");
  expect(acknowledged).toMatch(/acknowledged by the broker after 5 ms$/);
  expect(accepted).toMatch(/accepted by the charger after 25 ms$/);
});

test("an acceptance is known after a restart: the refreshes that follow add no row", async () => {
  const depot = await oneCharger().running();
  await depot.until("08:05");
  const rows = depot.audit("outcome");
  await depot.restart();
  await depot.until("08:10");
  expect(depot.audit("outcome")).toEqual(rows);
});

test("a release that is not measured as followed is refreshed three times, a minute apart", async () => {
  const depot = await oneCharger().withSilentChargers().running();
  await depot.until("08:59:30");
  depot.forget();
  await depot.until("10:00");
  expect(depot.messages().filter((line) => line.includes("release"))).toEqual([
    "09:00:00.000 bay-01 release",
    "09:01:00.005 bay-01 release",
    "09:02:00.010 bay-01 release",
    "09:03:00.015 bay-01 release",
  ]);
});

test("a release that is measured as followed is sent once", async () => {
  const depot = await oneCharger().running();
  await depot.until("09:00:31");
  await depot.telemetry("bay-01", { state: "charging", limitA: 32 });
  await depot.until("10:00");
  expect(depot.messages().filter((line) => line.includes("release"))).toHaveLength(1);
});

test("a failed publish is tried again with growing pauses, and recorded once", async () => {
  const depot = await oneCharger().running();
  depot.floor.publishing("bay-01", "fails");
  await depot.until("08:30");
  expect(depot.messages()).toEqual([]);
  expect(depot.floor.failures).toBeGreaterThan(10);
  expect(depot.floor.failures).toBeLessThan(60);
  expect(depot.audit("outcome")).toHaveLength(1);
  depot.floor.publishing("bay-01", "works");
  await depot.until("08:32");
  expect(depot.commands()).toEqual(["bay-01 10 A"]);
});

test.each([
  { fraction: 0, tries: 24 },
  { fraction: 0.5, tries: 18 },
  { fraction: 1, tries: 14 },
])(
  "the pause before a failed publish is tried again is drawn by chance, so that chargers do not retry in step: $tries tries in ten minutes",
  async ({ fraction, tries }) => {
    const depot = await oneCharger()
      .withChance(() => fraction)
      .running();
    depot.floor.publishing("bay-01", "fails");
    await depot.until("08:10");
    expect(depot.floor.failures).toBe(tries);
  },
);

test("a setpoint that could not be sent before its end is never sent (F80)", async () => {
  const depot = await oneCharger().running();
  depot.floor.publishing("bay-01", "fails");
  await depot.until("08:59:59");
  depot.floor.publishing("bay-01", "works");
  await depot.until("10:00");
  expect(depot.commands()).toEqual(["bay-01 release"]);
});

test("a publish that hangs delays no other charger, not even in its refreshes", async () => {
  const depot = await aDepot().withVehicles(3).withEvent({ start: "08:00", amperes: 10 }).running();
  depot.floor.publishing("bay-01", "hangs");
  await depot.until("08:05:30");
  const messages = depot.messages();
  expect(messages.slice(0, 3).toSorted()).toEqual([
    "08:00:00.000 bay-01 10 A",
    "08:00:00.000 bay-02 10 A",
    "08:00:00.000 bay-03 10 A",
  ]);
  for (const charger of ["bay-02", "bay-03"])
    expect(messages.filter((line) => line.includes(charger))).toHaveLength(6);
});

test("a charger that fails is tried again soon although another one hangs", async () => {
  const depot = await aDepot().withVehicles(2).withEvent({ start: "08:00", amperes: 10 }).running();
  depot.floor.publishing("bay-02", "hangs");
  depot.floor.publishing("bay-01", "fails");
  await depot.until("08:00:00.100");
  depot.floor.publishing("bay-01", "works");
  await depot.until("08:00:05");
  expect(depot.commands().toSorted()).toEqual(["bay-01 10 A", "bay-02 10 A"]);
});

test("a newer verdict replaces one that waits for a slow broker; one publish at a time (F82)", async () => {
  const depot = await oneCharger().running();
  depot.floor.publishing("bay-01", { takesMs: 4000 });
  await depot.until("08:00:01");
  for (let revision = 1; revision <= 5; revision += 1) {
    await depot.deliver({ start: "08:00", amperes: 10 + revision, revision });
  }
  await depot.until("08:00:20");
  expect(depot.messages()).toEqual(["08:00:00.000 bay-01 10 A", "08:00:04.000 bay-01 15 A"]);
});

test("an evaluation during a publish does not send the same again", async () => {
  const depot = await oneCharger().running();
  depot.floor.publishing("bay-01", { takesMs: 4000 });
  await depot.until("08:00:01");
  await depot.free();
  await depot.deliver({ id: "EV-2", start: "08:00", amperes: 20, priority: 9 });
  await depot.until("08:00:30");
  expect(depot.messages()).toEqual(["08:00:00.000 bay-01 10 A"]);
});

test("an acknowledgement of a command that was replaced meanwhile is recorded as such", async () => {
  const depot = await oneCharger().running();
  depot.floor.publishing("bay-01", { takesMs: 4000 });
  await depot.until("08:00:01");
  await depot.deliver({ start: "08:00", amperes: 16, revision: 1 });
  await depot.until("08:00:20");
  expect(depot.audit("outcome").join("\n")).toMatch(/acknowledged by the broker, already replaced/);
});

test.each([
  { fraction: 0, least: 110, most: 130 },
  { fraction: 0.999, least: 55, most: 70 },
])(
  "a publish that fails is tried again after a random share of its pause ($fraction): not all bays at once",
  async ({ fraction, least, most }) => {
    const depot = await aDepot()
      .withVehicle("v1", "bay-01")
      .withEvent({ start: "08:00", minutes: 120, amperes: 10 })
      .withChance(() => fraction)
      .running();
    depot.floor.publishing("bay-01", "fails");
    await depot.until("09:00");
    expect(depot.floor.failures).toBeGreaterThanOrEqual(least);
    expect(depot.floor.failures).toBeLessThanOrEqual(most);
  },
);

test("only a new level counts as a write: no refresh, no mere extension, no failed publish, and nothing where writes are not limited", () => {
  const [bay, free] = [chargerId("bay-01"), chargerId("bay-02")];
  const depot = aPicture({ chargers: [aCharger({ writesPerHour: 3 }), aCharger({ id: "bay-02" })] });
  const now = at("05:10");
  /** Writes of the charger after publishes of one command. */
  const writesAfter = (charger: typeof bay, command: Partial<Command>, ...results: readonly boolean[]) => {
    const record = commandRecord(charger, 1);
    depot.commands.record({ ...record, command: { ...record.command, ...command } });
    for (const ok of results)
      recordOutcome(
        depot,
        { ...record.command, ...command },
        ok ? { ok } : { ok, retry: true, reason: "no PUBACK" },
        { from: now, until: now },
        0.5,
      );
    return depot.writes.inLastHour(charger, now);
  };
  expect(writesAfter(bay, {}, false)).toBe(0);
  expect(writesAfter(bay, { cause: "held" }, true)).toBe(0);
  expect(writesAfter(bay, {}, true, true)).toBe(1);
  expect(writesAfter(free, {}, true)).toBe(0);
});

test.each([
  {
    when: "while a refresh is on its way: the resend takes control again",
    judged: "08:01:00.040",
    isDoubted: true,
  },
  { when: "before its resend leaves: the resend took control", judged: "08:00:59.990", isDoubted: false },
])("a charger is found not to follow $when", ({ judged, isDoubted: expected }) => {
  const depot = aPicture();
  const ramp = seconds(30);
  const record: CommandRecord = {
    ...commandRecord("bay-01", 1),
    progress: "notFollowed",
    sentAt: at("08:00"),
    sends: 1,
    resends: 1,
    judgeAt: nextJudgement(at(judged), ramp, 1),
  };
  depot.commands.record(record);
  const tried = { from: at("08:01:00.000"), until: at("08:01:00.050") };
  recordOutcome(depot, record.command, { ok: true }, tried, 0);
  const known = depot.commands.get(record.command.charger);
  expect(known !== undefined && isDoubted(known, ramp)).toBe(expected);
});

test("values of the charger's own are stored when they are new, and kept by the next command", () => {
  const depot = aPicture();
  const planned = commandRecord("bay-01", 1);
  const { charger } = planned.command;
  depot.commands.record({ ...planned, progress: "planned", sentAt: null });
  const now = at("08:01");
  const outcome = (own?: Readonly<Record<string, string>>): readonly string[] => {
    const { command } = depot.commands.get(charger) ?? planned;
    return recordOutcome(depot, command, { ok: true, own }, { from: now, until: now }, 0).map(
      ({ kind }) => kind,
    );
  };
  expect(outcome({ ownMode: "pv" })).toEqual(["audit", "command"]);
  expect(outcome({ ownMode: "pv" })).toEqual([]);
  expect(outcome({ ownMode: "off" })).toEqual(["command"]);
  expect(outcome()).toEqual([]);
  const configured = depot.chargers.get(charger);
  if (configured === undefined) throw new Error("no charger");
  const decision = {
    desired: { kind: "release" },
    until: null,
    vehicle: null,
    event: null,
    cause: "ended",
  } as const;
  decide(depot, depot.verdictOn(configured, now), decision, now);
  expect(depot.commands.get(charger)?.command).toMatchObject({
    desired: { kind: "release" },
    own: { ownMode: "off" },
  });
});
