import type { ChargerState } from "../../domain/telemetry.ts";
import {
  type ReceivedMessage,
  identityOf,
  inAmperes,
  isWholeWithin,
  kept,
  lastLevel,
  type Model,
  obeyed,
  param,
  type Params,
  retained,
  taken,
  type Taken,
  type LastOrder,
  UNTOLD,
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
 * SmartEVSE 3.5. An override in tenths of an ampere counts in modes Normal and Smart and within its own limits only,
 * else nothing happens; 0 is no level but gives control back. It is in RAM, the mode is not.
 */
export function smartEvse(params: Params): Model {
  const prefix = param(params, "prefix");
  return {
    fresh: { ...UNTOLD, mode: "Normal" },
    filters: [`${prefix}/Set/+`],
    will: retained(`${prefix}/connected`, "offline"),
    hears,
    ages: kept,
    does: obeyed,
    rebooted: (told) => ({ ...told, level: null }),
    unplugged: kept,
    tells: (view) => {
      const { native, charger, currents, level, told, vehicle } = view;
      const [mac, card] = [identityOf(view, "mac"), identityOf(view, "rfid")];
      const topics: Readonly<Record<string, string | number>> = {
        connected: "online",
        Mode: told.mode,
        ChargeCurrent: told.paused ? 0 : tenths(level),
        ChargeCurrentOverride: told.level === null ? 0 : tenths(level),
        MaxCurrent: tenths(charger.traits.maxCurrent),
        EVChargePower: native.powerW ?? 0,
        EVImportActiveEnergy: Math.round(charger.energyWh),
        EVEnergyCharged: Math.round(charger.sessionWh),
        EVCurrentL1: tenths(currents[0]),
        EVCurrentL2: tenths(currents[1]),
        EVCurrentL3: tenths(currents[2]),
        State: STATE[native.state ?? "unknown"],
        EVPlugState: vehicle === null ? "Disconnected" : "Connected",
        Access: told.mode === "Off" ? "Deny" : told.paused ? "Pause" : "Allow",
        Error: "None",
        NrOfPhases: charger.traits.phases,
        // Builds with a modem, and those with a card reader.
        ...(mac !== null && { EVCCID: mac }),
        ...(card !== null && { RFIDLastRead: card }),
      };
      return Object.entries(topics).map(([key, value]) => retained(`${prefix}/${key}`, value));
    },
    tellsAlways: false,
  };
}

/** Its unit of current. */
const tenths = (current: number): number => Math.round(current * 10);

function hears(told: LastOrder, { topic, payload, traits }: ReceivedMessage): Taken {
  switch (lastLevel(topic)) {
    case "Mode": {
      if (!MODES.includes(payload)) return null;
      const paused = payload === "Pause" || payload === "Off";
      return taken({ ...told, mode: payload, paused, level: payload === "Solar" ? null : told.level });
    }
    case "CurrentOverride": {
      const override = payload === "" ? Number.NaN : Number(payload);
      if (!OBEYING.includes(told.mode)) return null;
      if (override === 0) return taken({ ...told, level: null });
      return isWholeWithin(override, traits.minCurrent * 10, traits.maxCurrent * 10)
        ? taken({ ...told, level: inAmperes(override / 10) })
        : null;
    }
    case "EnableC2":
      return /^[0-4]$/.test(payload) ? taken({ ...told, phases: payload === ONE_PHASE ? 1 : null }) : null;
    default:
      return null;
  }
}
