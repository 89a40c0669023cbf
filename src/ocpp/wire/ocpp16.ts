import { z } from "zod";

import type { ChargerState } from "../../domain/telemetry.ts";
import { iso } from "../../domain/units.ts";
import type { Identity } from "../../domain/vehicle.ts";
import { capabilityKeys, meterSettings16, readCapabilities } from "./capabilities.ts";
import {
  type Answering,
  type Dialect,
  type Meaning,
  ok,
  type Outcome,
  type Received,
  refuse,
  request,
  TRIGGERS,
} from "./dialect.ts";
import type { Call, Payload } from "./frame.ts";
import { meterValues, readingsOf, timeOf } from "./meterValues.ts";
import { placeOf, profile16, readComposite16, STATION_MAX_16 } from "./profiles.ts";

/** OCPP 1.6J, edition 2. Members that are not used are not read. */

const name = z.string().max(255).catch("");
const connector = z.coerce.number().int().min(0).max(1000);
/** Some makes send transaction ids as texts. 0 and -1 mean no transaction. */
const transaction = z.coerce
  .number()
  .int()
  .nullish()
  .catch(null)
  .transform((id) => (id === null || id === undefined || id <= 0 ? null : String(id)));
const meter = z.coerce.number().finite().nullish().catch(null);
const time = z.unknown().optional().transform(timeOf);

const bootNotification = z.object({
  chargePointVendor: name,
  chargePointModel: name,
  firmwareVersion: name,
});
const statusNotification = z.object({
  connectorId: connector,
  status: name,
  errorCode: name,
  info: name,
  timestamp: time,
});
const startTransaction = z.object({
  connectorId: connector,
  idTag: z.coerce.string().max(255).catch(""),
  meterStart: meter,
  timestamp: time,
});
const stopTransaction = z.object({
  transactionId: z.coerce.number().int(),
  meterStop: meter,
  timestamp: time,
  transactionData: meterValues.optional(),
});
const meterValuesCall = z.object({
  connectorId: connector,
  transactionId: transaction,
  meterValue: meterValues,
});
const authorize = z.object({ idTag: z.coerce.string().max(255).catch("") });

const STATES: Readonly<Record<string, ChargerState>> = {
  Available: "unplugged",
  Reserved: "unplugged",
  Preparing: "connected",
  Charging: "charging",
  SuspendedEVSE: "paused",
  SuspendedEV: "connected",
  Finishing: "finished",
  Faulted: "error",
};

/** Identity of the vehicle in a token. "VID:" marks the address of its modem. Null: no token. */
export function identityOf(token: string): Identity | null {
  const value = token.trim();
  if (value === "") return null;
  const [, vehicle] = /^VID:?(.+)$/i.exec(value) ?? [];
  return vehicle === undefined
    ? { kind: "rfid", value: value.toLowerCase() }
    : { kind: "mac", value: vehicle.toLowerCase() };
}

const tagInfo = (accepted: boolean) => ({ idTagInfo: { status: accepted ? "Accepted" : "Invalid" } });

/** Answers of calls that need no more than an answer. */
const EMPTY: ReadonlySet<string> = new Set([
  "FirmwareStatusNotification",
  "DiagnosticsStatusNotification",
  "LogStatusNotification",
  "SecurityEventNotification",
  "SignedFirmwareStatusNotification",
]);

function receive({ action, payload }: Call, answering: Answering): Received {
  const currentTime = iso(answering.now);
  switch (action) {
    case "BootNotification": {
      const { chargePointVendor, chargePointModel, firmwareVersion } = bootNotification.parse(payload);
      return ok(
        { status: "Accepted", currentTime, interval: answering.heartbeat },
        { kind: "boot", vendor: chargePointVendor, model: chargePointModel, firmware: firmwareVersion },
      );
    }
    case "Heartbeat":
      return ok({ currentTime });
    case "Authorize":
      return ok(tagInfo(answering.accepts(authorize.parse(payload).idTag)));
    case "DataTransfer":
      return ok({ status: "UnknownVendorId" });
    case "StatusNotification": {
      const read = statusNotification.safeParse(payload);
      return read.success ? ok({}, statusOf(read.data)) : unreadable(read.error);
    }
    case "StartTransaction": {
      const read = startTransaction.safeParse(payload);
      return read.success ? started(read.data, answering) : unreadable(read.error);
    }
    case "StopTransaction": {
      const read = stopTransaction.safeParse(payload);
      return read.success ? stopped(read.data) : unreadable(read.error);
    }
    case "MeterValues": {
      const read = meterValuesCall.safeParse(payload);
      if (!read.success) return unreadable(read.error);
      const { connectorId, transactionId, meterValue } = read.data;
      const measured = readingsOf(meterValue);
      return ok({}, { kind: "meter", connector: connectorId, transaction: transactionId, ...measured });
    }
    default:
      return EMPTY.has(action) ? ok({}) : refuse("NotImplemented", `${action} is not supported`);
  }
}

const unreadable = (error: z.ZodError): Received =>
  refuse(
    "FormationViolation",
    error.issues[0] === undefined
      ? "not readable"
      : `${error.issues[0].path.join(".")}: ${error.issues[0].message}`,
  );

const statusOf = ({
  connectorId,
  status,
  errorCode,
  info,
  timestamp,
}: z.infer<typeof statusNotification>): Meaning => ({
  kind: "status",
  plug: null,
  connector: connectorId,
  state: STATES[status] ?? "unknown",
  fault: errorCode === "" || errorCode === "NoError" ? null : [errorCode, info].filter(Boolean).join(": "),
  at: timestamp,
});

function started(
  { connectorId, idTag, meterStart, timestamp }: z.infer<typeof startTransaction>,
  { accepts, nextTransaction }: Answering,
): Received {
  const accepted = accepts(idTag);
  const id = nextTransaction();
  return ok(
    { transactionId: id, ...tagInfo(accepted) },
    {
      kind: "started",
      connector: connectorId,
      transaction: String(id),
      identity: identityOf(idTag),
      meterWh: meterStart ?? null,
      at: timestamp,
    },
  );
}

function stopped(stop: z.infer<typeof stopTransaction>): Received {
  const { transactionId, meterStop, timestamp, transactionData = [] } = stop;
  // Some makes have the register in the meter values of the session only.
  const { readings, at } = readingsOf(transactionData);
  return ok(
    {},
    {
      kind: "stopped",
      connector: null,
      transaction: String(transactionId),
      meterWh: meterStop ?? readings.energyWh ?? null,
      at: timestamp ?? at,
    },
  );
}

const status = z.object({ status: z.string().max(64).catch("no status") });

const outcome = (payload: Payload): Outcome => {
  const read = status.parse(payload);
  return { accepted: read.status === "Accepted" || read.status === "RebootRequired", status: read.status };
};

/** Transaction id of a message. Null: none. */
const transactionOf = ({ transactionId }: Payload): string | null => transaction.parse(transactionId);

const isOnce = ({ action }: Call): boolean => action === "StartTransaction" || action === "StopTransaction";

const isOfTransaction = (call: Call): boolean =>
  isOnce(call) || (call.action === "MeterValues" && transactionOf(call.payload) !== null);

function renameTransaction(payload: Payload, names: ReadonlyMap<string, string>): Payload {
  const name = names.get(transactionOf(payload) ?? "");
  if (name !== undefined) return { ...payload, transactionId: Number(name) };
  const profile = payload["csChargingProfiles"];
  if (typeof profile !== "object" || profile === null || !("transactionId" in profile)) return payload;
  const inProfile = names.get(transaction.parse(profile.transactionId) ?? "");
  return inProfile === undefined
    ? payload
    : { ...payload, csChargingProfiles: { ...profile, transactionId: Number(inProfile) } };
}

export const ocpp16: Dialect = {
  subprotocol: "ocpp1.6",
  version: "1.6",
  receive,
  capabilities: () => request("GetConfiguration", capabilityKeys, readCapabilities),
  meterSettings: meterSettings16,
  configure: ({ key, value }) => request("ChangeConfiguration", { key, value }, outcome),
  setLimit: (limit) =>
    request(
      "SetChargingProfile",
      { connectorId: limit.connector, csChargingProfiles: profile16(limit) },
      outcome,
    ),
  // Unknown: no such profile is there, which is what was wanted.
  clearLimit: (id) =>
    request("ClearChargingProfile", { id }, (payload) => {
      const read = outcome(payload);
      return { ...read, accepted: read.accepted || read.status === "Unknown" };
    }),
  clearPlace: (place) =>
    request(
      "ClearChargingProfile",
      { connectorId: place.connector, ...placeOf(place, STATION_MAX_16) },
      outcome,
    ),
  composite: (connectorId, seconds, unit) =>
    request(
      "GetCompositeSchedule",
      { connectorId, duration: seconds, chargingRateUnit: unit },
      readComposite16,
    ),
  isOfTransaction,
  isReading: ({ action }) => action === "MeterValues",
  isOnce,
  snapshotKey: ({ action, payload }) =>
    action === "BootNotification"
      ? "boot"
      : action === "StatusNotification"
        ? `status ${JSON.stringify(payload["connectorId"])}`
        : null,
  renameTransaction,
  transactionIn: transactionOf,
  // Hard would cut a transaction off: its end could be lost.
  reset: () => request("Reset", { type: "Soft" }, outcome),
  trigger: (what, connectorId) =>
    request(
      "TriggerMessage",
      { requestedMessage: TRIGGERS[what], ...(connectorId === null ? {} : { connectorId }) },
      outcome,
    ),
};
