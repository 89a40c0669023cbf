import type { ChargerState } from "../../domain/telemetry.ts";
import { instant, iso, watts } from "../../domain/units.ts";
import {
  inAmperes,
  isWithin,
  jsonIn,
  unchanged,
  type Model,
  memberOf,
  desiredOf,
  param,
  type Params,
  retained,
  accepted,
  type LastOrder,
  NO_ORDER,
} from "./model.ts";

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

const ON = "ON";
const OFF = "OFF";

const UNDERSTOOD = ["set_charging_profile", "clear_charging_profile"];

/**
 * An OCPP 1.6 charge point behind ocpp2mqtt. Charging profiles in A or W hold until they are cleared. A limit below
 * its minimum suspends charging. Each connection starts with charging_enabled OFF, which rejects every session.
 * A missing or unknown action is not answered.
 */
export function ocpp(params: Params): Model {
  const base = param(params, "base");
  const read = (order: LastOrder, json: unknown): LastOrder | null => {
    const args = memberOf(json, "args");
    if (memberOf(args, "connector_id") !== Number(param(params, "connector"))) return null;
    if (memberOf(json, "action") === "clear_charging_profile") return { ...order, level: null };
    const schedule = memberOf(args, "cs_charging_profiles", "charging_schedule");
    const limit = memberOf(schedule, "charging_schedule_period", 0, "limit");
    const unit = memberOf(schedule, "charging_rate_unit");
    if (!isWithin(limit, 0, Infinity) || (unit !== "A" && unit !== "W")) return null;
    return { ...order, level: unit === "A" ? inAmperes(limit) : { kind: "power", watts: watts(limit) } };
  };
  return {
    fresh: { ...NO_ORDER, mode: OFF },
    filters: [`${base}/cmd`],
    will: null,
    receive: (order, { payload }) => {
      const json = jsonIn(payload);
      const action = memberOf(json, "action");
      if (action === "charging_enabled")
        return accepted({ ...order, mode: memberOf(json, "args") === ON ? ON : OFF });
      if (!UNDERSTOOD.some((known) => known === action)) return null;
      const after = read(order, json);
      const answers = [retained(`${base}/cmd_result/status`, after === null ? "Rejected" : "Accepted")];
      return { order: after ?? order, answers };
    },
    age: unchanged,
    desired: (order) => (order.mode === ON ? desiredOf(order) : { kind: "pause" }),
    rebooted: (order) => ({ ...order, mode: OFF }),
    unplugged: unchanged,
    messages: ({ native, charger, currents, at }) => {
      const states: Readonly<Record<string, string | number>> = {
        status: STATUS[native.state ?? "unknown"],
        error_code: "NoError",
        connection_state: "CONNECTED",
        heartbeat: ON,
        last_seen: iso(instant(at - (at % HEARTBEAT_MS))),
        power_active_import: native.powerW ?? 0,
        current_import: currents[2],
        energy_active_import_register: Math.round(charger.energyWh),
      };
      return Object.entries(states).map(([key, value]) => retained(`${base}/state/${key}`, value));
    },
    publishesAll: false,
  };
}
