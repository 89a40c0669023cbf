import { expect, test } from "vitest";

import { aDepot } from "../../support/aDepot.ts";
import type { TestDepot } from "../../support/testDepot.ts";

const anHour = (amperes: number, start = "08:00") => ({ id: "EV-1", start, minutes: 60, amperes });

test("a charger at commissioning is not commanded, whatever returns or changes meanwhile", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  const loan = depot.lends("bay-01");
  await depot.online("bay-01", false);
  await depot.online("bay-01", true);
  depot.brokerGoes();
  depot.brokerReturns();
  await depot.telemetry("bay-01", { limitA: 6, currentsA: [6, 6, 6] });
  await depot.passes(60_000);
  expect([depot.messages(), loan.preemptedBy]).toEqual([[], null]);
  await depot.takesBack("bay-01");
  await depot.passes(600_000);
  expect(depot.messages()).toEqual([]);
});

test("an event that becomes due preempts commissioning at once, with the reason", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").withEvent(anHour(10)).running();
  await depot.until("07:59");
  const loan = depot.lends("bay-01");
  await depot.until("08:00:01");
  expect(depot.timedCommands()).toEqual(["08:00:00.000 bay-01 10 A"]);
  expect(loan.preemptedBy).toBe("EV-1 wants it");
  await depot.takesBack("bay-01");
  await depot.until("09:01");
  expect(depot.commands()).toEqual(["bay-01 10 A", "bay-01 release"]);
});

test("control waits for a publish in flight, so that its command is the last", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").withEvent(anHour(10)).running();
  await depot.until("07:59:30");
  const loan = depot.lends("bay-01");
  loan.startPublish();
  await depot.until("08:00:05");
  expect([depot.messages(), loan.preemptedBy]).toEqual([[], "EV-1 wants it"]);
  loan.endPublish();
  await depot.looksAtAgain("bay-01");
  expect(depot.commands()).toEqual(["bay-01 10 A"]);
});

test("the former level is sent again afterwards, with a number above those of the trial", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withControl({ atEnd: { current: 16 } })
    .withEvent(anHour(10))
    .running();
  await depot.until("09:05");
  depot.lends("bay-01");
  const before = depot.floor.published.at(-1);
  await depot.passes(300_000);
  expect(depot.floor.published.at(-1)).toBe(before);
  await depot.takesBack("bay-01");
  const after = depot.floor.published.at(-1);
  expect(after?.words).toBe("bay-01 16 A");
  expect(after?.command.seq).toBeGreaterThan(before?.command.seq ?? 0);
});

const numbered = (depot: TestDepot) => depot.floor.published.at(-1)?.command ?? { epoch: 0, seq: 0 };

test("after a power cut during commissioning the former level is sent with a number above those of the trial", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withControl({ atEnd: { current: 16 } })
    .withEvent(anHour(10))
    .running();
  await depot.until("09:05");
  depot.lends("bay-01");
  const { epoch } = numbered(depot);
  await depot.passes(1000);
  expect(depot.audit("operator").at(-1)).toBe(
    "bay-01 is locked for commissioning: 16 A again if that is interrupted",
  );
  await depot.restart();
  await depot.passes(5000);
  expect(depot.commands().at(-1)).toBe("bay-01 16 A");
  expect(numbered(depot).epoch).toBeGreaterThan(epoch);
  // Once is enough.
  depot.forget();
  await depot.restart();
  await depot.passes(5000);
  expect(depot.commands()).toEqual([]);
});

test("after a power cut during commissioning a charger without a limit is released", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  depot.lends("bay-01");
  const lent = depot.nextId();
  await depot.passes(1000);
  await depot.restart();
  await depot.passes(5000);
  expect(depot.commands()).toEqual(["bay-01 release"]);
  expect(numbered(depot).epoch).toBeGreaterThan(lent.epoch);
});

test("a charger that commissioning could not restore is released, with a number above those of the trial", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  depot.lends("bay-01");
  const trial = depot.nextId();
  await depot.takesBack("bay-01", false);
  expect(depot.commands()).toEqual(["bay-01 release"]);
  expect(numbered(depot).seq).toBeGreaterThan(trial.seq);
});

const stored = (depot: TestDepot): readonly string[] =>
  depot
    .storedCommands()
    .map(({ command, progress }) => `${command.charger} ${command.desired.kind} ${progress}`);

test("a bay without telemetry counts as not judged after commissioning, also after a restart", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").withSilentChargers().running();
  depot.lends("bay-01");
  await depot.passes(1000);
  expect(stored(depot)).toEqual(["bay-01 release planned"]);
  await depot.takesBack("bay-01");
  await depot.passes(1000);
  expect(stored(depot)).toEqual([]);
  await depot.restart();
  await depot.online("bay-01", true);
  await depot.passes(5000);
  expect([stored(depot), depot.messages()]).toEqual([[], []]);
});

test("a charger that was released before counts as released after commissioning", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withSilentChargers()
    .withEvent(anHour(10))
    .running();
  await depot.until("09:30");
  const before = stored(depot);
  depot.lends("bay-01");
  await depot.passes(1000);
  await depot.takesBack("bay-01");
  await depot.passes(5000);
  expect(stored(depot)).toEqual(before);
});

test("an operator's release ends the trial, which restores the charger", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  const loan = depot.lends("bay-01");
  await depot.free("bay-01");
  expect([loan.isCut, loan.preemptedBy]).toEqual([true, null]);
});

test("an operator's release of a charger under our limit is not undone by the end of the trial", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withControl({ atEnd: { current: 16 } })
    .withEvent(anHour(10))
    .running();
  await depot.until("09:05");
  depot.lends("bay-01");
  await depot.free("bay-01");
  const trial = depot.nextId();
  await depot.takesBack("bay-01");
  expect(depot.commands().at(-1)).toBe("bay-01 release");
  expect(numbered(depot).seq).toBeGreaterThan(trial.seq);
});

test.each([
  ["as it was", true],
  ["in another way", false],
])(
  "a setpoint of observe mode outlasts commissioning that leaves it %s: the next run in drive mode releases it",
  async (_how, isLeft) => {
    const depot = await aDepot()
      .withControl({ onObserve: "keep" })
      .withVehicle("v1", "bay-01")
      .withSilentChargers()
      .withEvent(anHour(10))
      .running();
    await depot.until("08:10");
    await depot.restart({ mode: "observe" });
    await depot.until("09:10");
    depot.forget();
    depot.lends("bay-01");
    await depot.passes(1000);
    await depot.takesBack("bay-01", isLeft);
    await depot.until("09:30");
    expect(depot.messages()).toEqual([]);
    await depot.restart({ mode: "drive" });
    await depot.until("10:00");
    expect(depot.commands()).toEqual(["bay-01 release"]);
  },
);

test("a release that was pending before commissioning is pending after it", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").withEvent(anHour(10)).running();
  await depot.until("08:30");
  depot.floor.publishing("bay-01", "fails");
  await depot.until("09:00:01");
  depot.lends("bay-01");
  depot.floor.publishing("bay-01", "works");
  await depot.passes(10_000);
  expect(depot.commands()).toEqual(["bay-01 10 A"]);
  await depot.takesBack("bay-01");
  expect(depot.commands()).toEqual(["bay-01 10 A", "bay-01 release"]);
});

test("in observe mode control preempts nothing", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withControl({ mode: "observe" })
    .withEvent(anHour(10))
    .running();
  await depot.until("07:59");
  const loan = depot.lends("bay-01");
  await depot.until("08:05");
  expect(loan.preemptedBy).toBeNull();
  await depot.takesBack("bay-01");
  expect([depot.messages(), depot.audit("decision").at(-1)]).toEqual([
    [],
    expect.stringContaining("observing, not sent"),
  ]);
});
