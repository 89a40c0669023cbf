import type { ChargerState } from "../../core/site/telemetry.ts";
import { watts } from "../../core/units.ts";
import {
  inAmperes,
  isWithin,
  jsonIn,
  kept,
  live,
  type Make,
  memberOf,
  obeyed,
  param,
  type Params,
  type Told,
  UNTOLD,
} from "./make.ts";

const STATUS: Readonly<Record<ChargerState, string>> = {
  unknown: "Unavailable",
  unplugged: "Available",
  connected: "Preparing",
  charging: "Charging",
  paused: "SuspendedEVSE",
  finished: "Finishing",
  error: "Faulted",
};

const HEARTBEAT_MS = 10_000;

/**
 * An OCPP 1.6 charge point behind ocpp2mqtt: charging profiles in A or W, kept until they are cleared. A limit that it
 * cannot charge with, 0 above all, suspends it.
 */
export function ocpp(params: Params): Make {
  const base = param(params, "base");
  const read = (told: Told, json: unknown): Told | null => {
    const message = memberOf(json, "message");
    if (memberOf(message, "connector_id") !== Number(param(params, "connector"))) return null;
    switch (memberOf(json, "op")) {
      case "set_charging_profile": {
        const schedule = memberOf(message, "cs_charging_profiles", "charging_schedule");
        const limit = memberOf(schedule, "charging_schedule_period", 0, "limit");
        const unit = memberOf(schedule, "charging_rate_unit");
        if (!isWithin(limit, 0, Infinity) || (unit !== "A" && unit !== "W")) return null;
        return { ...told, level: unit === "A" ? inAmperes(limit) : { kind: "power", watts: watts(limit) } };
      }
      case "clear_charging_profile":
        return { ...told, level: null };
      default:
        return null;
    }
  };
  return {
    fresh: UNTOLD,
    filters: [`${base}/cmd`],
    will: null,
    hears: (told, { payload }) => {
      const after = read(told, jsonIn(payload));
      const answers = [live(`${base}/cmd_result/status`, after === null ? "Rejected" : "Accepted")];
      return { told: after ?? told, answers };
    },
    ages: kept,
    does: obeyed,
    rebooted: kept,
    unplugged: kept,
    tells: ({ native, charger, currents, at }) => {
      const states: Readonly<Record<string, string | number>> = {
        status: STATUS[native.state ?? "unknown"],
        error_code: "NoError",
        heartbeat: Math.floor(at / HEARTBEAT_MS),
        power_active_import: native.powerW ?? 0,
        current_import: currents[0],
        energy_active_import_register: Math.round(charger.energyWh),
      };
      return Object.entries(states).map(([key, value]) => live(`${base}/state/${key}`, value));
    },
    tellsAlways: false,
  };
}
