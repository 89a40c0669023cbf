import {
  identityOf,
  inAmperes,
  isWholeWithin,
  jsonIn,
  unchanged,
  type Model,
  memberOf,
  desiredOf,
  param,
  type Params,
  retained,
  accepted,
  NO_ORDER,
} from "./model.ts";
import type { ChargerState } from "../../domain/telemetry.ts";
import { limitOf } from "../charger.ts";

const STATE: Readonly<Record<ChargerState, number>> = {
  unplugged: 0,
  paused: 1,
  connected: 2,
  finished: 2,
  unknown: 2,
  charging: 3,
  error: 4,
};

const LEAST = 6000;
const MOST = 32_000;
/** Meaning of each position in a meter's `values`: voltages, currents, total W, total kWh. */
const VALUE_IDS = [1, 2, 3, 13, 17, 21, 74, 209];

/**
 * Tinkerforge WARP with older firmware. The slot for external control has an effect only once it is enabled.
 * Whole milliamperes. 0 blocks charging; other values below 6000 are ignored without an answer.
 * An object with one member can be abbreviated to its value.
 */
export function warp(params: Params): Model {
  const prefix = param(params, "prefix");
  const meter = `meters/${param(params, "meter")}`;
  return {
    fresh: { ...NO_ORDER, mode: "off" },
    filters: [
      `${prefix}/evse/external_current_update`,
      `${prefix}/evse/external_enabled_update`,
      `${prefix}/power_manager/external_control_update`,
      `${prefix}/reboot`,
    ],
    will: null,
    receive: (order, { topic, payload }) => {
      const json = jsonIn(payload);
      const value = typeof json === "object" && json !== null ? Object.values(json)[0] : json;
      if (topic.endsWith("/external_enabled_update"))
        return typeof value === "boolean" ? accepted({ ...order, mode: value ? "on" : "off" }) : null;
      if (topic.endsWith("/external_control_update")) {
        const phases = memberOf(json, "phases_wanted") ?? value;
        return phases === 1 || phases === 3 ? accepted({ ...order, phases }) : null;
      }
      if (value !== 0 && !isWholeWithin(value, LEAST, MOST)) return null;
      return accepted({ ...order, level: inAmperes(value / 1000), paused: value === 0 });
    },
    isReboot: (topic, payload) =>
      topic === `${prefix}/reboot` && ["null", '""', "false", "0", "[]", "{}"].includes(payload),
    age: unchanged,
    desired: (order) => (order.mode === "on" ? desiredOf(order) : { kind: "release" }),
    // After a restart external_defaults holds: 32 A as delivered.
    rebooted: (order) => ({ ...NO_ORDER, mode: order.mode }),
    unplugged: unchanged,
    messages: (view) => {
      const { native, charger, currents, voltages, order, vehicle } = view;
      const kWh = charger.energyWh / 1000;
      const slot = order.level?.kind === "current" ? Math.round(order.level.amperes * 1000) : MOST;
      const tag = identityOf(view, "rfid");
      const mac = identityOf(view, "mac");
      const topics: Readonly<Record<string, Parameters<typeof retained>[1]>> = {
        "evse/state": {
          iec61851_state: vehicle === null ? 0 : charger.drawn > 0 ? 2 : 1,
          charger_state: STATE[native.state ?? "unknown"],
          allowed_charging_current: Math.round(limitOf(charger) * 1000),
          error_state: 0,
        },
        "evse/external_current": { current: slot },
        "evse/external_enabled": { enabled: order.mode === "on" },
        "info/version": { firmware: "2.8.1" },
        "evse/low_level_state": { uptime: view.at - view.bootedAt },
        "meter/values": { power: native.powerW ?? 0, energy_rel: kWh, energy_abs: kWh },
        [`${meter}/value_ids`]: VALUE_IDS,
        [`${meter}/values`]: [...voltages, ...currents, native.powerW ?? 0, kWh],
        "power_manager/state": { external_control: 0 },
        "power_manager/low_level_state": { is_3phase: charger.traits.phases === 3 },
        "charge_tracker/current_charge": {
          user_id: vehicle === null ? -1 : 0,
          authorization_type: tag === null ? 0 : 2,
          authorization_info: tag === null ? null : { tag_type: 0, tag_id: tag },
        },
        // WARP 4 only, and only for vehicles that send their MAC address.
        ...(vehicle !== null && mac !== null && { "ev/state": { mac, soc: Math.round(vehicle.soc) } }),
      };
      return Object.entries(topics).map(([topic, value]) => retained(`${prefix}/${topic}`, value));
    },
    publishesAll: false,
  };
}
