import { expect, test, vi } from "vitest";

import type { AuditEntry, Json } from "../../../src/domain/audit.ts";
import { commandId } from "../../../src/domain/command.ts";
import { chargerId, millis } from "../../../src/domain/units.ts";
import { endOutagesOfLastRun } from "../../../src/control/observe/recordSilence.ts";
import { aDepot } from "../../support/aDepot.ts";
import { aPicture } from "../../support/aPicture.ts";
import { at } from "../../support/anEvent.ts";

/** Chargers that do not answer, so that only what the test sends is heard. */
const depots = () =>
  aDepot()
    .withVehicle("v1", "bay-01")
    .withSilentChargers()
    .withEvent({ start: "08:00", minutes: 120, amperes: 10 });

test("a charger that fell silent under a limit is on record once, and gets its setpoint once at its first message (F88)", async () => {
  const depot = await depots().running();
  await depot.until("08:00:30");
  await depot.telemetry("bay-01", { state: "charging" });
  await depot.until("08:30");
  expect(depot.audit("silence")).toEqual([
    "bay-01 is unreachable: no message for 300 s; its last setpoint is 10 A",
  ]);
  expect(depot.unreachable()).toEqual(["bay-01"]);
  await depot.until("08:30:20");
  depot.forget();
  await depot.telemetry("bay-01", { state: "charging" });
  await depot.telemetry("bay-01", { state: "charging" });
  await depot.passes(1000);
  expect(depot.messages()).toEqual(["08:30:20.001 bay-01 10 A"]);
  expect(depot.audit("silence").at(-1)).toBe("bay-01 sends messages again after 1790 s");
  expect(depot.unreachable()).toEqual([]);
});

test("the first message after a silence is no proof of a release: it may show a limit from before", async () => {
  const depot = await depots().running();
  await depot.until("09:50");
  await depot.telemetry("bay-01", { state: "connected", limitA: 10 });
  await depot.until("10:20");
  expect(depot.commands().at(-1)).toBe("bay-01 release");
  depot.forget();
  await depot.telemetry("bay-01", { state: "connected", limitA: 32 });
  await depot.passes(1000);
  expect(depot.messages()).toEqual(["10:20:00.001 bay-01 release"]);
  await depot.until("10:21");
  await depot.telemetry("bay-01", { state: "connected", limitA: 32 });
  expect(depot.audit("outcome").at(-1)).toMatch(/followed: reports a limit of 32 A$/);
});

test("a release is not proven by what comes after the online of a charger that was silent", async () => {
  const depot = await depots().running();
  await depot.until("09:50");
  await depot.online("bay-01", true);
  await depot.telemetry("bay-01", { state: "connected", limitA: 10 });
  await depot.until("10:20");
  depot.forget();
  await depot.online("bay-01", true);
  await depot.telemetry("bay-01", { state: "connected", limitA: 32 });
  await depot.passes(1000);
  expect(depot.messages()).toEqual(["10:20:00.001 bay-01 release"]);
  expect(depot.audit("outcome").at(-1)).not.toContain("followed");
  await depot.until("10:21");
  await depot.telemetry("bay-01", { state: "connected", limitA: 32 });
  expect(depot.audit("outcome").at(-1)).toMatch(/followed: reports a limit of 32 A$/);
});

test("what a driver finds when a time is over ends no silence: the charger has sent nothing", async () => {
  const depot = await depots().running();
  await depot.until("08:00:30");
  await depot.telemetry("bay-01", { state: "charging" });
  await depot.until("08:30");
  const charger = chargerId("bay-01");
  const command = depot.floor.published[0]?.command;
  if (command === undefined) throw new Error("nothing was sent");
  const reason = "not confirmed within 5 s";
  await depot.hears({ kind: "unconfirmed", charger, id: commandId(command), reason, hasReported: true });
  await depot.hears({ kind: "forgot", charger });
  expect(depot.unreachable()).toEqual(["bay-01"]);
  expect(depot.audit("silence")).toHaveLength(1);
});

test("a silence that begins and ends while the disk is full is on record afterwards, with its own times (F05)", async () => {
  const depot = await depots().running();
  await depot.until("08:00:30");
  await depot.telemetry("bay-01", { state: "charging" });
  await depot.until("08:04");
  depot.disk.full = true;
  await depot.until("08:30");
  await depot.telemetry("bay-01", { state: "charging" });
  await depot.online("bay-01", false);
  await depot.until("08:31");
  expect(depot.audit("silence")).toEqual([]);
  depot.disk.full = false;
  await depot.until("08:31:20");
  expect(depot.audit("silence")).toEqual([
    "bay-01 is unreachable: no message for 300 s; its last setpoint is 10 A",
    "bay-01 sends messages again after 1770 s",
    "bay-01 is offline; its last setpoint is 10 A",
  ]);
});

test("a last will is no message of the charger: the silence does not end with it", async () => {
  const depot = await depots().running();
  await depot.until("08:00:30");
  await depot.telemetry("bay-01", { state: "charging" });
  await depot.until("08:30");
  await depot.online("bay-01", false);
  await depot.until("08:40");
  expect(depot.audit("silence")).toEqual([
    "bay-01 is unreachable: no message for 300 s; its last setpoint is 10 A",
    "bay-01 is offline; its last setpoint is 10 A",
  ]);
  await depot.online("bay-01", true);
  expect(depot.audit("silence").at(-1)).toBe("bay-01 is online again");
});

test("a silent charger is sent its commands all the same, except those that are over", async () => {
  const depot = await depots().running();
  await depot.telemetry("bay-01", { state: "charging" });
  await depot.until("08:30");
  expect(depot.commands()).toEqual(["bay-01 10 A"]);
  await depot.until("11:00");
  depot.forget();
  await depot.telemetry("bay-01", { state: "charging" });
  await depot.passes(1000);
  expect(depot.messages()).toEqual(["11:00:00.001 bay-01 release"]);
});

test("a silent charger without a limit is only logged, and one that never sent a message is not", async () => {
  const depot = await aDepot().withVehicles(2).running();
  await depot.telemetry("bay-01", { state: "connected" });
  await depot.until("02:00");
  expect(depot.warnings).toEqual(["bay-01 is unreachable: no message for 300 s"]);
  expect(depot.audit("silence")).toEqual([]);
  await depot.telemetry("bay-01", { state: "connected" });
  await depot.passes(1000);
  expect([depot.messages(), depot.audit("silence")]).toEqual([[], []]);
});

test("while the broker is away no charger falls silent, and its return is one message each (F80)", async () => {
  const depot = await depots().running();
  await depot.until("08:10");
  await depot.telemetry("bay-01", { state: "charging" });
  depot.brokerGoes();
  await depot.until("08:40");
  expect([depot.unreachable(), depot.audit("silence")]).toEqual([[], []]);
  depot.forget();
  depot.brokerReturns();
  await depot.passes(100);
  await depot.telemetry("bay-01", { state: "charging" });
  await depot.passes(1000);
  expect(depot.messages()).toHaveLength(1);
});

test("a charger that reported offline is not silent, and a clock step makes no charger silent (F20)", async () => {
  const depot = await aDepot().withVehicles(2).running();
  await depot.online("bay-01", true);
  await depot.online("bay-01", false);
  await depot.telemetry("bay-02", { state: "connected" });
  vi.setSystemTime(Date.parse("2027-11-21T00:00:00Z"));
  await depot.passes(120_000);
  expect(depot.unreachable()).toEqual([]);
  await depot.passes(600_000);
  expect(depot.unreachable()).toEqual(["bay-02"]);
});

test("a silence that a restart falls into ends on record, and begins again if the charger stays silent", async () => {
  const depot = await depots().running();
  await depot.until("08:00:30");
  await depot.telemetry("bay-01", { state: "charging" });
  await depot.until("08:30");
  await depot.restart();
  await depot.until("08:50");
  const unreachable = "bay-01 is unreachable: no message for 300 s; its last setpoint is 10 A";
  expect(depot.audit("silence")).toEqual([
    unreachable,
    "bay-01 was away when the last run ended; not known yet whether it still is",
    unreachable,
  ]);
  await depot.restart();
  await depot.telemetry("bay-01", { state: "charging" });
  await depot.until("09:30");
  await depot.telemetry("bay-01", { state: "charging" });
  await depot.restart();
  // The first word after the start was no news: what was silent before it had ended with it.
  expect(depot.audit("silence").slice(3)).toEqual([
    "bay-01 was away when the last run ended; not known yet whether it still is",
    unreachable,
    expect.stringMatching(/^bay-01 sends messages again after \d+ s$/),
  ]);
});

const began = (charger: string | null, facts: Json): AuditEntry => ({
  at: at("05:01"),
  kind: "silence",
  charger: charger === null ? null : chargerId(charger),
  vehicle: null,
  event: null,
  command: null,
  words: "away",
  facts,
});

test("an outage that ends with the start has its begin in the record", async () => {
  const now = at("06:00");
  const open = [
    began(null, { outage: "partner", since: "2026-11-21T05:00:00.000Z" }),
    began("bay-01", { outage: "charger", warning: "silent" }),
  ];
  expect(endOutagesOfLastRun(aPicture(), open, millis(0), now)).toMatchObject([
    {
      entry: {
        at: now,
        words: "the partner was away when the last run ended; not known yet whether it still is",
        facts: { outage: "partner", since: "2026-11-21T05:00:00.000Z", over: true },
      },
    },
    {
      entry: {
        charger: "bay-01",
        facts: { outage: "charger", since: "2026-11-21T05:01:00.000Z", over: true },
      },
    },
  ]);
});

test("the time until a charger counts as silent is configured, by default at least three refreshes", async () => {
  const patient = await aDepot().withControl({ silentAfter: "1h" }).withVehicles(1).running();
  await patient.telemetry("bay-01", { state: "connected" });
  await patient.until("00:59");
  expect(patient.unreachable()).toEqual([]);
  await patient.until("01:02");
  expect(patient.unreachable()).toEqual(["bay-01"]);
});

test("in observe mode no setpoint was sent, and the record names none", async () => {
  const depot = await depots().withControl({ mode: "observe" }).running();
  await depot.until("08:00:30");
  await depot.telemetry("bay-01", { state: "charging" });
  await depot.until("08:30");
  await depot.online("bay-01", false);
  expect(depot.audit("decision")).toHaveLength(1);
  expect(depot.warnings).toEqual(["bay-01 is unreachable: no message for 300 s"]);
  expect(depot.audit("silence")).toEqual([]);
});
