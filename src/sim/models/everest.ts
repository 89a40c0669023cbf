import type { Setpoint } from "../../domain/setpoint.ts";
import type { ChargerState } from "../../domain/telemetry.ts";
import { iso, watts } from "../../domain/units.ts";
import {
  type ReceivedMessage,
  identityOf,
  inAmperes,
  isWithin,
  jsonIn,
  unchanged,
  live,
  type Model,
  lastLevel,
  memberOf,
  type Message,
  desiredOf,
  param,
  type Params,
  accepted,
  type OrderEffect,
  type LastOrder,
  NO_ORDER,
  type View,
} from "./model.ts";

const STATE: Readonly<Record<ChargerState, string>> = {
  unknown: "Disabled",
  unplugged: "Unplugged",
  connected: "Preparing",
  charging: "Charging",
  paused: "ChargingPausedEVSE",
  finished: "FinishedEV",
  error: "Disabled",
};

const inWatts = (value: number): Setpoint => ({ kind: "power", watts: watts(value) });

/** Messages of both interfaces. Only the older one has `faults`. */
const sharedMessages = (view: View, root: string, faults: object = {}): readonly Message[] => {
  const { native, charger, currents, voltages, vehicle } = view;
  const [L1, L2, L3] = currents;
  const [U1, U2, U3] = voltages;
  return [
    live(`${root}/session_info`, {
      state: STATE[native.state ?? "unknown"],
      charged_energy_wh: native.sessionWh ?? 0,
      discharged_energy_wh: 0,
      latest_total_w: native.powerW ?? 0,
      ...faults,
    }),
    live(`${root}/powermeter`, {
      timestamp: iso(view.at),
      power_W: { total: native.powerW ?? 0 },
      energy_Wh_import: { total: charger.energyWh },
      current_A: { L1, L2, L3 },
      voltage_V: { L1: U1, L2: U2, L3: U3 },
    }),
    live(
      `${root}/ev_info`,
      vehicle === null ? {} : { evcc_id: identityOf(view, "mac") ?? "", soc: vehicle.soc },
    ),
  ];
};

/** The limit is lost with the process. The pause ends with the session. */
const common = {
  fresh: NO_ORDER,
  will: null,
  age: unchanged,
  desired: desiredOf,
  rebooted: () => NO_ORDER,
  unplugged: (before: LastOrder): LastOrder => ({ ...before, paused: false }),
  publishesAll: true,
} as const;

/**
 * EVerest's older API module. Signed amperes or watts; each replaces the whole limit. 0 and less stop charging.
 * A limit holds until the next one.
 */
export function everestLegacy(params: Params): Model {
  const root = `everest_api/${param(params, "evse")}`;
  return {
    ...common,
    filters: [`${root}/cmd/+`],
    receive: receiveLegacy,
    messages: (view) => [
      live("everest_api/connectors", [param(params, "evse")]),
      live(`${root}/var/datetime`, iso(view.at)),
      live(`${root}/var/hardware_capabilities`, {
        max_current_A_import: view.charger.traits.maxCurrent,
        max_phase_count_import: view.charger.traits.phases,
      }),
      live(`${root}/var/limits`, {
        max_current: view.level,
        nr_of_phases_available: view.charger.traits.phases,
      }),
      ...sharedMessages(view, `${root}/var`, { permanent_fault: false }),
    ],
  };
}

function receiveLegacy(before: LastOrder, { topic, payload, plugged }: ReceivedMessage): OrderEffect {
  const number = Number.parseFloat(payload);
  switch (lastLevel(topic)) {
    case "set_limit_amps":
      return Number.isFinite(number) ? accepted({ ...before, level: inAmperes(number), phases: null }) : null;
    case "set_limit_watts":
      return Number.isFinite(number) ? accepted({ ...before, level: inWatts(number), phases: null }) : null;
    case "set_limit_amps_phases": {
      const [amps, phases] = ["amps", "phases"].map((key) => memberOf(jsonIn(payload), key));
      if (typeof amps !== "number" || (phases !== 1 && phases !== 3)) return null;
      return accepted({ ...before, level: inAmperes(amps), phases });
    }
    case "pause_charging":
      // Ignored without a session, and not answered.
      return plugged ? accepted({ ...before, paused: true }) : null;
    case "resume_charging":
      return accepted({ ...before, paused: false });
    default:
      return null;
  }
}

/**
 * EVerest API version 1. Limits are schedules whose first entry holds at once. A pause is answered on `replyTo`.
 * Without the communication check EVerest logs a complaint and keeps its limits.
 */
export function everestV1(params: Params): Model {
  const limits = `everest_api/1/external_energy_limits_consumer/${param(params, "limitsModule")}`;
  const evse = `everest_api/1/evse_manager_consumer/${param(params, "evseModule")}`;
  return {
    ...common,
    filters: [`${limits}/m2e/+`, `${evse}/m2e/+`],
    receive: (before, { topic, payload, at, plugged }) => {
      const name = lastLevel(topic);
      if (name === "communication_check") return accepted({ ...before, masterAt: at });
      if (name === "set_external_limits") {
        const level = scheduledIn(jsonIn(payload));
        return level === undefined ? null : accepted({ ...before, level });
      }
      if (name !== "pause_charging" && name !== "resume_charging") return null;
      const replyTo = memberOf(jsonIn(payload), "headers", "replyTo");
      const answers = typeof replyTo === "string" ? [live(replyTo, plugged)] : [];
      if (!plugged) return { order: before, answers };
      return { order: { ...before, paused: name === "pause_charging" }, answers };
    },
    messages: (view) => [
      live(`${limits}/e2m/heartbeat`, Math.floor((view.at - view.bootedAt) / 1000)),
      live(`${evse}/e2m/enforced_limits`, {
        valid_for: 10,
        limits_root_side: { ac_max_current_A: { value: view.level, source: "energy manager" } },
      }),
      live(`${evse}/e2m/hw_capabilities`, { max_current_A_import: view.charger.traits.maxCurrent }),
      ...sharedMessages(view, `${evse}/e2m`),
    ],
  };
}

/** Limit of the first entry. Null: schedules without a limit. Undefined: not all three schedules are present. */
function scheduledIn(json: unknown): Setpoint | null | undefined {
  const names = ["schedule_import", "schedule_export", "schedule_setpoints"];
  if (!names.every((name) => Array.isArray(memberOf(json, name)))) return undefined;
  const leaves = memberOf(json, "schedule_import", 0, "limits_to_leaves");
  const power = memberOf(leaves, "total_power_W", "value");
  const current = memberOf(leaves, "ac_max_current_A", "value");
  if (isWithin(power, 0, Infinity)) return inWatts(power);
  return isWithin(current, 0, Infinity) ? inAmperes(current) : null;
}
