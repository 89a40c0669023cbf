import type { Json } from "../../domain/audit.ts";
import type { ChargerState } from "../../domain/telemetry.ts";
import {
  identityOf,
  inAmperes,
  isWholeWithin,
  jsonIn,
  unchanged,
  live,
  type Model,
  desiredOf,
  param,
  type Params,
  retained,
  type LastOrder,
  NO_ORDER,
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
 * go-e, MQTT API v2. Every payload is JSON. A current out of range is ignored without an answer. Neutral (frc 0) ends
 * a pause and keeps the current.
 */
export function goE(params: Params): Model {
  const root = `${param(params, "prefix")}/${param(params, "serial")}`;
  return {
    fresh: { ...NO_ORDER, mode: "0" },
    filters: [`${root}/+/set`],
    will: null,
    receive: (before, { topic, payload, traits }) => {
      const key = topic.split("/").at(-2) ?? "";
      const value = jsonIn(payload);
      const result = `${root}/${key}/result`;
      if (value === undefined) return { order: before, answers: [live(result, "invalid json")] };
      const after = changed(before, key, value, traits.maxCurrent);
      return after === null ? null : { order: after, answers: [live(result, "success")] };
    },
    isReboot: (topic) => topic === `${root}/rst/set`,
    age: unchanged,
    desired: desiredOf,
    rebooted: unchanged,
    unplugged: unchanged,
    messages: (view) => {
      const { native, charger, currents, voltages, level, vehicle } = view;
      const power = currents.map((current, phase) => current * (voltages[phase] ?? 0));
      const card = identityOf(view, "name");
      const allowed = vehicle !== null && !view.order.paused;
      const keys: Readonly<Record<string, Json>> = {
        fwv: "60.0",
        rbc: view.boots,
        rbt: view.at - view.bootedAt,
        amp: Math.floor(level),
        acu: allowed ? Math.floor(level) : null,
        alw: allowed,
        frc: Number(view.order.mode),
        psm: view.order.phases === null ? 0 : view.order.phases === 1 ? 1 : 2,
        car: CAR[native.state ?? "unknown"],
        err: 0,
        nrg: [...voltages, 0, ...currents, ...power, 0, native.powerW ?? 0, 1, 1, 1, 0],
        eto: charger.energyWh,
        wh: charger.sessionWh,
        // 0: no card. n + 1: card n.
        trx: vehicle === null ? null : card === null ? 0 : 1,
        cards: card === null ? [] : [{ name: card }],
      };
      return Object.entries(keys).map(([key, value]) => retained(`${root}/${key}`, JSON.stringify(value)));
    },
    publishesAll: false,
  };
}

/** Null: unknown key, or a value that is not accepted. */
function changed(before: LastOrder, key: string, value: unknown, most: number): LastOrder | null {
  if (key === "amp" && isWholeWithin(value, 6, most)) return { ...before, level: inAmperes(value) };
  if (key === "frc" && isWholeWithin(value, 0, 2))
    return { ...before, paused: value === FORCE_OFF, mode: String(value) };
  if (key === "psm" && isWholeWithin(value, 0, 2))
    return { ...before, phases: value === 1 ? 1 : value === 2 ? 3 : null };
  return null;
}
