import { expect, test } from "vitest";

import { instant } from "../../../src/domain/units.ts";
import { readCapabilities } from "../../../src/ocpp/wire/capabilities.ts";
import { identityOf, ocpp16 } from "../../../src/ocpp/wire/ocpp16.ts";

const NOW = instant(Date.parse("2026-11-23T12:00:00Z"));

const receive = (action: string, payload: Record<string, unknown>) =>
  ocpp16.receive(
    { kind: "call", id: "1", action, payload },
    { now: NOW, heartbeat: 60, accepts: (token) => token === "known", nextTransaction: () => 42 },
  );

test("a station that starts is accepted and gets the time", () => {
  expect(receive("BootNotification", { chargePointVendor: "ABB", chargePointModel: "Terra" })).toEqual({
    reply: {
      ok: true,
      payload: { status: "Accepted", currentTime: "2026-11-23T12:00:00.000Z", interval: 60 },
    },
    meanings: [{ kind: "boot", vendor: "ABB", model: "Terra", firmware: "" }],
  });
  expect(receive("Heartbeat", {}).reply).toMatchObject({
    payload: { currentTime: "2026-11-23T12:00:00.000Z" },
  });
});

test("tokens are accepted or refused, and a refused one still begins a transaction that the station ends", () => {
  expect(receive("Authorize", { idTag: "known" }).reply).toMatchObject({
    payload: { idTagInfo: { status: "Accepted" } },
  });
  expect(receive("Authorize", { idTag: "other" }).reply).toMatchObject({
    payload: { idTagInfo: { status: "Invalid" } },
  });
  expect(
    receive("StartTransaction", { connectorId: 1, idTag: "known", meterStart: 5, timestamp: "x" }),
  ).toEqual({
    reply: { ok: true, payload: { transactionId: 42, idTagInfo: { status: "Accepted" } } },
    meanings: [
      {
        kind: "started",
        connector: 1,
        transaction: "42",
        identity: { kind: "rfid", value: "known" },
        meterWh: 5,
        at: null,
      },
    ],
  });
});

test.each([
  ["Available", "unplugged"],
  ["Preparing", "connected"],
  ["Charging", "charging"],
  ["SuspendedEVSE", "paused"],
  ["SuspendedEV", "connected"],
  ["Finishing", "finished"],
  ["Reserved", "unplugged"],
  ["Unavailable", "unknown"],
  ["Faulted", "error"],
  ["Occupied", "unknown"],
])("the status %s is %s", (status, state) => {
  expect(
    receive("StatusNotification", { connectorId: "1", status, errorCode: "NoError" }).meanings,
  ).toMatchObject([{ kind: "status", connector: 1, state, fault: null }]);
});

test("a fault keeps the charger's own code and text", () => {
  const fault = { connectorId: 1, status: "Faulted", errorCode: "GroundFailure", info: "RCD" };
  expect(receive("StatusNotification", fault).meanings).toMatchObject([{ fault: "GroundFailure: RCD" }]);
});

test("meter values belong to their connector and transaction; 0 is no transaction", () => {
  const meterValue = [{ timestamp: "2026-11-23T12:00:00Z", sampledValue: [{ value: "7" }] }];
  expect(receive("MeterValues", { connectorId: 2, transactionId: "42", meterValue }).meanings).toEqual([
    { kind: "meter", connector: 2, transaction: "42", readings: { energyWh: 7 }, at: NOW },
  ]);
  expect(receive("MeterValues", { connectorId: 2, transactionId: 0, meterValue }).meanings).toMatchObject([
    { transaction: null },
  ]);
});

test("the end of a transaction brings the energy register", () => {
  expect(
    receive("StopTransaction", { transactionId: 42, meterStop: 900, timestamp: "2026-11-23T12:00:00Z" }),
  ).toMatchObject({
    reply: { ok: true },
    meanings: [{ kind: "stopped", transaction: "42", meterWh: 900, connector: null, at: NOW }],
  });
});

const sample = (timestamp: string, value: string) => ({ timestamp, sampledValue: [{ value }] });
const stop = (more: object) => receive("StopTransaction", { transactionId: 42, ...more }).meanings;

test("the register at the end is the one of the session's meter values where the message has none of its own", () => {
  const transactionData = [sample("2026-11-23T12:00:00Z", "1900"), sample("2026-11-23T11:00:00Z", "1000")];
  expect(stop({ transactionData })).toMatchObject([{ kind: "stopped", meterWh: 1900, at: NOW }]);
  expect(stop({ transactionData, meterStop: 1901 })).toMatchObject([{ meterWh: 1901 }]);
  expect(stop({})).toMatchObject([{ meterWh: null, at: null }]);
});

test("unneeded requests are answered, unknown or unreadable ones are refused by name", () => {
  expect(receive("FirmwareStatusNotification", { status: "Idle" })).toEqual({
    reply: { ok: true, payload: {} },
    meanings: [],
  });
  expect(receive("DataTransfer", { vendorId: "x" }).reply).toMatchObject({
    payload: { status: "UnknownVendorId" },
  });
  expect(receive("Nonsense", {}).reply).toMatchObject({ ok: false, code: "NotImplemented" });
  for (const action of ["StatusNotification", "StartTransaction", "StopTransaction", "MeterValues"])
    expect(receive(action, { connectorId: "a", transactionId: "b" })).toMatchObject({
      reply: { ok: false, code: "FormationViolation" },
      meanings: [],
    });
});

test("a token is an RFID, or with VID: the address of the vehicle's modem", () => {
  expect(identityOf("04A2B3C4")).toEqual({ kind: "rfid", value: "04a2b3c4" });
  expect(identityOf("VID:02AABB000001")).toEqual({ kind: "mac", value: "02aabb000001" });
  expect(identityOf(" ")).toBeNull();
});

const keys = (settings: Record<string, string>) =>
  readCapabilities({ configurationKey: Object.entries(settings).map(([key, value]) => ({ key, value })) });

test("abilities are read from the configuration; absent ones are unknown", () => {
  expect(
    keys({
      SupportedFeatureProfiles: "Core, SmartCharging",
      ChargeProfileMaxStackLevel: "8",
      ChargingScheduleAllowedChargingRateUnit: "Current,Power",
    }),
  ).toMatchObject({ smartCharging: true, remoteTrigger: false, maxStackLevel: 8, units: ["A", "W"] });
  expect(keys({})).toMatchObject({
    smartCharging: null,
    remoteTrigger: null,
    maxStackLevel: null,
    units: null,
  });
  expect(
    keys({ SupportedFeatureProfiles: "Core", ChargingScheduleAllowedChargingRateUnit: "W" }),
  ).toMatchObject({
    smartCharging: false,
    units: ["W"],
  });
});

test("only settings that differ are changed", () => {
  const present = keys({ MeterValuesSampledData: "SoC,Power.Active.Import", MeterValueSampleInterval: "60" });
  expect(ocpp16.meterSettings({ every: 10, measurands: ["Power.Active.Import", "SoC"] }, present)).toEqual([
    { key: "MeterValueSampleInterval", value: "10", before: "60" },
  ]);
  expect(ocpp16.configure({ key: "k", value: "v", before: null }).payload).toEqual({ key: "k", value: "v" });
});

const limit = {
  connector: 1,
  transaction: null,
  value: 16,
  unit: "A",
  phases: null,
  stackLevel: 5,
  profileId: 7,
  kind: "absolute",
  from: instant(NOW - 60_000),
  until: instant(NOW + 180_000),
  begin: instant(NOW - 60_000),
} as const;

test("a limit is a profile that ends by itself", () => {
  const request = ocpp16.setLimit(limit);
  expect(request.payload).toEqual({
    connectorId: 1,
    csChargingProfiles: {
      chargingProfileId: 7,
      stackLevel: 5,
      chargingProfilePurpose: "TxDefaultProfile",
      chargingProfileKind: "Absolute",
      validFrom: "2026-11-23T11:59:00.000Z",
      validTo: "2026-11-23T12:03:00.000Z",
      chargingSchedule: {
        duration: 240,
        startSchedule: "2026-11-23T11:59:00.000Z",
        chargingRateUnit: "A",
        chargingSchedulePeriod: [{ startPeriod: 0, limit: 16 }],
      },
    },
  });
  expect(request.read({ status: "Accepted" })).toEqual({ accepted: true, status: "Accepted" });
  expect(request.read({ status: "Rejected" })).toEqual({ accepted: false, status: "Rejected" });
  expect(request.read({})).toEqual({ accepted: false, status: "no status" });
});

test("a relative limit counts from the start of its transaction; connector 0 limits the whole station", () => {
  const relative = ocpp16.setLimit({
    ...limit,
    kind: "relative",
    transaction: "42",
    phases: 1,
    begin: instant(NOW - 3_600_000),
  });
  expect(relative.payload).toMatchObject({
    csChargingProfiles: {
      transactionId: 42,
      chargingProfilePurpose: "TxProfile",
      chargingProfileKind: "Relative",
      chargingSchedule: { duration: 3780, chargingSchedulePeriod: [{ limit: 16, numberPhases: 1 }] },
    },
  });
  expect(ocpp16.setLimit({ ...limit, connector: 0 }).payload).toMatchObject({
    csChargingProfiles: { chargingProfilePurpose: "ChargePointMaxProfile" },
  });
});

test("a profile that is not there counts as cleared", () => {
  const { payload, read } = ocpp16.clearLimit(7);
  expect(payload).toEqual({ id: 7 });
  expect([read({ status: "Unknown" }).accepted, read({ status: "Rejected" }).accepted]).toEqual([
    true,
    false,
  ]);
});

test("the schedule that the charger applies is read, or nothing", () => {
  const { payload, read } = ocpp16.composite(1, 60, "A");
  expect(payload).toEqual({ connectorId: 1, duration: 60, chargingRateUnit: "A" });
  const chargingSchedule = { chargingRateUnit: "W", chargingSchedulePeriod: [{ startPeriod: 0, limit: 9 }] };
  expect(read({ status: "Accepted", chargingSchedule })).toEqual({ value: 9, unit: "W" });
  expect(read({ status: "Rejected" })).toBeNull();
  const applies = (...periods: readonly (readonly [startPeriod: number, limit: number])[]) =>
    read({
      status: "Accepted",
      chargingSchedule: {
        chargingRateUnit: "A",
        chargingSchedulePeriod: periods.map(([startPeriod, limit]) => ({ startPeriod, limit })),
      },
    });
  expect(applies([30, 32], [0, 10])).toEqual({ value: 10, unit: "A" });
  // No limit applies now, and -1 is none.
  expect(applies([30, 32])).toBeNull();
  expect(applies([0, -1], [30, 10])).toBeNull();
});

test("messages are triggered for a connector, or for the station", () => {
  expect(ocpp16.trigger("status", 2).payload).toEqual({
    requestedMessage: "StatusNotification",
    connectorId: 2,
  });
  expect(ocpp16.trigger("heartbeat", null).payload).toEqual({ requestedMessage: "Heartbeat" });
  expect(ocpp16.capabilities().read({})).toMatchObject({ smartCharging: null });
});

test("a reboot ends transactions in good order", () => {
  const { action, payload, read } = ocpp16.reset();
  expect([action, payload]).toEqual(["Reset", { type: "Soft" }]);
  expect(read({ status: "Accepted" })).toEqual({ accepted: true, status: "Accepted" });
  expect(read({ status: "Rejected" })).toEqual({ accepted: false, status: "Rejected" });
});
