import type { Setpoint } from "../../domain/setpoint.ts";
import type { ChargerState } from "../../domain/telemetry.ts";
import { iso, watts } from "../../domain/units.ts";
import {
  type ReceivedMessage,
  identityOf,
  inAmperes,
  isWithin,
  jsonIn,
  kept,
  live,
  type Model,
  lastLevel,
  memberOf,
  type Message,
  obeyed,
  param,
  type Params,
  taken,
  type Taken,
  type LastOrder,
  UNTOLD,
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

/** What both of its interfaces tell each second, on topics of their own; `faults` are told by the older one only. */
const told = (view: View, root: string, faults: object = {}): readonly Message[] => {
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

/** The limit goes with the process that holds it; pausing is part of the session. */
const common = {
  fresh: UNTOLD,
  will: null,
  ages: kept,
  does: obeyed,
  rebooted: () => UNTOLD,
  unplugged: (before: LastOrder): LastOrder => ({ ...before, paused: false }),
  tellsAlways: true,
} as const;

/**
 * EVerest's API module. Signed amperes or watts, each replacing the whole limit; 0 and less import nothing. A limit
 * stays until the next one.
 */
export function everestLegacy(params: Params): Model {
  const root = `everest_api/${param(params, "evse")}`;
  return {
    ...common,
    filters: [`${root}/cmd/+`],
    hears: legacyHears,
    tells: (view) => [
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
      ...told(view, `${root}/var`, { permanent_fault: false }),
    ],
  };
}

function legacyHears(before: LastOrder, { topic, payload, plugged }: ReceivedMessage): Taken {
  const number = Number.parseFloat(payload);
  switch (lastLevel(topic)) {
    case "set_limit_amps":
      return Number.isFinite(number) ? taken({ ...before, level: inAmperes(number), phases: null }) : null;
    case "set_limit_watts":
      return Number.isFinite(number) ? taken({ ...before, level: inWatts(number), phases: null }) : null;
    case "set_limit_amps_phases": {
      const [amps, phases] = ["amps", "phases"].map((key) => memberOf(jsonIn(payload), key));
      if (typeof amps !== "number" || (phases !== 1 && phases !== 3)) return null;
      return taken({ ...before, level: inAmperes(amps), phases });
    }
    case "pause_charging":
      // Without a session nothing happens, and nobody says so.
      return plugged ? taken({ ...before, paused: true }) : null;
    case "resume_charging":
      return taken({ ...before, paused: false });
    default:
      return null;
  }
}

/**
 * EVerest API version 1: limits as schedules, of which the first entry holds at once, and pauses with a reply where it
 * is wanted. Without the communication check it complains, and holds its limits.
 */
export function everestV1(params: Params): Model {
  const limits = `everest_api/1/external_energy_limits_consumer/${param(params, "limitsModule")}`;
  const evse = `everest_api/1/evse_manager_consumer/${param(params, "evseModule")}`;
  return {
    ...common,
    filters: [`${limits}/m2e/+`, `${evse}/m2e/+`],
    hears: (before, { topic, payload, at, plugged }) => {
      const name = lastLevel(topic);
      if (name === "communication_check") return taken({ ...before, masterAt: at });
      if (name === "set_external_limits") {
        const level = scheduledIn(jsonIn(payload));
        return level === undefined ? null : taken({ ...before, level });
      }
      if (name !== "pause_charging" && name !== "resume_charging") return null;
      const replyTo = memberOf(jsonIn(payload), "headers", "replyTo");
      const answers = typeof replyTo === "string" ? [live(replyTo, plugged)] : [];
      if (!plugged) return { told: before, answers };
      return { told: { ...before, paused: name === "pause_charging" }, answers };
    },
    tells: (view) => [
      live(`${limits}/e2m/heartbeat`, Math.floor((view.at - view.bootedAt) / 1000)),
      live(`${evse}/e2m/enforced_limits`, {
        valid_for: 10,
        limits_root_side: { ac_max_current_A: { value: view.level, source: "energy manager" } },
      }),
      live(`${evse}/e2m/hw_capabilities`, { max_current_A_import: view.charger.traits.maxCurrent }),
      ...told(view, `${evse}/e2m`),
    ],
  };
}

/** The limit of the first entry; null: schedules without one free it; undefined: not all three schedules are there. */
function scheduledIn(json: unknown): Setpoint | null | undefined {
  const names = ["schedule_import", "schedule_export", "schedule_setpoints"];
  if (!names.every((name) => Array.isArray(memberOf(json, name)))) return undefined;
  const leaves = memberOf(json, "schedule_import", 0, "limits_to_leaves");
  const power = memberOf(leaves, "total_power_W", "value");
  const current = memberOf(leaves, "ac_max_current_A", "value");
  if (isWithin(power, 0, Infinity)) return inWatts(power);
  return isWithin(current, 0, Infinity) ? inAmperes(current) : null;
}
