import { runToEnd } from "../../../src/platform/cooperative.ts";
import { virtualNow } from "../../support/virtualTime.ts";
import { type Command, commandId, type CommandRecord } from "../../../src/domain/command.ts";
import type { ControlState } from "../../../src/control/state.ts";
import type { Telemetry } from "../../../src/domain/telemetry.ts";
import { amperes, after, chargerId, instant, minutes, vehicleId } from "../../../src/domain/units.ts";
import { handleChargerMessage } from "../../../src/control/observe/chargerMessages.ts";
import { aVehicle } from "../../support/aCharger.ts";
import { at } from "../../support/anEvent.ts";
import { aPicture, rememberedOf } from "../../support/aPicture.ts";
import { expect, test } from "vitest";

import { aDepot } from "../../support/aDepot.ts";
import type { TestDepot } from "../../support/testDepot.ts";

test("a charger that comes back online is sent its setpoint once (F88)", async () => {
  const depot = await aDepot().withVehicles(2).withEvent({ start: "08:00", amperes: 10 }).running();
  await depot.until("08:10:30");
  depot.forget();
  await depot.online("bay-01", true);
  await depot.passes(1000);
  expect(depot.messages()).toEqual(["08:10:30.001 bay-01 10 A"]);
});

test("a charger that is offline is sent nothing, and the current setpoint on its return (F88)", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ id: "EV-1", start: "08:00", minutes: 60, amperes: 10 })
    .withEvent({ id: "EV-2", start: "08:20", minutes: 30, amperes: 8, priority: 0 })
    .running();
  await depot.online("bay-01", false);
  await depot.until("08:30");
  depot.brokerReturns();
  await depot.until("08:40");
  expect(depot.messages()).toEqual([]);
  await depot.online("bay-01", true);
  await depot.passes(1000);
  expect(depot.messages()).toEqual(["08:40:00.001 bay-01 8 A"]);
});

test("a charger that flaps once a second gets one message for each return (F88)", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", amperes: 10 })
    .running();
  await depot.until("08:10:01");
  depot.forget();
  for (let flap = 0; flap < 10; flap += 1) {
    await depot.online("bay-01", false);
    await depot.passes(500);
    await depot.online("bay-01", true);
    await depot.passes(500);
  }
  expect(depot.messages()).toHaveLength(10);
});

test("the retained online message after a reconnection adds no second message (F85)", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", amperes: 10 })
    .running();
  await depot.online("bay-01", true);
  await depot.until("08:10:01");
  depot.forget();
  depot.brokerGoes();
  await depot.passes(3000);
  depot.brokerReturns();
  await depot.online("bay-01", true, true);
  await depot.passes(3000);
  expect(depot.messages()).toHaveLength(1);
});

test("a charger that reconnects after us to a broker that was away is sent its setpoint once more, then only signs of life count", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", amperes: 10 })
    .running();
  await depot.online("bay-01", true);
  await depot.until("08:10:01");
  depot.brokerGoes();
  await depot.passes(3000);
  depot.brokerReturns();
  await depot.online("bay-01", true, true);
  depot.forget();
  for (let second = 0; second < 10; second += 1) {
    await depot.online("bay-01", true);
    await depot.passes(1000);
  }
  expect(depot.messages()).toHaveLength(1);
});

test("a release that was lost twice is sent again a minute after its broker is back, to a charger that is written to on change only", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withSilentChargers()
    .withEvent({ start: "08:00", minutes: 60, amperes: 10 })
    .equippedWith({ refresh: null })
    .running();
  const stillLimited = { state: "charging", limitA: 10, currentsA: [10] } as const;
  await depot.until("08:59");
  await depot.telemetry("bay-01", stillLimited);
  await depot.until("09:00:31");
  await depot.telemetry("bay-01", stillLimited);
  await depot.passes(20_000);
  depot.brokerGoes();
  await depot.passes(20_000);
  depot.brokerReturns();
  await depot.telemetry("bay-01", stillLimited);
  depot.forget();
  // The charger reconnects later than the gateway, and misses what is sent at once.
  await depot.passes(62_000);
  expect(depot.messages()).toEqual(["09:02:11.011 bay-01 release"]);
});

test("a vehicle that moves in the middle of an event keeps its setpoint, and the old charger is released once it reports unplugged", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withCharger("bay-02")
    .withEvent({ start: "08:00", amperes: 10 })
    .running();
  await depot.until("08:10");
  depot.forget();
  await depot.telemetry("bay-02", { state: "charging", vehicle: "v1" });
  await depot.passes(1000);
  expect(depot.commands()).toEqual(["bay-02 10 A"]);
  await depot.telemetry("bay-01", { state: "unplugged" });
  await depot.passes(1000);
  expect(depot.commands()).toEqual(["bay-02 10 A", "bay-01 release"]);
});

test("a vehicle that is not ours is not limited: the charger is released when it takes the place of ours", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", amperes: 10 })
    .running();
  await depot.until("08:10");
  depot.forget();
  await depot.telemetry("bay-01", { state: "charging", identity: { kind: "rfid", value: "04FF" } });
  await depot.passes(1000);
  expect(depot.commands()).toEqual(["bay-01 release"]);
  expect(depot.audit("decision").at(-1)).toBe("bay-01 released: v1 has left, rfid 04FF is not ours");
});

test("a vehicle that two chargers claim is at the one with the newer report, with a warning", async () => {
  const depot = await aDepot()
    .withVehicle("v1", null)
    .withCharger("bay-01")
    .withCharger("bay-02")
    .withEvent({ start: "08:00", amperes: 10 })
    .running();
  await depot.telemetry("bay-01", { vehicle: "v1" });
  await depot.until("08:10");
  await depot.telemetry("bay-02", { vehicle: "v1" });
  await depot.passes(1000);
  expect(depot.standing()).toContain("bay-02 10 A until 09:00:00.000");
  expect(depot.warnings.filter((words) => words.includes("claimed"))).toEqual([
    "vehicle v1 is claimed by bay-01 and bay-02: the newer report, bay-02, wins",
  ]);
});

test("unplugging keeps a fixed binding, so the next plug-in starts limited", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", amperes: 10 })
    .running();
  await depot.telemetry("bay-01", { state: "charging", vehicle: "v1" });
  await depot.until("08:10");
  await depot.telemetry("bay-01", { state: "unplugged" });
  await depot.until("08:20");
  expect(depot.commands()).toEqual(["bay-01 10 A"]);
});

test("a refusal is recorded once, and an answer to another command not at all (F90)", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", amperes: 10 })
    .running();
  depot.floor.answers = "refuses";
  await depot.until("08:10");
  const [, ...after] = depot.audit("outcome");
  expect(after).toHaveLength(1);
  expect(after[0]).toMatch(/refused by the charger: busy$/);
  const charger = depot.floor.published[0]?.command.charger;
  if (charger === undefined) throw new Error("nothing was sent");
  await depot.hears({ kind: "ack", charger, id: "1-1", accepted: true, value: 10, reason: null });
  expect(depot.audit("outcome")).toHaveLength(2);
});

test("a charger that refuses each refresh for another reason shows the latest one, in one row of the record", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", amperes: 10 })
    .running();
  depot.floor.answers = "silent";
  await depot.until("08:00:01");
  const command = depot.floor.published[0]?.command;
  if (command === undefined) throw new Error("nothing was sent");
  const [id, { charger }] = [commandId(command), command];
  const refuses = (reason: string) =>
    depot.hears({ kind: "ack", charger, id, accepted: false, value: null, reason });
  await refuses("its cable is locked");
  await refuses("20 writes an hour are used up");
  expect(JSON.stringify(await depot.explain({ charger: "bay-01" }))).toContain(
    "20 writes an hour are used up",
  );
  expect(depot.audit("outcome").filter((row) => row.includes("refused"))).toEqual([
    expect.stringContaining("refused by the charger: its cable is locked"),
  ]);
});

test("a refusal is tried again with growing pauses where no refresh would do it, as each write wears (F89)", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", minutes: 60, amperes: 10 })
    .equippedWith({ refresh: null })
    .running();
  depot.floor.answers = "refuses";
  await depot.until("08:00:40");
  await depot.telemetry("bay-01", { limitA: 8, currentsA: [8, 8, 8] });
  await depot.until("08:50");
  expect(depot.messages()).toEqual([
    "08:00:00.000 bay-01 10 A",
    "08:00:30.005 bay-01 10 A",
    "08:01:30.010 bay-01 10 A",
    "08:03:30.015 bay-01 10 A",
  ]);
  expect(depot.audit("outcome").filter((words) => words.includes("followed"))).toEqual([]);
});

test("an unconfirmed release is tried again like a refusal, where writes are limited", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", minutes: 60, amperes: 10 })
    .equippedWith({ refresh: null })
    .running();
  await depot.until("08:59");
  depot.floor.answers = "silent";
  await depot.until("09:01");
  depot.floor.answers = "accepts";
  await depot.until("10:00");
  expect(depot.messages().slice(1)).toEqual([
    "09:00:00.000 bay-01 release",
    "09:00:30.005 bay-01 release",
    "09:01:30.010 bay-01 release",
  ]);
});

test("a release is retried three times where the charger never sent a message and writes are limited", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withSilentChargers()
    .withEvent({ start: "08:00", minutes: 60, amperes: 10 })
    .equippedWith({ refresh: null })
    .running();
  await depot.until("12:00");
  expect(depot.messages()).toEqual([
    "08:00:00.000 bay-01 10 A",
    "09:00:00.000 bay-01 release",
    "09:00:30.005 bay-01 release",
    "09:01:30.010 bay-01 release",
    "09:03:30.015 bay-01 release",
  ]);
});

test("a charger that answers before the broker does is judged all the same", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", minutes: 60, amperes: 10 })
    .running();
  depot.floor.publishing("bay-01", { takesMs: 500 });
  await depot.until("08:00:00.100");
  const { id } = depot.floor.published[0] ?? {};
  if (id === undefined) throw new Error("nothing was sent");
  const charger = chargerId("bay-01");
  await depot.hears({ kind: "ack", charger, id, accepted: true, value: 10, reason: null });
  await depot.until("08:01");
  await depot.telemetry("bay-01", { limitA: 10 });
  await depot.passes(1000);
  expect(depot.audit("outcome").map((words) => words.replace(/^bay-01 \S+ /, ""))).toEqual([
    "accepted by the charger after 101 ms",
    "acknowledged by the broker after 500 ms",
    "followed: reports a limit of 10 A",
  ]);
});

test("messages of a charger that is not configured are ignored", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", amperes: 10 })
    .running();
  await depot.until("08:10");
  await depot.telemetry("bay-99", { vehicle: "v1" });
  await depot.passes(1000);
  expect(depot.standing()).toEqual(["bay-01 10 A until 09:00:00.000"]);
});

test("a charger that lost its setpoint is sent it again, once, with the same number", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", minutes: 60, amperes: 10 })
    .running();
  await depot.until("08:00:20");
  await depot.hears({ kind: "forgot", charger: chargerId("bay-01") });
  await depot.until("08:00:40");
  expect(depot.floor.published).toHaveLength(2);
  expect(depot.commands()).toEqual(["bay-01 10 A"]);
});

test("F89: telemetry in several messages is judged as a whole", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", minutes: 60, amperes: 10 })
    .running();
  await depot.until("08:00:40");
  const at = virtualNow();
  const charger = chargerId("bay-01");
  await depot.hears({
    kind: "telemetry",
    charger,
    telemetry: { at, powerW: 100 },
    lastKnown: { at, powerW: 100, limitA: 32 },
  });
  expect(depot.audit("outcome").join("\n")).toContain(
    "not followed: setpoint 10 A, reports a limit of 32 A and draws 0.1 A",
  );
});

const DAY = 86_400_000;

test("a single report from a charger whose clock was set back is not lost", async () => {
  const depot = await aDepot()
    .withCharger("bay-01")
    .withVehicle("v1", null)
    .withVehicle("v2", null)
    .withEvent({ id: "EV-1", start: "08:00", minutes: 60, amperes: 10, vehicles: ["v2"] })
    .running();
  await depot.until("07:30");
  await depot.telemetry("bay-01", { state: "charging", vehicle: "v1", powerW: 5000 });
  await depot.until("07:50");
  await late(depot, "bay-01", 1_800_000, { state: "connected", vehicle: "v2" });
  for (let word = 0; word < 5; word += 1) {
    await depot.passes(10_000);
    await late(depot, "bay-01", 1_800_000, { powerW: 0 });
  }
  await depot.until("08:05");
  expect(depot.commands()).toEqual(["bay-01 10 A"]);
});

/** What a charger measured so many ms ago, and says only now. */
const late = (
  depot: TestDepot,
  charger: string,
  ago: number,
  telemetry: Omit<Telemetry, "at">,
  snapshot = false,
) =>
  depot.hears({
    kind: "telemetry",
    charger: chargerId(charger),
    telemetry: { at: instant(virtualNow() - ago), ...telemetry },
    ...(snapshot ? { snapshot } : {}),
  });

test.each([
  ["waited at the broker for five days", 5 * DAY, true],
  ["waited at the broker for longer than anything is kept", 8 * DAY, true],
  ["was kept for an hour", DAY / 24, false],
])(
  "phases and voltages that a charger measured long ago are not those of now: it %s",
  async (_, ago, waited) => {
    const depot = await aDepot()
      .withVehicle("v1", "bay-01", { phases: 3 })
      .equippedWith({ takesWatts: false })
      .withEvent({ start: "08:00", minutes: 60, kilowatts: 11.04 })
      .running();
    await depot.until("07:59:50");
    await late(depot, "bay-01", ago, { currentsA: [16, 0, 0] }, waited);
    await depot.until("08:01");
    expect(depot.commands()).toEqual(["bay-01 16 A"]);
  },
);

test("a buffer that is emptied after the first live message moves no vehicle", async () => {
  const depot = await aDepot()
    .withVehicle("v1", null)
    .withVehicle("v2", null)
    .withCharger("bay-01")
    .withEvent({ start: "08:00", minutes: 120, amperes: 10, vehicles: ["v1"] })
    .running();
  await depot.until("08:10");
  await late(depot, "bay-01", 0, { state: "charging", vehicle: "v1" });
  await late(depot, "bay-01", 3_600_000, { state: "charging", vehicle: "v2" });
  await late(depot, "bay-01", 3_000_000, { state: "unplugged", vehicle: null });
  await late(depot, "bay-01", 10, { state: "charging", vehicle: "v1" });
  await depot.passes(5_000);
  expect(depot.commands()).toEqual(["bay-01 10 A"]);
});

test("a retained message older than the cap of buffers moves no vehicle", async () => {
  const depot = await aDepot()
    .withVehicle("v1", null)
    .withCharger("bay-01")
    .withCharger("bay-02")
    .withEvent({ start: "08:00", minutes: 120, amperes: 10 })
    .running();
  await depot.until("07:50");
  await late(depot, "bay-02", 0, { state: "charging", vehicle: "v1" });
  await depot.until("08:10");
  await depot.restart();
  depot.forget();
  await late(depot, "bay-01", 8 * DAY, { state: "charging", vehicle: "v1" }, true);
  await depot.until("08:20");
  expect(depot.commands().filter((words) => !words.startsWith("bay-02"))).toEqual([]);
});

test("a charger whose clock is days behind gets the vehicle of one that went dark", async () => {
  const depot = await aDepot()
    .withVehicle("v1", null)
    .withCharger("bay-01")
    .withCharger("bay-02")
    .withEvent({ start: "08:00", minutes: 120, amperes: 10 })
    .running();
  await depot.until("08:10");
  await late(depot, "bay-01", 0, { state: "charging", vehicle: "v1" });
  await depot.until("08:20");
  for (let word = 0; word < 8; word += 1) {
    await late(depot, "bay-02", 2 * DAY, { state: "charging", vehicle: "v1" });
    await depot.passes(30_000);
  }
  // The dark one may still have it: it keeps its limit until it speaks.
  expect(depot.commands()).toEqual(["bay-01 10 A", "bay-02 10 A"]);
});

test("a charger that reports online each second is sent its setpoint once, then only refreshes", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", minutes: 10, amperes: 10 })
    .running();
  depot.floor.answers = "silent";
  await depot.until("08:10:30");
  depot.forget();
  for (let second = 0; second < 50; second += 1) {
    await depot.online("bay-01", true);
    await depot.passes(1_000);
  }
  expect(depot.messages()).toHaveLength(1);
});

test.each([1, 5, 30])(
  "a charger that reports each %i s that it is online is judged, and ends in an alarm, as any other (F89)",
  async (every) => {
    const depot = await aDepot()
      .withVehicle("v1", "bay-01")
      .withEvent({ start: "08:00", minutes: 30, amperes: 10 })
      .equippedWith({ refresh: null })
      .running();
    for (let second = 0; second < 1200; second += every) {
      await depot.until(new Date(Date.UTC(2026, 10, 21, 8, 0, 10 + second)).toISOString());
      depot.says({ kind: "online", charger: chargerId("bay-01"), online: true, snapshot: false });
      await depot.telemetry("bay-01", { limitA: 32, currentsA: [32, 32, 32] });
    }
    const judged = depot.audit("outcome").filter((words) => words.includes("followed"));
    expect(judged).toHaveLength(4);
    expect(judged.at(-1)).toContain("still not followed after 3 more tries");
    // The start, its first "online", and three tries.
    expect(depot.messages()).toHaveLength(5);
  },
);

const [bay1, bay2] = [chargerId("bay-01"), chargerId("bay-02")];

const told = (charger: typeof bay1, vehicle: string): CommandRecord => ({
  command: {
    charger,
    epoch: 1,
    seq: 1,
    desired: { kind: "current", amperes: amperes(16) },
    until: at("06:00"),
    vehicle: vehicleId(vehicle),
    event: null,
    cause: "event",
    decidedAt: at("05:00"),
  },
  progress: "accepted",
  replaces: null,
  sentAt: at("05:00"),
  sends: 1,
  judgeAt: null,
  resends: 0,
  failures: 0,
});

/** A restart under an event that bay-01 was told for veh-1 and bay-02 for veh-2; the bindings were swapped meanwhile. */
function swapped(): ControlState {
  const depot = aPicture({
    vehicles: [aVehicle({ id: "veh-1", charger: bay2 }), aVehicle({ id: "veh-2", charger: bay1 })],
  });
  runToEnd(
    depot.restoring(rememberedOf({ commands: [told(bay1, "veh-1"), told(bay2, "veh-2")] }), at("05:10")),
  );
  return depot;
}

/** Kinds of the changes that an answer causes to a command with this progress. */
function changesBy(progress: "acknowledged" | "refused", accepted: boolean): readonly string[] {
  const record = { ...told(bay1, "veh-1"), progress };
  const depot = aPicture({ vehicles: [aVehicle({ id: "veh-1", charger: bay1 })] });
  runToEnd(depot.restoring(rememberedOf({ commands: [record] }), at("05:10")));
  const ack = { kind: "ack", charger: bay1, id: commandId(record.command), value: 16, reason: null } as const;
  return handleChargerMessage(depot, { ...ack, accepted }, at("05:11")).changes.map(({ kind }) => kind);
}

test("an acceptance is a row of the record alone, and a refusal is stored with its command", () => {
  expect(changesBy("acknowledged", true)).toEqual(["audit"]);
  expect(changesBy("acknowledged", false)).toEqual(["audit", "command"]);
  // The stored command is refused, which a start does not look up.
  expect(changesBy("refused", true)).toEqual(["audit", "command"]);
});

test.each([
  ["at once, where a message tells all", false, 0],
  ["after a minute, where a make tells one thing at a time", true, 1],
])("bindings that were swapped under an event hold after the restart: %s", (_, inParts, wait) => {
  const depot = swapped();
  const spoken = (now = at("05:11")) => {
    const telemetry = { at: now, powerW: 4000 };
    const lastKnown = inParts ? { lastKnown: telemetry } : {};
    for (const charger of [bay1, bay2])
      handleChargerMessage(depot, { kind: "telemetry", charger, telemetry, ...lastKnown }, now);
    return depot.occupancy.where(vehicleId("veh-1"));
  };
  expect(spoken()).toBe(inParts ? bay1 : bay2);
  expect(spoken(after(at("05:11"), minutes(wait)))).toBe(bay2);
  expect(depot.occupancy.where(vehicleId("veh-2"))).toBe(bay1);
});

test("a charger that never sent a message does not refuse: the row notes that it may not have received its command", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", amperes: 10 })
    .running();
  depot.floor.answers = "silent";
  await depot.until("08:10:01");
  const command = depot.floor.published[0]?.command;
  if (command === undefined) throw new Error("nothing was sent");
  const said = {
    kind: "unconfirmed",
    charger: command.charger,
    id: commandId(command),
    reason: "not confirmed within 5 s",
  } as const;
  await depot.hears({ ...said, hasReported: false });
  expect(depot.audit("outcome").at(-1)).toContain("no message from the charger since the start");
  await depot.hears({ ...said, hasReported: true });
  expect(depot.audit("outcome").at(-1)).toContain("refused by the charger: not confirmed within 5 s");
});

test("a command of an earlier start that its charger refuses is decided again once, with a higher number", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", amperes: 10 })
    .running();
  await depot.until("08:10");
  await depot.restart();
  const [first] = depot.floor.published;
  depot.floor.published.length = 0;
  depot.floor.answers = "refuses";
  await depot.until("08:20");
  const numbers = [...new Set(depot.floor.published.map(({ id }) => id))];
  expect(numbers).toHaveLength(2);
  expect(numbers[0]).toBe(first?.id);
  expect(depot.audit("decision")).toHaveLength(2);
  expect(depot.floor.published.at(-1)?.words).toBe("bay-01 10 A");
});

const afterOutage = async (minutes: number) => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .equippedWith({ refresh: null })
    .withEvent({ start: "08:00", minutes, amperes: 10 })
    .running();
  await depot.until("08:05");
  depot.brokerGoes();
  await depot.until("08:15");
  depot.forget();
  return depot;
};
const times = (messages: readonly string[]) => messages.map((message) => message.replace(/\.\d{3}/, ""));

test("a charger that is written to on change gets its level once more a minute after its broker's return", async () => {
  const depot = await afterOutage(120);
  depot.brokerReturns();
  await depot.until("08:30");
  expect(times(depot.messages())).toEqual(["08:15:00 bay-01 10 A", "08:16:00 bay-01 10 A"]);
});

test("a release that the charger accepted after its broker's return is not repeated", async () => {
  const depot = await afterOutage(10);
  depot.brokerReturns();
  await depot.until("08:30");
  expect(times(depot.messages())).toEqual(["08:15:00 bay-01 release"]);
});

test("a broker that flaps has the level repeated once, a minute after its last return", async () => {
  const depot = await afterOutage(120);
  for (let flap = 0; flap < 5; flap += 1) {
    depot.brokerReturns();
    await depot.passes(10_000);
    depot.brokerGoes();
    await depot.passes(1000);
  }
  depot.brokerReturns();
  depot.forget();
  await depot.until("08:30");
  expect(times(depot.messages())).toEqual(["08:15:55 bay-01 10 A", "08:16:55 bay-01 10 A"]);
});

test("a charger that is seen to follow gets nothing more after its broker's return", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .equippedWith({ refresh: null })
    .withEvent({ start: "08:00", minutes: 120, amperes: 10 })
    .running();
  await depot.until("08:05");
  await depot.telemetry("bay-01", { state: "charging", limitA: 10, currentsA: [10, 10, 10] });
  depot.brokerGoes();
  await depot.until("08:15");
  depot.forget();
  depot.brokerReturns();
  await depot.until("08:30");
  expect(depot.messages()).toHaveLength(1);
});

const refusedAsOutdated = (command: Command) =>
  ({
    kind: "ack",
    charger: command.charger,
    id: commandId(command),
    accepted: false,
    value: null,
    reason: "outdated",
  }) as const;

test("a release that is decided again for its number is still compared with what the charger does", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", minutes: 10, amperes: 10 })
    .running();
  await depot.until("08:10:01");
  await depot.restart();
  const command = depot.floor.published.at(-1)?.command;
  if (command === undefined) throw new Error("nothing was sent");
  await depot.hears(refusedAsOutdated(command));
  expect(depot.audit("decision")).toHaveLength(3);
  await depot.until("08:12");
  await depot.telemetry("bay-01", { state: "charging", limitA: 10, currentsA: [10, 10, 10] });
  expect(depot.audit("outcome").at(-1)).toContain("not followed");
});

test("a level that is decided again for its number keeps its reason while another vehicle waits for the first poll", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withVehicle("v2", "bay-02")
    .withEvent({ start: "08:00", minutes: 60, amperes: 10, spread: 5 })
    .running();
  await depot.until("08:10");
  const command = depot.floor.published.find(({ words }) => words.startsWith("bay-01"))?.command;
  if (command === undefined) throw new Error("nothing was sent");
  const [first] = depot.audit("decision").filter((words) => words.startsWith("bay-01"));
  depot.partner.takesMs = 60_000;
  await depot.restart();
  await depot.telemetry("bay-01", { vehicle: "v2", state: "charging" });
  await depot.hears(refusedAsOutdated(command));
  expect(depot.floor.published.at(-1)?.command).toMatchObject({ vehicle: "v1", until: command.until });
  expect(depot.audit("decision").at(-1)).toBe(first);
});
