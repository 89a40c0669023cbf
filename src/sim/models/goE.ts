import type { Json } from "../../domain/audit.ts";
import type { ChargerState } from "../../domain/telemetry.ts";
import {
  identityOf,
  inAmperes,
  isWholeWithin,
  jsonIn,
  kept,
  live,
  type Model,
  obeyed,
  param,
  type Params,
  retained,
  type LastOrder,
  UNTOLD,
} from "./model.ts";

const CAR: Readonly<Record<ChargerState, number>> = {
  unknown: 0,
  unplugged: 1,
  charging: 2,
  connected: 3,
  paused: 3,
  finished: 4,
  error: 5,
};

const FORCE_OFF = 1;

/**
 * go-e, MQTT API v2. Everything is JSON. A current out of range leaves the old one in force without a word; neutral
 * (frc 0) ends a pause and keeps the current.
 */
export function goE(params: Params): Model {
  const root = `${param(params, "prefix")}/${param(params, "serial")}`;
  return {
    fresh: { ...UNTOLD, mode: "0" },
    filters: [`${root}/+/set`],
    will: null,
    hears: (before, { topic, payload, traits }) => {
      const key = topic.split("/").at(-2) ?? "";
      const value = jsonIn(payload);
      const result = `${root}/${key}/result`;
      if (value === undefined) return { told: before, answers: [live(result, "invalid json")] };
      const after = told(before, key, value, traits.maxCurrent);
      return after === null ? null : { told: after, answers: [live(result, "success")] };
    },
    ages: kept,
    does: obeyed,
    rebooted: kept,
    unplugged: kept,
    tells: (view) => {
      const { native, charger, currents, voltages, level, vehicle } = view;
      const power = currents.map((current, phase) => current * (voltages[phase] ?? 0));
      const card = identityOf(view, "name");
      const allowed = vehicle !== null && !view.told.paused;
      const keys: Readonly<Record<string, Json>> = {
        rbt: view.at - view.bootedAt,
        amp: Math.floor(level),
        acu: allowed ? Math.floor(level) : null,
        alw: allowed,
        frc: Number(view.told.mode),
        psm: view.told.phases === null ? 0 : view.told.phases === 1 ? 1 : 2,
        car: CAR[native.state ?? "unknown"],
        err: 0,
        nrg: [...voltages, 0, ...currents, ...power, 0, native.powerW ?? 0, 1, 1, 1, 0],
        eto: charger.energyWh,
        wh: charger.sessionWh,
        // No card is 0, card n is n + 1.
        trx: vehicle === null ? null : card === null ? 0 : 1,
        cards: card === null ? [] : [{ name: card }],
      };
      return Object.entries(keys).map(([key, value]) => retained(`${root}/${key}`, JSON.stringify(value)));
    },
    tellsAlways: false,
  };
}

/** Null: the key or its value is none that it takes. */
function told(before: LastOrder, key: string, value: unknown, most: number): LastOrder | null {
  if (key === "amp" && isWholeWithin(value, 6, most)) return { ...before, level: inAmperes(value) };
  if (key === "frc" && isWholeWithin(value, 0, 2))
    return { ...before, paused: value === FORCE_OFF, mode: String(value) };
  if (key === "psm" && isWholeWithin(value, 0, 2))
    return { ...before, phases: value === 1 ? 1 : value === 2 ? 3 : null };
  return null;
}
