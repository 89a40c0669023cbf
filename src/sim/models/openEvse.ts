import type { ChargerState } from "../../domain/telemetry.ts";
import {
  identityOf,
  inAmperes,
  jsonIn,
  unchanged,
  live,
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

const STATE: Readonly<Record<ChargerState, number>> = {
  unknown: 0,
  unplugged: 1,
  connected: 2,
  charging: 3,
  error: 4,
  finished: 2,
  paused: 254,
};

const LEAST = 6;
const KEEPS = "keeps";
const OVERRIDE = "override";

/**
 * OpenEVSE with a manual override: a JSON object that is merged into the previous one, in RAM only. A current below
 * the minimum is raised to it. The override ends when the vehicle leaves, unless `auto_release` is false.
 */
export function openEvse(params: Params): Model {
  const base = param(params, "base");
  const announce = `openevse/announce/${base.slice(-4)}`;
  const announced = (state: string) => retained(announce, { state, mqtt: base });
  return {
    fresh: NO_ORDER,
    filters: [`${base}/override/set`, `${base}/restart`],
    will: announced("disconnected"),
    receive: (before, { payload, traits }) => {
      if (payload === "clear") return accepted(NO_ORDER);
      const json = jsonIn(payload);
      if (typeof json !== "object" || json === null) return null;
      return accepted(merged(before, json, traits.maxCurrent));
    },
    isReboot: (topic, payload) =>
      topic === `${base}/restart` && memberOf(jsonIn(payload), "device") === "gateway",
    age: unchanged,
    desired: desiredOf,
    rebooted: () => NO_ORDER,
    unplugged: (order) => (order.mode === KEEPS ? order : NO_ORDER),
    messages: (view) => {
      const { native, charger, currents, voltages, level, order, vehicle } = view;
      const plain: Readonly<Record<string, string | number | boolean>> = {
        amp: Math.round(currents[0] * 1000),
        voltage: voltages[0],
        power: native.powerW ?? 0,
        pilot: Math.floor(level),
        max_current: charger.traits.maxCurrent,
        session_energy: native.sessionWh ?? 0,
        total_energy: charger.energyWh / 1000,
        state: STATE[native.state ?? "unknown"],
        vehicle: vehicle === null ? 0 : 1,
        status: order.paused ? "disabled" : "active",
        temp: false,
        manual_override: order.mode === "" ? 0 : 1,
        rfid_auth: identityOf(view, "rfid") ?? "",
        evse_connected: 1,
      };
      return [
        announced("connected"),
        retained(`${base}/config`, { version: "5.1.2" }),
        retained(`${base}/override`, override(order)),
        ...Object.entries(plain).map(([key, value]) => live(`${base}/${key}`, value)),
      ];
    },
    publishesAll: false,
  };
}

function merged(before: LastOrder, json: object, most: number): LastOrder {
  const [state, current, release] = ["state", "charge_current", "auto_release"].map((key) =>
    memberOf(json, key),
  );
  const level =
    typeof current === "number" && current >= 0
      ? inAmperes(Math.min(Math.max(Math.floor(current), LEAST), most))
      : current === "clear"
        ? null
        : before.level;
  return {
    ...before,
    level,
    paused: typeof state === "string" ? state === "disabled" : before.paused,
    mode: release === false || (release === undefined && before.mode === KEEPS) ? KEEPS : OVERRIDE,
  };
}

function override({ mode, paused, level }: LastOrder) {
  if (mode === "") return { state: "null" };
  return {
    state: paused ? "disabled" : "active",
    auto_release: mode !== KEEPS,
    ...(level?.kind === "current" && { charge_current: level.amperes }),
  };
}
