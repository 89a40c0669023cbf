import type { ChargerState } from "../../domain/telemetry.ts";
import {
  identityOf,
  inAmperes,
  jsonIn,
  kept,
  live,
  type Model,
  memberOf,
  obeyed,
  param,
  type Params,
  retained,
  taken,
  type LastOrder,
  UNTOLD,
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
 * OpenEVSE with a manual override: a JSON object that is merged into the one before, in RAM only. A current below the
 * minimum is clamped up to it, and the override is dropped when the vehicle leaves unless it says otherwise.
 */
export function openEvse(params: Params): Model {
  const base = param(params, "base");
  const announce = `openevse/announce/${base.slice(-4)}`;
  const announced = (state: string) => retained(announce, { state, mqtt: base });
  return {
    fresh: UNTOLD,
    filters: [`${base}/override/set`],
    will: announced("disconnected"),
    hears: (before, { payload, traits }) => {
      if (payload === "clear") return taken(UNTOLD);
      const json = jsonIn(payload);
      if (typeof json !== "object" || json === null) return null;
      return taken(merged(before, json, traits.maxCurrent));
    },
    ages: kept,
    does: obeyed,
    rebooted: () => UNTOLD,
    unplugged: (told) => (told.mode === KEEPS ? told : UNTOLD),
    tells: (view) => {
      const { native, charger, currents, voltages, level, told, vehicle } = view;
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
        status: told.paused ? "disabled" : "active",
        temp: false,
        manual_override: told.mode === "" ? 0 : 1,
        rfid_auth: identityOf(view, "rfid") ?? "",
        evse_connected: 1,
      };
      return [
        announced("connected"),
        retained(`${base}/override`, override(told)),
        ...Object.entries(plain).map(([key, value]) => live(`${base}/${key}`, value)),
      ];
    },
    tellsAlways: false,
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
