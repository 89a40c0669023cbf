import pino from "pino";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import type { SetMessage } from "../../src/chargers/native/payload.ts";
import type { ConnectorConfig } from "../../src/config/ocpp.ts";
import { amperes, chargerId, instant, millis } from "../../src/domain/units.ts";
import type { Answer } from "../../src/ocpp/calls.ts";
import { ForeignProfiles } from "../../src/ocpp/foreignProfiles.ts";
import { Connector } from "../../src/ocpp/connector.ts";
import { isOlder } from "../../src/chargers/native/payload.ts";
import { type Ack, type ReadyStation } from "../../src/ocpp/orders.ts";
import type { Composite, Request } from "../../src/ocpp/wire/dialect.ts";
import type { Call, Payload } from "../../src/ocpp/wire/frame.ts";
import { readCapabilities } from "../../src/ocpp/wire/capabilities.ts";
import { ocpp16 } from "../../src/ocpp/wire/ocpp16.ts";

const START = Date.parse("2026-11-23T12:00:00Z");

beforeEach(() => void vi.useFakeTimers({ now: START }));
afterEach(() => void vi.useRealTimers());

const CONFIG: ConnectorConfig = {
  id: 1,
  charger: chargerId("bay-01"),
  unit: null,
  stackLevel: null,
  phases: 3,
  voltage: 230,
  sendPhases: false,
  profileKind: "absolute",
  writesPerHour: 60,
};

type Scripted = Payload | "silent" | "unsupported";

/** A charger that answers as scripted; every request is kept. */
function aConnector(
  config: Partial<ConnectorConfig> = {},
  settings: Record<string, string> = {},
  over: { readonly clockAhead?: number } = {},
) {
  const asked: [action: string, payload: Payload][] = [];
  const acks: Ack[] = [];
  const composites: (Composite | null)[] = [];
  const events: string[] = [];
  const answers: Record<string, Scripted> = { GetCompositeSchedule: "unsupported" };
  const configurationKey = Object.entries(settings).map(([key, value]) => ({ key, value }));
  const station: ReadyStation = {
    dialect: ocpp16,
    capabilities: readCapabilities({ configurationKey }),
    clockAhead: millis(over.clockAhead ?? 0),
    ask: async <T>({ action, payload, read }: Request<T>): Promise<Answer<T>> => {
      asked.push([action, payload]);
      script.onAsked();
      const scripted = answers[action] ?? { status: "Accepted" };
      if (scripted === "silent") return { kind: "unanswered", reason: "no answer" };
      if (scripted === "unsupported") return { kind: "unsupported", reason: "not supported" };
      return { kind: "answered", value: read(scripted) };
    },
  };
  const script = { onAsked: (): void => undefined };
  let isReady = true;
  const foreign = new ForeignProfiles(null, "CP-1", pino({ level: "silent" }), () => instant(Date.now()));
  const connector = new Connector(
    { ...CONFIG, ...config },
    {
      now: () => instant(Date.now()),
      station: () => (isReady ? station : null),
      isWholeStation: false,
      others: foreign.beside(1, false),
      ack: (ack) => acks.push(ack),
      onComposite: (composite) => composites.push(composite),
      onEvent: (what) => events.push(what),
    },
  );
  return Object.assign(script, {
    connector,
    foreign,
    asked,
    acks,
    composites,
    events,
    answers,
    disconnect: () => (isReady = false),
    actions: () => asked.map(([action]) => action),
    profiles: () => asked.map(([, payload]) => payload["csChargingProfiles"] as Payload | undefined),
    async set(seq: number, desired: SetMessage["desired"], lease = 180_000, until: number | null = null) {
      const order = {
        id: `7-${seq}`,
        epoch: 7,
        seq,
        desired,
        vehicle: null,
        event: null,
        lease: millis(lease),
      };
      connector.onSet({ ...order, until: until === null ? null : instant(until) });
      await vi.advanceTimersByTimeAsync(0);
    },
  });
}

const level = (value: number) => ({ kind: "current", amperes: amperes(value) }) as const;

test("a level is written with the lease as its end, and acknowledged", async () => {
  const depot = aConnector({}, { ChargeProfileMaxStackLevel: "9" });
  await depot.set(1, level(16));
  expect(depot.acks).toEqual([{ id: "7-1", accepted: true, value: 16, reason: null }]);
  expect(depot.profiles()[0]).toMatchObject({
    chargingProfileId: 7_300_010,
    stackLevel: 9,
    chargingProfilePurpose: "TxDefaultProfile",
    validTo: "2026-11-23T12:03:00.000Z",
  });
  expect(depot.connector.level).toEqual({ text: "16 A", until: START + 180_000 });
});

test("the end of the event ends the limit before the lease does", async () => {
  const depot = aConnector();
  await depot.set(1, level(16), 180_000, START + 120_000);
  expect(depot.profiles()[0]).toMatchObject({ validTo: "2026-11-23T12:02:00.000Z" });
});

test("a transaction gets the limit as well, also one that begins later", async () => {
  const depot = aConnector();
  await depot.set(1, level(16));
  await depot.connector.onStarted("42", instant(START));
  expect(depot.profiles().at(-1)).toMatchObject({ chargingProfilePurpose: "TxProfile", transactionId: 42 });
  expect(depot.actions().filter((action) => action === "SetChargingProfile")).toHaveLength(3);
  depot.connector.onStopped();
  await depot.set(2, { kind: "release" });
  expect(depot.asked.at(-1)).toEqual(["ClearChargingProfile", { id: 7_300_010 }]);
  expect(depot.acks.at(-1)).toEqual({ id: "7-2", accepted: true, value: null, reason: null });
});

/** A charger that takes profiles of a transaction only, and these limits. */
function aCharger(limits: readonly number[] = []) {
  const depot = aConnector();
  depot.onAsked = () => {
    const text = JSON.stringify(depot.asked.at(-1));
    const isTaken =
      text.includes('"TxProfile"') || limits.some((limit) => text.includes(`"limit":${limit}}`));
    depot.answers["SetChargingProfile"] = { status: isTaken ? "Accepted" : "Rejected" };
  };
  return depot;
}

test("an order that a charger takes in a session only is carried out when one begins, while its lease lasts", async () => {
  const depot = aCharger([32]);
  await depot.set(1, level(32));
  await depot.set(2, level(10));
  expect(depot.acks.at(-1)).toMatchObject({ id: "7-2", accepted: false });
  await depot.connector.onStarted("42", instant(START));
  expect(depot.acks.at(-1)).toEqual({ id: "7-2", accepted: true, value: 10, reason: null });
  expect(depot.connector.level?.text).toBe("10 A");

  const late = aCharger();
  await late.set(1, level(10), 60_000);
  await vi.advanceTimersByTimeAsync(60_001);
  await late.connector.onStarted("42", instant(START));
  expect(late.actions()).toEqual(["SetChargingProfile"]);

  const released = aCharger();
  await released.set(1, level(10));
  await released.set(2, { kind: "release" });
  await released.connector.onStarted("42", instant(START));
  expect(released.actions()).toEqual(["SetChargingProfile", "ClearChargingProfile", "ClearChargingProfile"]);
});

test("a refused order is not carried out after a newer release, also where the charger refuses that", async () => {
  const depot = aCharger();
  depot.answers["ClearChargingProfile"] = "unsupported";
  await depot.set(1, level(10));
  await depot.set(2, { kind: "release" });
  expect(depot.acks.at(-1)).toMatchObject({ id: "7-2", accepted: false });
  await depot.connector.onStarted("42", instant(START));
  expect(depot.acks.map(({ id, accepted }) => [id, accepted])).toEqual([
    ["7-1", false],
    ["7-2", false],
  ]);
});

test("a session that begins while its order is being refused gets that order", async () => {
  const depot = aCharger();
  const { onAsked } = depot;
  depot.onAsked = () => {
    onAsked();
    if (depot.asked.length === 1) void depot.connector.onStarted("42", instant(START));
  };
  await depot.set(1, level(10));
  expect(depot.acks.at(-1)).toEqual({ id: "7-1", accepted: true, value: 10, reason: null });
});

test("a release clears our profiles, by their ids and no others", async () => {
  const depot = aConnector();
  await depot.connector.onStarted("42", instant(START));
  await depot.set(1, { kind: "pause" });
  await depot.set(2, { kind: "release" });
  const cleared = depot.asked.filter(([action]) => action === "ClearChargingProfile");
  expect(cleared.map(([, payload]) => payload)).toEqual([{ id: 7_300_010 }, { id: 7_300_011 }]);
  expect(depot.connector.level).toBeNull();
});

test("a profile that the charger does not know by its id is cleared by its place, where it was accepted", async () => {
  const depot = aConnector({}, { ChargeProfileMaxStackLevel: "8" });
  await depot.set(1, level(16));
  depot.answers["ClearChargingProfile"] = { status: "Unknown" };
  await depot.set(2, { kind: "release" });
  const cleared = depot.asked.filter(([action]) => action === "ClearChargingProfile");
  expect(cleared.map(([, payload]) => payload)).toEqual([
    { id: 7300010 },
    { connectorId: 1, chargingProfilePurpose: "TxDefaultProfile", stackLevel: 8 },
    { id: 7300011 },
  ]);
  expect(depot.acks.at(-1)?.accepted).toBe(true);
  depot.connector.close();
});

test("the whole station is connector 0, with one profile", async () => {
  const depot = aConnector({ id: 0 });
  await depot.connector.onStarted("42", instant(START));
  await depot.set(1, level(16));
  expect(depot.profiles().filter(Boolean)).toHaveLength(1);
});

test("an order of a lower number, and one whose time has passed, are refused", async () => {
  const depot = aConnector();
  await depot.set(2, level(16));
  await depot.set(1, level(8));
  await depot.set(3, level(8), 180_000, START - 1);
  expect(depot.acks.slice(1)).toEqual([
    { id: "7-1", accepted: false, value: null, reason: "older than 7-2" },
    { id: "7-3", accepted: false, value: null, reason: "its time has passed" },
  ]);
});

test("only the newest of several orders during a write is written", async () => {
  const depot = aConnector();
  void depot.set(1, level(16));
  void depot.set(2, level(12));
  await depot.set(3, level(8));
  expect(depot.acks.map(({ id }) => id)).toEqual(["7-1", "7-3"]);
});

test("a refresh is written when its share of the writes allows it, and acknowledged always", async () => {
  const depot = aConnector({ writesPerHour: 20 });
  await depot.set(1, level(16));
  expect(depot.profiles()[0]).toMatchObject({ validTo: "2026-11-23T12:04:30.000Z" });
  await vi.advanceTimersByTimeAsync(60_000);
  await depot.set(1, level(16));
  expect(depot.acks).toHaveLength(2);
  expect(depot.profiles().filter(Boolean)).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(110_000);
  await depot.set(1, level(16));
  expect(depot.profiles().filter(Boolean)).toHaveLength(2);
});

test("an increase beyond the writes per hour is refused with its time; a reduction never is", async () => {
  const depot = aConnector({ writesPerHour: 2 });
  await depot.set(1, level(16));
  await depot.set(2, level(12));
  await depot.set(3, level(14));
  await depot.set(4, level(8));
  expect(depot.acks.map(({ accepted }) => accepted)).toEqual([true, true, false, true]);
  expect(depot.acks[2]?.reason).toBe(
    "2 writes per hour are used up; the next is possible at 2026-11-23T13:00:00.000Z",
  );
});

test("writes dated ahead use up nothing, once the clock was set back", async () => {
  const depot = aConnector({ writesPerHour: 2 });
  await depot.set(1, level(16));
  await depot.set(2, level(12));
  vi.setSystemTime(START - 3 * 3_600_000);
  await depot.set(3, level(14));
  expect(depot.acks.map(({ accepted }) => accepted)).toEqual([true, true, true]);
});

test("a refused increase renews the limit in force, until the event ends it", async () => {
  const depot = aConnector({ writesPerHour: 2 });
  await depot.set(1, level(16));
  await depot.set(2, level(12));
  const refresh = async () => {
    await vi.advanceTimersByTimeAsync(60_000);
    await depot.set(3, level(14));
  };
  for (let minute = 1; minute <= 40; minute += 1) await refresh();
  expect(depot.actions()).not.toContain("ClearChargingProfile");
  expect(depot.connector.level?.text).toBe("12 A");
  expect(depot.acks.at(-1)).toMatchObject({ id: "7-3", accepted: false });
  // The limit in force is written again before it ends in the charger.
  expect(depot.profiles().filter(Boolean)).toHaveLength(3);
  expect(depot.profiles().at(-1)).toMatchObject({
    validTo: "2026-11-23T13:12:00.000Z",
    chargingSchedule: { chargingSchedulePeriod: [{ limit: 12 }] },
  });
  for (let minute = 41; minute <= 60; minute += 1) await refresh();
  expect(depot.acks.at(-1)).toEqual({ id: "7-3", accepted: true, value: 14, reason: null });
  await vi.advanceTimersByTimeAsync(180_000);
  expect(depot.connector.counts.expired).toBe(1);
});

test("a level that the charger rejects renews the limit in force; one without an answer is not followed by a write", async () => {
  const depot = aConnector();
  await depot.set(1, level(12));
  depot.onAsked = () => {
    const isKnown = JSON.stringify(depot.asked.at(-1)).includes('"limit":12');
    depot.answers["SetChargingProfile"] = { status: isKnown ? "Accepted" : "Rejected" };
  };
  for (let minute = 1; minute <= 10; minute += 1) {
    await vi.advanceTimersByTimeAsync(60_000);
    await depot.set(2, level(8));
  }
  expect(depot.connector.level?.text).toBe("12 A");
  expect(depot.acks.at(-1)).toMatchObject({ id: "7-2", accepted: false });
  expect(depot.profiles().at(-1)).toMatchObject({ validTo: "2026-11-23T12:13:00.000Z" });
  depot.onAsked = () => undefined;
  for (const answer of ["silent", { status: "Rejected" }] as const) {
    depot.answers["SetChargingProfile"] = answer;
    depot.asked.length = 0;
    await depot.set(3, level(answer === "silent" ? 8 : 12));
    expect(depot.actions()).toEqual(["SetChargingProfile"]);
  }
});

test("refreshes of one level use up no writes of an increase", async () => {
  const depot = aConnector({ writesPerHour: 20 });
  await depot.set(1, level(12));
  for (let minute = 1; minute <= 60; minute += 1) {
    await vi.advanceTimersByTimeAsync(60_000);
    await depot.set(1, level(12));
  }
  expect(depot.profiles().filter(Boolean)).toHaveLength(21);
  await depot.set(2, level(16));
  expect(depot.acks.at(-1)).toEqual({ id: "7-2", accepted: true, value: 16, reason: null });
});

test("a clock that is set back delays the end of the lease, and does not cancel it", async () => {
  const depot = aConnector();
  await depot.set(1, level(16), 20_000);
  vi.setSystemTime(START - 50_000);
  await vi.advanceTimersByTimeAsync(69_000);
  expect(depot.connector.level).not.toBeNull();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(depot.connector.level).toBeNull();
  expect(depot.actions().at(-1)).toBe("ClearChargingProfile");
});

test("a lease that passes clears the limit, for makes that ignore its end", async () => {
  const depot = aConnector();
  await depot.set(1, level(16), 20_000);
  await vi.advanceTimersByTimeAsync(20_000);
  // The first time also a profile that a killed bridge left in the charger.
  const cleared = depot.asked.filter(([action]) => action === "ClearChargingProfile");
  expect(cleared.map(([, payload]) => payload)).toEqual([{ id: 7_300_010 }, { id: 7_300_011 }]);
  expect(depot.connector.counts.expired).toBe(1);
  await depot.set(2, level(16), 20_000);
  depot.disconnect();
  await vi.advanceTimersByTimeAsync(20_000);
  expect(depot.connector.counts.expired).toBe(1);
});

test.each([
  [{ status: "Rejected" }, "the charger answered SetChargingProfile with Rejected"],
  ["silent", "no answer"],
  ["unsupported", "not supported"],
] as const)("an answer %o to the profile is a refusal with its reason", async (answer, reason) => {
  const depot = aConnector();
  depot.answers["SetChargingProfile"] = answer;
  await depot.connector.onStarted("42", instant(START));
  await depot.set(1, level(16));
  expect(depot.acks[0]?.accepted).toBe(false);
  expect(depot.acks[0]?.reason).toContain(reason);
  expect(depot.connector.lastRefusal).toContain(reason);
});

test("a release that the charger refuses or leaves open is refused", async () => {
  const depot = aConnector();
  depot.answers["ClearChargingProfile"] = { status: "Rejected" };
  await depot.set(1, { kind: "release" });
  depot.answers["ClearChargingProfile"] = "silent";
  await depot.set(2, { kind: "release" });
  expect(depot.acks.map(({ reason }) => reason)).toEqual([
    "the charger answered ClearChargingProfile with Rejected",
    "no answer",
  ]);
});

test("a charger without Smart Charging, one that is away, and a level below zero are refused by name", async () => {
  const plain = aConnector({}, { SupportedFeatureProfiles: "Core" });
  await plain.set(1, level(16));
  expect(plain.acks[0]?.reason).toContain("no Smart Charging");
  expect(plain.asked).toEqual([]);
  const depot = aConnector();
  await depot.set(1, level(-5));
  depot.disconnect();
  await depot.set(2, level(5));
  expect(depot.acks.map(({ reason }) => reason)).toEqual([
    "OCPP cannot command a level below zero",
    "the charger is not connected",
  ]);
});

test("the schedule that the charger reports is kept as proof, until the limit ends", async () => {
  const depot = aConnector({ unit: "W" });
  const chargingSchedule = {
    chargingRateUnit: "W",
    chargingSchedulePeriod: [{ startPeriod: 0, limit: 11_040 }],
  };
  depot.answers["GetCompositeSchedule"] = { status: "Accepted", chargingSchedule };
  await depot.set(1, level(16));
  expect(depot.actions()).toEqual(["SetChargingProfile"]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(depot.composites).toEqual([{ value: 11_040, unit: "W" }]);
  await depot.set(2, level(12));
  expect(depot.connector.applied.reported).toBeNull();
  await depot.set(3, level(16));
  await vi.advanceTimersByTimeAsync(1_000);
  expect(depot.actions().filter((action) => action === "GetCompositeSchedule")).toHaveLength(2);
  depot.connector.forgetLimit();
  expect(depot.composites.at(-1)).toBeNull();
  depot.connector.close();
});

test("the schedule of a former level is proof of none, also where the charger reports no newer one", async () => {
  const depot = aConnector();
  const chargingSchedule = { chargingRateUnit: "A", chargingSchedulePeriod: [{ startPeriod: 0, limit: 16 }] };
  depot.answers["GetCompositeSchedule"] = { status: "Accepted", chargingSchedule };
  await depot.set(1, level(16));
  await vi.advanceTimersByTimeAsync(1_000);
  expect(depot.composites).toEqual([{ value: 16, unit: "A" }]);
  depot.answers["GetCompositeSchedule"] = { status: "Rejected" };
  await depot.set(2, level(12));
  expect(depot.composites.at(-1)).toBeNull();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(depot.composites).toHaveLength(2);
});

test("a limit that the charger goes on to apply after its release is reported, until the charger reports another", async () => {
  const depot = aConnector();
  const reports = (limit: number): void => {
    const chargingSchedule = { chargingRateUnit: "A", chargingSchedulePeriod: [{ startPeriod: 0, limit }] };
    depot.answers["GetCompositeSchedule"] = { status: "Accepted", chargingSchedule };
  };
  const last = () => depot.composites.at(-1)?.value ?? null;
  // A charger that is free reports a limit of its own, which is not ours to show.
  reports(32);
  await depot.set(1, level(16));
  await depot.set(2, { kind: "release" });
  await vi.advanceTimersByTimeAsync(1_000);
  expect(last()).toBeNull();
  await depot.set(3, level(16));
  reports(16);
  await depot.set(4, { kind: "release" });
  await vi.advanceTimersByTimeAsync(1_000);
  expect(last()).toBe(16);
  reports(32);
  await depot.set(4, { kind: "release" });
  await vi.advanceTimersByTimeAsync(1_000);
  expect(last()).toBe(32);
  const asked = depot.actions().length;
  await vi.advanceTimersByTimeAsync(120_000);
  expect(depot.actions()).toHaveLength(asked);
});

test("a limit that a charger ends by itself after a release is asked for each minute, and a pause only in a session", async () => {
  const depot = aConnector();
  const reports = (limit: number): void => {
    const chargingSchedule = { chargingRateUnit: "A", chargingSchedulePeriod: [{ startPeriod: 0, limit }] };
    depot.answers["GetCompositeSchedule"] = { status: "Accepted", chargingSchedule };
  };
  reports(0);
  await depot.set(1, { kind: "pause" });
  await depot.set(2, { kind: "release" });
  await vi.advanceTimersByTimeAsync(1_000);
  expect(depot.composites).toEqual([]);
  await depot.connector.onStarted("42", null);
  await depot.set(3, { kind: "pause" });
  await depot.set(4, { kind: "release" });
  await vi.advanceTimersByTimeAsync(1_000);
  expect(depot.composites).toEqual([{ value: 0, unit: "A" }]);
  reports(32);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(depot.composites.at(-1)).toEqual({ value: 32, unit: "A" });
  depot.connector.close();
});

test("an answer about the former level that comes after a new one is not used", async () => {
  const depot = aConnector();
  depot.answers["GetCompositeSchedule"] = { status: "Rejected" };
  await depot.set(1, level(16));
  await vi.advanceTimersByTimeAsync(999);
  const chargingSchedule = { chargingRateUnit: "A", chargingSchedulePeriod: [{ startPeriod: 0, limit: 16 }] };
  depot.answers["GetCompositeSchedule"] = { status: "Accepted", chargingSchedule };
  depot.onAsked = () => {
    depot.onAsked = () => undefined;
    void depot.set(2, level(12));
  };
  await vi.advanceTimersByTimeAsync(1);
  expect(depot.actions().slice(-2)).toEqual(["GetCompositeSchedule", "SetChargingProfile"]);
  expect(depot.composites).toEqual([]);
});

test("a charger that does not know the schedule is not asked again", async () => {
  const depot = aConnector();
  await depot.set(1, level(16));
  await vi.advanceTimersByTimeAsync(1_000);
  await depot.set(2, level(12));
  await vi.advanceTimersByTimeAsync(1_000);
  expect(depot.actions().filter((action) => action === "GetCompositeSchedule")).toHaveLength(1);
});

test("a charger that leaves the question for its schedule open is asked again, until the third time", async () => {
  const depot = aConnector();
  const asked = () => depot.actions().filter((action) => action === "GetCompositeSchedule").length;
  let seq = 0;
  const setAndAsk = async () => {
    seq += 1;
    await depot.set(seq, level(20 - seq));
    await vi.advanceTimersByTimeAsync(1_000);
  };
  const period = { limit: 18 };
  const schedule = { chargingRateUnit: "A", chargingSchedulePeriod: [period] };
  for (const answer of ["silent", { status: "Accepted", chargingSchedule: schedule }, "silent"] as const) {
    depot.answers["GetCompositeSchedule"] = answer;
    await setAndAsk();
  }
  expect([asked(), depot.composites]).toEqual([3, [{ value: 18, unit: "A" }, null]]);
  for (let time = 1; time <= 3; time += 1) await setAndAsk();
  expect(asked()).toBe(5);
});

test("a charger whose clock is up to 12 h late, or a day ahead, finds itself in the limit", async () => {
  const depot = aConnector({}, {}, { clockAhead: 7_200_000 });
  await depot.set(1, level(16));
  expect(depot.profiles()[0]).toMatchObject({
    validFrom: "2026-11-23T00:00:00.000Z",
    validTo: "2026-11-23T14:03:00.000Z",
    chargingSchedule: { startSchedule: "2026-11-23T00:00:00.000Z", duration: 14 * 3600 + 180 },
  });
  expect(depot.connector.level?.until).toBe(START + 180_000);
});

test("a relative limit without a transaction lasts for the lease", async () => {
  const depot = aConnector({ profileKind: "relative" });
  await depot.set(1, level(16));
  expect(depot.profiles()[0]).toMatchObject({ chargingSchedule: { duration: 180 } });
});

test("a limit that another central system may have replaced is written again at once, and its lease is not longer", async () => {
  const depot = aConnector({ writesPerHour: 3 });
  await depot.set(1, level(16));
  await vi.advanceTimersByTimeAsync(60_000);
  await depot.connector.rewrite();
  expect(depot.profiles().filter(Boolean)).toHaveLength(2);
  expect(depot.profiles().at(-1)).toMatchObject({ validTo: "2026-11-23T12:31:00.000Z" });
  // The writes of the hour are used up: the next refresh writes it.
  await depot.set(2, level(12));
  await depot.connector.rewrite();
  expect(depot.profiles().filter(Boolean)).toHaveLength(3);
  await vi.advanceTimersByTimeAsync(60_000);
  await depot.set(2, level(12));
  expect(depot.profiles().filter(Boolean)).toHaveLength(4);
  await vi.advanceTimersByTimeAsync(180_000);
  expect(depot.connector.counts.expired).toBe(1);
  await depot.connector.rewrite();
  expect(depot.profiles().filter(Boolean)).toHaveLength(4);
});

test("rewriting a limit for another system or for a transaction does not renew its lease", async () => {
  const depot = aConnector({ writesPerHour: 3600 });
  await depot.set(1, level(16));
  await vi.advanceTimersByTimeAsync(170_000);
  await depot.connector.rewrite();
  await depot.connector.onStarted("42", instant(START));
  expect(depot.profiles().at(-1)).toMatchObject({ validTo: "2026-11-23T12:03:00.000Z" });
  await vi.advanceTimersByTimeAsync(10_000);
  expect(depot.connector.level).toBeNull();
});

test("a transaction that begins during a write gets the limit as well", async () => {
  const depot = aConnector();
  const order = depot.set(1, level(16));
  void depot.connector.onStarted("42", instant(START));
  await order;
  expect(depot.profiles().at(-1)).toMatchObject({ chargingProfilePurpose: "TxProfile", transactionId: 42 });
});

test("an order that comes with the end of the lease is not cleared by it", async () => {
  const depot = aConnector();
  await depot.set(1, level(16), 20_000);
  vi.advanceTimersByTime(20_000);
  await depot.set(2, level(12));
  expect(depot.connector.level?.text).toBe("12 A");
  expect(depot.actions().at(-1)).toBe("SetChargingProfile");
});

test("a limit that the charger left unanswered may be in force, and is cleared with the others", async () => {
  const depot = aConnector();
  await depot.set(1, { kind: "release" });
  await depot.connector.onStarted("42", instant(START));
  depot.answers["SetChargingProfile"] = "silent";
  await depot.set(2, level(16));
  depot.answers["SetChargingProfile"] = { status: "Accepted" };
  depot.asked.length = 0;
  await depot.set(3, { kind: "release" });
  expect(depot.asked).toEqual([["ClearChargingProfile", { id: 7_300_010 }]]);
});

test("a level is written again after an answer that was lost, although it was the last one accepted", async () => {
  const depot = aConnector();
  await depot.set(1, level(10));
  depot.answers["SetChargingProfile"] = "silent";
  await depot.set(2, level(16));
  expect(depot.acks.at(-1)).toMatchObject({ id: "7-2", accepted: false });
  depot.answers["SetChargingProfile"] = { status: "Accepted" };
  depot.asked.length = 0;
  await depot.set(3, level(10));
  expect(depot.actions()).toEqual(["SetChargingProfile"]);
  expect(depot.acks.at(-1)).toMatchObject({ id: "7-3", accepted: true });
  await depot.set(4, level(10));
  expect(depot.actions()).toEqual(["SetChargingProfile"]);
});

test("a level is written again after one of its two profiles was left unanswered", async () => {
  const depot = aConnector();
  await depot.connector.onStarted("42", instant(START));
  depot.onAsked = () => {
    if (depot.profiles().at(-1)?.["chargingProfilePurpose"] === "TxProfile")
      depot.answers["SetChargingProfile"] = "silent";
  };
  await depot.set(1, level(10));
  expect(depot.acks.at(-1)).toMatchObject({ accepted: true });
  depot.onAsked = () => undefined;
  depot.answers["SetChargingProfile"] = { status: "Accepted" };
  await depot.set(1, level(10));
  expect(depot.profiles().filter(Boolean)).toHaveLength(4);
});

test("a level is written again after a release of which one profile was cleared only", async () => {
  const depot = aConnector();
  await depot.connector.onStarted("42", instant(START));
  await depot.set(1, level(10));
  depot.onAsked = () => {
    if (depot.asked.at(-1)?.[1]["id"] === 7_300_011) depot.answers["ClearChargingProfile"] = "silent";
  };
  await depot.set(2, { kind: "release" });
  expect(depot.acks.at(-1)).toMatchObject({ id: "7-2", accepted: false });
  depot.asked.length = 0;
  await depot.set(3, level(10));
  expect(depot.actions()).toEqual(["SetChargingProfile", "SetChargingProfile"]);
});

test("an order of an earlier run is older than any of a later one; a refresh is not", () => {
  const last = { epoch: 7, seq: 5 };
  const older = [
    { epoch: 6, seq: 9 },
    { epoch: 7, seq: 4 },
    { epoch: 7, seq: 5 },
    { epoch: 8, seq: 1 },
  ].map((order) => isOlder(order, last));
  expect(older).toEqual([true, true, false, false]);
});

/** A profile of another central system for the connector 1, accepted. */
const foreign = (stackLevel: number, limit: number, more: object = {}): Call => ({
  kind: "call",
  id: "csms-1",
  action: "SetChargingProfile",
  payload: {
    connectorId: 1,
    csChargingProfiles: {
      chargingProfileId: 5,
      stackLevel,
      chargingProfilePurpose: "TxDefaultProfile",
      chargingProfileKind: "Absolute",
      chargingSchedule: {
        startSchedule: "2026-11-23T11:00:00Z",
        chargingRateUnit: "A",
        chargingSchedulePeriod: [{ startPeriod: 0, limit }],
      },
      ...more,
    },
  },
});
const ACCEPTED = { kind: "result", id: "csms-1", payload: { status: "Accepted" } } as const;
const NOWHERE = (): number => 0;

test("the lower limit wins beside a profile of another central system, in a profile of ours above it", async () => {
  const { connector, foreign: others, set, acks, profiles } = aConnector();
  others.onRequest(foreign(4, 10), null);
  others.onAnswer(ACCEPTED, NOWHERE);
  await set(1, level(16));
  await set(2, level(8));
  expect(
    profiles().flatMap((profile) => {
      const schedule = profile?.["chargingSchedule"] as { chargingSchedulePeriod: { limit: number }[] };
      return profile === undefined
        ? []
        : [[profile["stackLevel"], schedule.chargingSchedulePeriod[0]?.limit]];
    }),
  ).toEqual([
    [5, 10],
    [5, 8],
  ]);
  expect(acks.map(({ accepted, value }) => [accepted, value])).toEqual([
    [true, 10],
    [true, 8],
  ]);
  expect([connector.isOutranked, connector.amperes]).toEqual([false, 8]);
});

test("a profile at the highest level of a charger that has no room above it outranks ours", async () => {
  const { connector, foreign: others, set } = aConnector({}, { ChargeProfileMaxStackLevel: "0" });
  expect(connector.highestStackLevel).toBe(0);
  const request = foreign(0, 10);
  expect(others.onRequest(request, -1)).toBe(request);
  others.onAnswer(ACCEPTED, NOWHERE);
  await set(1, level(16));
  expect([connector.isOutranked, connector.amperes]).toEqual([true, 10]);
  others.onRequest({ ...request, action: "ClearChargingProfile", payload: { id: 5 } }, -1);
  others.onAnswer(ACCEPTED, NOWHERE);
  await set(2, level(16));
  expect([connector.isOutranked, connector.amperes]).toEqual([false, 16]);
});

test("a profile of a transaction ends with it, and one that the charger refused is none", async () => {
  const { connector, foreign: others, set } = aConnector();
  others.onRequest(foreign(1, 10, { chargingProfilePurpose: "TxProfile" }), null);
  others.onAnswer(ACCEPTED, NOWHERE);
  // Not accepted, and lost with its connection.
  others.onRequest(foreign(1, 7, { chargingProfileId: 6 }), null);
  expect(others.onAnswer({ ...ACCEPTED, payload: { status: "Rejected" } }, NOWHERE)).toBe(false);
  others.onRequest(foreign(1, 6, { chargingProfileId: 7 }), null);
  others.onAway();
  expect(others.onAnswer(ACCEPTED, NOWHERE)).toBe(false);
  await set(1, level(16));
  expect(connector.amperes).toBe(10);
  others.onStopped(1);
  await set(2, level(16));
  expect(connector.amperes).toBe(16);
});

test("the profile of a remote start that no vehicle came for is none of the next session", async () => {
  const { connector, foreign: others, set } = aConnector();
  const { payload } = foreign(1, 10, { chargingProfilePurpose: "TxProfile" });
  const chargingProfile = payload["csChargingProfiles"];
  const start: Call = {
    kind: "call",
    id: "csms-1",
    action: "RemoteStartTransaction",
    payload: { connectorId: 1, idTag: "04", chargingProfile },
  };
  const limitOfSession = async (seq: number, waits: number): Promise<number | null> => {
    others.onRequest(start, null);
    others.onAnswer(ACCEPTED, NOWHERE);
    await vi.advanceTimersByTimeAsync(waits);
    others.onStarted(1, instant(Date.now()), null);
    // Long after the time in which the session had to begin.
    await vi.advanceTimersByTimeAsync(3_600_000);
    await set(seq, level(16));
    others.onStopped(1);
    return connector.amperes;
  };
  expect(await limitOfSession(1, 60_000)).toBe(10);
  expect(await limitOfSession(2, 600_000)).toBe(16);
});

/** A remote start of OCPP 2.0.1 with a limit of 10 A. */
function remoteStart(): Call {
  const { payload } = foreign(1, 10, { chargingProfilePurpose: "TxProfile" });
  const chargingProfile = payload["csChargingProfiles"];
  return {
    kind: "call",
    id: "csms-1",
    action: "RequestStartTransaction",
    payload: { evseId: 1, chargingProfile },
  };
}

test("the profile of a remote start counts to the end of a session that began at its plug-in", async () => {
  const { connector, foreign: others, set } = aConnector();
  others.onRequest(remoteStart(), null);
  others.onAnswer({ ...ACCEPTED, payload: { status: "Accepted", transactionId: "t-1" } }, NOWHERE);
  await vi.advanceTimersByTimeAsync(3_600_000);
  await set(1, level(16));
  expect(connector.amperes).toBe(10);
  others.onStopped(1);
  await set(2, level(16));
  expect(connector.amperes).toBe(16);
});

test("the profile of a remote start counts for its session also where the station reports that later", async () => {
  const { connector, foreign: others, set } = aConnector();
  others.onRequest(remoteStart(), null);
  others.onAnswer(ACCEPTED, NOWHERE);
  const began = instant(Date.now() + 60_000);
  await vi.advanceTimersByTimeAsync(3_600_000);
  others.onStarted(1, began, null);
  await set(1, level(16));
  expect(connector.amperes).toBe(10);
});

test.each([
  ["OCPP 1.6", { idTag: "04A2" }],
  ["OCPP 2.0.1", { idToken: { idToken: "04A2", type: "ISO14443" }, remoteStartId: 1 }],
])(
  "the profile of a remote start without a connector waits for the session of its token (%s)",
  async (_, token) => {
    const { connector, foreign: others, set } = aConnector();
    const { chargingProfile } = remoteStart().payload;
    others.onRequest({ ...remoteStart(), payload: { ...token, chargingProfile } }, null);
    others.onAnswer(ACCEPTED, NOWHERE);
    const begins = (at: number, by: string | null): void => others.onStarted(at, instant(Date.now()), by);
    begins(2, "04ff");
    others.onStopped(2);
    await set(1, level(16));
    expect(connector.amperes).toBe(10);
    begins(1, "04a2");
    begins(2, null);
    others.onStopped(2);
    await set(2, level(15));
    expect(connector.amperes).toBe(10);
    others.onStopped(1);
    await set(3, level(16));
    expect(connector.amperes).toBe(16);
  },
);

test("the profile of a remote start without a connector is one of the session that its answer names", async () => {
  const { connector, foreign: others, set } = aConnector();
  const { chargingProfile } = remoteStart().payload;
  others.onRequest({ ...remoteStart(), payload: { chargingProfile } }, null);
  const answer = { ...ACCEPTED, payload: { status: "Accepted", transactionId: "t-1" } };
  others.onAnswer(answer, (session) => (session === "t-1" ? 1 : 0));
  others.onStarted(2, instant(Date.now()), null);
  others.onStopped(2);
  await set(1, level(16));
  expect(connector.amperes).toBe(10);
  others.onStopped(1);
  await set(2, level(16));
  expect(connector.amperes).toBe(16);
});

test("a limit of the whole station is absolute, whatever its sessions get (K01.FR.38)", async () => {
  const { set, profiles } = aConnector({ id: 0, profileKind: "relative" });
  await set(1, level(16));
  expect(profiles()[0]).toMatchObject({
    chargingProfilePurpose: "ChargePointMaxProfile",
    chargingProfileKind: "Absolute",
    chargingSchedule: { startSchedule: expect.any(String) },
  });
});

test("a configured level is kept within what the charger allows", () => {
  const { connector } = aConnector({ stackLevel: 50 }, { ChargeProfileMaxStackLevel: "8" });
  expect(connector.highestStackLevel).toBe(8);
  expect(aConnector({ stackLevel: 3 }, { ChargeProfileMaxStackLevel: "8" }).connector.highestStackLevel).toBe(
    3,
  );
  const { connector: away, disconnect } = aConnector({ stackLevel: 3 });
  expect(away.highestStackLevel).toBe(3);
  disconnect();
  expect(away.highestStackLevel).toBeNull();
});
