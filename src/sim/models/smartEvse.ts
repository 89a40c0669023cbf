import type { ChargerState } from "../../domain/telemetry.ts";
import {
  type ReceivedMessage,
  identityOf,
  inAmperes,
  isWholeWithin,
  unchanged,
  lastLevel,
  type Model,
  desiredOf,
  param,
  type Params,
  retained,
  accepted,
  type OrderEffect,
  type LastOrder,
  NO_ORDER,
} from "./model.ts";

const STATE: Readonly<Record<ChargerState, string>> = {
  unknown: "NOSTATE",
  unplugged: "Ready to Charge",
  connected: "Connected to EV",
  charging: "Charging",
  paused: "Charging Stopped",
  finished: "Connected to EV",
  error: "NOSTATE",
};

const MODES = ["Normal", "Smart", "Solar", "Pause", "Off"];
const OBEYING = ["Normal", "Smart"];
const ONE_PHASE = "1";

/**
 * SmartEVSE 3.5. An override in tenths of an ampere is accepted in modes Normal and Smart, within the charger's limits.
 * 0 ends the override. A restart loses the override and keeps the mode.
 */
export function smartEvse(params: Params): Model {
  const prefix = param(params, "prefix");
  return {
    fresh: { ...NO_ORDER, mode: "Normal" },
    filters: [`${prefix}/Set/+`],
    will: retained(`${prefix}/connected`, "offline"),
    receive,
    age: unchanged,
    desired: desiredOf,
    rebooted: (order) => ({ ...order, level: null }),
    unplugged: unchanged,
    messages: (view) => {
      const { native, charger, currents, level, order, vehicle } = view;
      const [mac, card] = [identityOf(view, "mac"), identityOf(view, "rfid")];
      const topics: Readonly<Record<string, string | number>> = {
        connected: "online",
        Mode: order.mode,
        ChargeCurrent: order.paused ? 0 : tenths(level),
        ChargeCurrentOverride: order.level === null ? 0 : tenths(level),
        MaxCurrent: tenths(charger.traits.maxCurrent),
        EVChargePower: native.powerW ?? 0,
        EVImportActiveEnergy: Math.round(charger.energyWh),
        EVEnergyCharged: Math.round(charger.sessionWh),
        EVCurrentL1: tenths(currents[0]),
        EVCurrentL2: tenths(currents[1]),
        EVCurrentL3: tenths(currents[2]),
        State: STATE[native.state ?? "unknown"],
        EVPlugState: vehicle === null ? "Disconnected" : "Connected",
        Access: order.mode === "Off" ? "Deny" : order.paused ? "Pause" : "Allow",
        Error: "None",
        NrOfPhases: charger.traits.phases,
        // EVCCID: builds with a modem. RFIDLastRead: builds with a card reader.
        ...(mac !== null && { EVCCID: mac }),
        ...(card !== null && { RFIDLastRead: card }),
      };
      return Object.entries(topics).map(([key, value]) => retained(`${prefix}/${key}`, value));
    },
    publishesAll: false,
  };
}

/** Unit of current on its topics. */
const tenths = (current: number): number => Math.round(current * 10);

function receive(order: LastOrder, { topic, payload, traits }: ReceivedMessage): OrderEffect {
  switch (lastLevel(topic)) {
    case "Mode": {
      if (!MODES.includes(payload)) return null;
      const paused = payload === "Pause" || payload === "Off";
      return accepted({ ...order, mode: payload, paused, level: payload === "Solar" ? null : order.level });
    }
    case "CurrentOverride": {
      const override = payload === "" ? Number.NaN : Number(payload);
      if (!OBEYING.includes(order.mode)) return null;
      if (override === 0) return accepted({ ...order, level: null });
      return isWholeWithin(override, traits.minCurrent * 10, traits.maxCurrent * 10)
        ? accepted({ ...order, level: inAmperes(override / 10) })
        : null;
    }
    case "EnableC2":
      return /^[0-4]$/.test(payload)
        ? accepted({ ...order, phases: payload === ONE_PHASE ? 1 : null })
        : null;
    default:
      return null;
  }
}
