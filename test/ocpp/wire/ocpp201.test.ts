import { expect, test } from "vitest";

import { instant } from "../../../src/domain/units.ts";
import { readVariables } from "../../../src/ocpp/wire/capabilities.ts";
import { ocpp201 } from "../../../src/ocpp/wire/ocpp201.ts";

const NOW = instant(Date.parse("2026-11-23T12:00:00Z"));

const receive = (action: string, payload: Record<string, unknown>) =>
  ocpp201.receive(
    { kind: "call", id: "1", action, payload },
    { now: NOW, heartbeat: 60, accepts: (token) => token === "known", nextTransaction: () => 42 },
  );
const call = (action: string, payload: object = {}) =>
  ({ kind: "call", id: "1", action, payload: { ...payload } }) as const;
const event = (eventType: string, more: object = {}) =>
  receive("TransactionEvent", {
    eventType,
    timestamp: "2026-11-23T12:00:00Z",
    transactionInfo: { transactionId: "t-1", chargingState: "Charging" },
    ...more,
  });

test("a station that starts is accepted and gets the time", () => {
  const chargingStation = { vendorName: "ABB", model: "Terra" };
  expect(receive("BootNotification", { chargingStation, reason: "PowerUp" })).toEqual({
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

test.each([
  ["Available", { kind: "status", state: "unplugged", fault: null }],
  ["Reserved", { kind: "status", state: "unplugged" }],
  ["Occupied", { kind: "occupied" }],
  ["Faulted", { kind: "status", state: "error", fault: "Faulted" }],
  ["Unavailable", { kind: "status", state: "unknown", fault: null }],
])("the status %s is understood", (connectorStatus, meaning) => {
  expect(
    receive("StatusNotification", { evseId: 2, connectorId: 1, connectorStatus }).meanings,
  ).toMatchObject([{ connector: 2, plug: 1, ...meaning }]);
});

test("a transaction brings its vehicle, its state and its meter values", () => {
  const meterValue = [
    {
      timestamp: "2026-11-23T12:00:00Z",
      sampledValue: [{ value: 1.5, unitOfMeasure: { unit: "kWh" } }],
    },
  ];
  const idToken = { idToken: "known", type: "ISO14443" };
  expect(event("Started", { evse: { id: 2 }, idToken, meterValue })).toEqual({
    reply: { ok: true, payload: { idTokenInfo: { status: "Accepted" } } },
    meanings: [
      {
        kind: "started",
        connector: 2,
        transaction: "t-1",
        identity: { kind: "rfid", value: "known" },
        meterWh: 1500,
        at: NOW,
      },
      { kind: "charging", connector: 2, transaction: "t-1", state: "charging" },
      { kind: "meter", connector: 2, transaction: "t-1", readings: { energyWh: 1500 }, at: NOW },
    ],
  });
  expect(event("Started").meanings[0]).toMatchObject({ connector: null, identity: null, meterWh: null });
});

const vehicleBy = (idToken: string, type: string) => {
  const [begin] = event("Started", { idToken: { idToken, type } }).meanings;
  return begin?.kind === "started" ? begin.identity : null;
};

test("a token is the address of a modem with VID: as well, which EVerest puts before it", () => {
  expect(vehicleBy("VID:02AABB000001", "MacAddress")).toEqual({ kind: "mac", value: "02aabb000001" });
  expect(vehicleBy("NO*ABC*1", "eMAID")).toEqual({ kind: "emaid", value: "no*abc*1" });
  expect(vehicleBy("1234", "KeyCode")).toBeNull();
});

test("an update without its EVSE belongs to its transaction; a token may come late", () => {
  const idToken = { idToken: "02:AA", type: "MacAddress" };
  expect(event("Updated", { idToken })).toEqual({
    reply: { ok: true, payload: { idTokenInfo: { status: "Invalid" } } },
    meanings: [
      { kind: "identified", connector: null, transaction: "t-1", identity: { kind: "mac", value: "02:aa" } },
      { kind: "charging", connector: null, transaction: "t-1", state: "charging" },
    ],
  });
  const noVehicle = { idToken: "1234", type: "KeyCode" };
  expect(
    event("Updated", { idToken: noVehicle, transactionInfo: { transactionId: "t-1" } }).meanings,
  ).toEqual([]);
});

test("the end of a transaction", () => {
  expect(event("Ended", { evse: { id: 2 } }).meanings).toEqual([
    { kind: "stopped", connector: 2, transaction: "t-1", meterWh: null, at: NOW },
  ]);
});

test("meter values outside a transaction belong to their EVSE", () => {
  expect(receive("MeterValues", { evseId: 2, meterValue: [] }).meanings).toEqual([
    { kind: "meter", connector: 2, transaction: null, readings: {}, at: null },
  ]);
});

test("tokens are authorized; what is not needed is answered; the rest is refused by name", () => {
  expect(receive("Authorize", { idToken: { idToken: "known", type: "eMAID" } }).reply).toMatchObject({
    payload: { idTokenInfo: { status: "Accepted" } },
  });
  expect(receive("NotifyReport", {}).reply).toEqual({ ok: true, payload: {} });
  expect(receive("DataTransfer", {}).reply).toMatchObject({ payload: { status: "UnknownVendorId" } });
  expect(receive("StartTransaction", {}).reply).toMatchObject({ ok: false, code: "NotImplemented" });
  for (const action of [
    "BootNotification",
    "Authorize",
    "StatusNotification",
    "MeterValues",
    "TransactionEvent",
  ])
    expect(receive(action, { evseId: "x" }).reply).toMatchObject({ ok: false, code: "FormatViolation" });
});

const variables = (values: Record<string, string>) =>
  readVariables({
    getVariableResult: Object.entries(values).map(([key, attributeValue]) => ({
      attributeStatus: "Accepted",
      attributeValue,
      component: { name: key.split(".")[0] },
      variable: { name: key.split(".")[1] },
    })),
  });

test("abilities are read from the device model; absent ones are unknown", () => {
  expect(
    variables({
      "SmartChargingCtrlr.Enabled": "true",
      "SmartChargingCtrlr.ProfileStackLevel": "8",
      "SmartChargingCtrlr.RateUnit": "A,W",
    }),
  ).toMatchObject({ smartCharging: true, maxStackLevel: 8, units: ["A", "W"] });
  expect(variables({ "SmartChargingCtrlr.Available": "false" }).smartCharging).toBe(false);
  expect(variables({})).toMatchObject({ smartCharging: null, maxStackLevel: null, units: null });
  expect(ocpp201.capabilities().payload).toMatchObject({
    getVariableData: expect.arrayContaining([
      { component: { name: "SmartChargingCtrlr" }, variable: { name: "RateUnit" } },
    ]),
  });
});

test("only settings that differ are changed", () => {
  const present = variables({ "SampledDataCtrlr.TxUpdatedInterval": "10" });
  const [setting] = ocpp201.meterSettings({ every: 10, measurands: ["SoC"] }, present);
  expect(setting).toEqual({ key: "SampledDataCtrlr.TxUpdatedMeasurands", value: "SoC", before: null });
  if (setting === undefined) return;
  const { payload, read } = ocpp201.configure(setting);
  expect(payload).toEqual({
    setVariableData: [
      {
        component: { name: "SampledDataCtrlr" },
        variable: { name: "TxUpdatedMeasurands" },
        attributeValue: "SoC",
      },
    ],
  });
  expect(read({ setVariableResult: [{ attributeStatus: "Accepted" }] })).toEqual({
    accepted: true,
    status: "Accepted",
  });
  expect(read({})).toEqual({ accepted: false, status: "no status" });
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

test("a limit is a profile of the EVSE that ends by itself", () => {
  const { payload, read } = ocpp201.setLimit(limit);
  expect(payload).toMatchObject({
    evseId: 1,
    chargingProfile: {
      id: 7,
      chargingProfilePurpose: "TxDefaultProfile",
      chargingProfileKind: "Absolute",
      validTo: "2026-11-23T12:03:00.000Z",
      chargingSchedule: [
        { id: 7, duration: 240, chargingRateUnit: "A", chargingSchedulePeriod: [{ limit: 16 }] },
      ],
    },
  });
  expect([read({ status: "Accepted" }).accepted, read({ status: "Rejected" }).accepted]).toEqual([
    true,
    false,
  ]);
  const more = { transaction: "t-1", kind: "relative", phases: 1, begin: NOW } as const;
  expect(ocpp201.setLimit({ ...limit, ...more }).payload).toMatchObject({
    chargingProfile: {
      transactionId: "t-1",
      chargingProfilePurpose: "TxProfile",
      chargingProfileKind: "Relative",
      chargingSchedule: [{ duration: 180, chargingSchedulePeriod: [{ numberPhases: 1 }] }],
    },
  });
  expect(ocpp201.setLimit({ ...limit, connector: 0 }).payload).toMatchObject({
    chargingProfile: { chargingProfilePurpose: "ChargingStationMaxProfile" },
  });
});

test("a profile is cleared by its id, and the schedule that is applied is read", () => {
  expect(ocpp201.clearLimit(7).payload).toEqual({ chargingProfileId: 7 });
  expect(ocpp201.clearLimit(7).read({ status: "Unknown" }).accepted).toBe(true);
  expect(ocpp201.clearPlace({ connector: 2, transaction: "t-1", stackLevel: 8 }).payload).toEqual({
    chargingProfileCriteria: { evseId: 2, chargingProfilePurpose: "TxProfile", stackLevel: 8 },
  });
  const { payload, read } = ocpp201.composite(1, 60, "W");
  expect(payload).toEqual({ evseId: 1, duration: 60, chargingRateUnit: "W" });
  const schedule = { chargingRateUnit: "W", chargingSchedulePeriod: [{ startPeriod: 0, limit: 9 }] };
  expect(read({ status: "Accepted", schedule })).toEqual({ value: 9, unit: "W" });
  expect(read({ status: "Rejected" })).toBeNull();
});

test("messages are triggered for an EVSE, its status for its first connector", () => {
  expect(ocpp201.trigger("status", 2).payload).toEqual({
    requestedMessage: "StatusNotification",
    evse: { id: 2, connectorId: 1 },
  });
  expect(ocpp201.trigger("meter", 2).payload).toEqual({
    requestedMessage: "TransactionEvent",
    evse: { id: 2 },
  });
  expect(ocpp201.trigger("heartbeat", null).payload).toEqual({ requestedMessage: "Heartbeat" });
});

test("beside another central system a transaction event is kept, with the station's own id", () => {
  expect([call("TransactionEvent"), call("MeterValues")].map(ocpp201.isOfTransaction)).toEqual([true, false]);
  expect(
    [
      call("BootNotification"),
      call("StatusNotification", { evseId: 1, connectorId: 2 }),
      call("Heartbeat"),
    ].map(ocpp201.snapshotKey),
  ).toEqual(["boot", "status [1,2]", null]);
  const payload = { transactionId: "t-1" };
  expect(ocpp201.renameTransaction(payload, new Map([["t-1", "x"]]))).toBe(payload);
  expect(ocpp201.transactionIn(payload)).toBeNull();
});

test("a reboot does not wait for the end of the session, and may be scheduled by the station", () => {
  const { action, payload, read } = ocpp201.reset();
  expect([action, payload]).toEqual(["Reset", { type: "Immediate" }]);
  expect(["Accepted", "Scheduled", "Rejected"].map((status) => read({ status }).accepted)).toEqual([
    true,
    true,
    false,
  ]);
});
