import { z } from "zod";

import type { ChargerState } from "../../domain/telemetry.ts";
import { iso } from "../../domain/units.ts";
import type { Identity } from "../../domain/vehicle.ts";
import { capabilityVariables, meterSettings201, readVariables, setVariable } from "./capabilities.ts";
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
import { placeOf, profile201, readComposite201, STATION_MAX_201 } from "./profiles.ts";

/** OCPP 2.0.1, edition 3. A connector of ours is an EVSE. Members that are not used are not read. */

const name = z.string().max(255).catch("");
const evseId = z.coerce.number().int().min(0).max(1000);
const time = z.unknown().optional().transform(timeOf);
const transactionId = z.string().min(1).max(36);

const boot = z.object({
  chargingStation: z.object({ vendorName: name, model: name, firmwareVersion: name }),
});
const statusNotification = z.object({
  evseId,
  connectorId: evseId.catch(1),
  connectorStatus: name,
  timestamp: time,
});
const meterValuesCall = z.object({ evseId, meterValue: meterValues });
const token = z.object({ idToken: z.string().max(255).catch(""), type: name });
const authorize = z.object({ idToken: token });
const transactionEvent = z.object({
  eventType: z.enum(["Started", "Updated", "Ended"]),
  timestamp: time,
  transactionInfo: z.object({ transactionId, chargingState: z.string().max(64).nullish().catch(null) }),
  evse: z.object({ id: evseId }).nullish().catch(null),
  idToken: token.nullish().catch(null),
  meterValue: meterValues.optional(),
});

const CONNECTOR: Readonly<Record<string, ChargerState>> = {
  Available: "unplugged",
  Reserved: "unplugged",
  Faulted: "error",
};
const CHARGING: Readonly<Record<string, ChargerState>> = {
  Charging: "charging",
  EVConnected: "connected",
  SuspendedEV: "connected",
  SuspendedEVSE: "paused",
  Idle: "unplugged",
};

/** Types of tokens by our kinds of identities. */
const KINDS: Readonly<Record<string, string>> = {
  ISO14443: "rfid",
  ISO15693: "rfid",
  MacAddress: "mac",
  eMAID: "emaid",
};

/** Null: no token, or one of no vehicle, e.g. a key code or a start by an app. */
function identityOf(read: z.infer<typeof token> | null | undefined): Identity | null {
  const kind = KINDS[read?.type ?? ""];
  if (read === null || read === undefined || kind === undefined || read.idToken === "") return null;
  // EVerest marks the address of the vehicle's modem (Autocharge) as in 1.6.
  const value = kind === "mac" ? read.idToken.replace(/^VID:?/i, "") : read.idToken;
  return { kind, value: value.toLowerCase() };
}

const unreadable = ({ issues: [issue] }: z.ZodError): Received =>
  refuse(
    "FormatViolation",
    issue === undefined ? "not readable" : `${issue.path.join(".")}: ${issue.message}`,
  );

/** Calls that need no more than an answer. */
const EMPTY: ReadonlySet<string> = new Set([
  "FirmwareStatusNotification",
  "LogStatusNotification",
  "NotifyChargingLimit",
  "NotifyCustomerInformation",
  "NotifyDisplayMessages",
  "NotifyEvent",
  "NotifyMonitoringReport",
  "NotifyReport",
  "ReportChargingProfiles",
  "ReservationStatusUpdate",
  "SecurityEventNotification",
  "ClearedChargingLimit",
]);

const tokenInfo = (accepted: boolean) => ({ idTokenInfo: { status: accepted ? "Accepted" : "Invalid" } });

function receive({ action, payload }: Call, { now, heartbeat, accepts }: Answering): Received {
  const currentTime = iso(now);
  switch (action) {
    case "BootNotification": {
      const read = boot.safeParse(payload);
      if (!read.success) return unreadable(read.error);
      const { vendorName: vendor, model, firmwareVersion: firmware } = read.data.chargingStation;
      const accepted = { status: "Accepted", currentTime, interval: heartbeat };
      return ok(accepted, { kind: "boot", vendor, model, firmware });
    }
    case "Heartbeat":
      return ok({ currentTime });
    case "Authorize": {
      const read = authorize.safeParse(payload);
      return read.success ? ok(tokenInfo(accepts(read.data.idToken.idToken))) : unreadable(read.error);
    }
    case "DataTransfer":
      return ok({ status: "UnknownVendorId" });
    case "StatusNotification": {
      const read = statusNotification.safeParse(payload);
      if (!read.success) return unreadable(read.error);
      const { evseId: connector, connectorId: plug, connectorStatus, timestamp: at } = read.data;
      if (connectorStatus === "Occupied") return ok({}, { kind: "occupied", connector, plug, at });
      const state = CONNECTOR[connectorStatus] ?? "unknown";
      const fault = state === "error" ? connectorStatus : null;
      return ok({}, { kind: "status", connector, plug, state, fault, at });
    }
    case "MeterValues": {
      const read = meterValuesCall.safeParse(payload);
      if (!read.success) return unreadable(read.error);
      const { evseId: connector, meterValue } = read.data;
      return ok({}, { kind: "meter", connector, transaction: null, ...readingsOf(meterValue) });
    }
    case "TransactionEvent": {
      const read = transactionEvent.safeParse(payload);
      if (!read.success) return unreadable(read.error);
      const { idToken } = read.data;
      return ok(
        idToken === null || idToken === undefined ? {} : tokenInfo(accepts(idToken.idToken)),
        ...meaningsOf(read.data),
      );
    }
    default:
      return EMPTY.has(action) ? ok({}) : refuse("NotImplemented", `${action} is not supported`);
  }
}

function meaningsOf(event: z.infer<typeof transactionEvent>): readonly Meaning[] {
  const { eventType, timestamp, transactionInfo, evse, idToken, meterValue = [] } = event;
  const { transactionId: transaction, chargingState } = transactionInfo;
  const connector = evse?.id ?? null;
  const { readings, at } = readingsOf(meterValue);
  const meterWh = readings.energyWh ?? null;
  if (eventType === "Ended") return [{ kind: "stopped", connector, transaction, meterWh, at: timestamp }];
  const all: Meaning[] = [];
  const identity = identityOf(idToken);
  if (eventType === "Started")
    all.push({ kind: "started", connector, transaction, identity, meterWh, at: timestamp });
  else if (identity !== null) all.push({ kind: "identified", connector, transaction, identity });
  const state = CHARGING[chargingState ?? ""];
  if (state !== undefined) all.push({ kind: "charging", connector, transaction, state });
  if (meterValue.length > 0) all.push({ kind: "meter", connector, transaction, readings, at });
  return all;
}

const status = z.object({ status: z.string().max(64).catch("no status") });
const outcome = (payload: Payload): Outcome => {
  const read = status.parse(payload);
  return { accepted: read.status === "Accepted", status: read.status };
};

export const ocpp201: Dialect = {
  subprotocol: "ocpp2.0.1",
  version: "2.0.1",
  receive,
  capabilities: () => request("GetVariables", capabilityVariables, readVariables),
  meterSettings: meterSettings201,
  configure: (setting) => request("SetVariables", setVariable(setting), readSetResult),
  setLimit: (limit) =>
    request("SetChargingProfile", { evseId: limit.connector, chargingProfile: profile201(limit) }, outcome),
  // Unknown: no such profile is there, which is what was wanted.
  clearLimit: (id) =>
    request("ClearChargingProfile", { chargingProfileId: id }, (payload) => {
      const read = outcome(payload);
      return { ...read, accepted: read.accepted || read.status === "Unknown" };
    }),
  clearPlace: (place) =>
    request(
      "ClearChargingProfile",
      { chargingProfileCriteria: { evseId: place.connector, ...placeOf(place, STATION_MAX_201) } },
      outcome,
    ),
  composite: (id, duration, chargingRateUnit) =>
    request("GetCompositeSchedule", { evseId: id, duration, chargingRateUnit }, readComposite201),
  // The station names its transactions, so their ids are the same everywhere.
  isOfTransaction: ({ action }) => action === "TransactionEvent",
  isReading: ({ payload }) => payload["eventType"] === "Updated",
  // An event has the number that its station gave it, so a repeat is known everywhere.
  isOnce: () => false,
  snapshotKey: ({ action, payload }) =>
    action === "BootNotification"
      ? "boot"
      : action === "StatusNotification"
        ? `status ${JSON.stringify([payload["evseId"], payload["connectorId"]])}`
        : null,
  renameTransaction: (payload) => payload,
  transactionIn: () => null,
  // OnIdle would wait for the end of the transaction, which may be hours away. Immediate ends it in good order first.
  reset: () =>
    request("Reset", { type: "Immediate" }, (payload) => {
      const read = outcome(payload);
      return { ...read, accepted: read.accepted || read.status === "Scheduled" };
    }),
  // A status is triggered for a connector of the EVSE: the first one stands for it.
  // Meter values outside a transaction have no energy of a vehicle. Its event has them, and its state.
  trigger: (what, id) =>
    request(
      "TriggerMessage",
      {
        requestedMessage: what === "meter" ? "TransactionEvent" : TRIGGERS[what],
        ...(id === null ? {} : { evse: what === "status" ? { id, connectorId: 1 } : { id } }),
      },
      outcome,
    ),
};

const setResult = z.object({
  setVariableResult: z.array(z.object({ attributeStatus: z.string().max(64) })).min(1),
});

function readSetResult(payload: Payload): Outcome {
  const read = setResult.safeParse(payload);
  const found = read.success ? (read.data.setVariableResult[0]?.attributeStatus ?? "") : "no status";
  return { accepted: found === "Accepted" || found === "RebootRequired", status: found };
}
