import type { ChargerState } from "../../domain/telemetry.ts";
import {
  type ReceivedMessage,
  inAmperes,
  isWholeWithin,
  jsonIn,
  unchanged,
  live,
  type Model,
  memberOf,
  param,
  type Params,
  accepted,
  type OrderEffect,
  type LastOrder,
  NO_ORDER,
} from "./model.ts";

const STATUS: Readonly<Record<ChargerState, number>> = {
  unplugged: 0,
  connected: 1,
  charging: 2,
  finished: 3,
  paused: 6,
  error: 8,
  unknown: 1,
};

const MANUAL = "0";
/** The GX device stops publishing this long after the last keepalive. */
const KEEPALIVE_MS = 60_000;
const HEARTBEAT_MS = 3000;

/**
 * Victron EV Charging Station behind a GX device. Whole amperes from 6, with an effect in manual mode only. Start and
 * stop work in every mode. Anything else is ignored. The GX device publishes only while it receives keepalives.
 */
export function victron(params: Params): Model {
  const portal = param(params, "portalId");
  const station = `evcharger/${param(params, "instance")}`;
  return {
    fresh: { ...NO_ORDER, mode: "1" },
    filters: [`W/${portal}/${station}/+`, `R/${portal}/keepalive`],
    will: null,
    receive,
    age: unchanged,
    desired: ({ mode, paused, level }) => {
      if (paused) return { kind: "pause" };
      return mode === MANUAL && level !== null ? level : { kind: "release" };
    },
    rebooted: unchanged,
    unplugged: unchanged,
    messages: (view) => {
      const { native, charger, level, order, at } = view;
      if (order.masterAt === null || at > order.masterAt + KEEPALIVE_MS) return [];
      const values: Readonly<Record<string, number>> = {
        "Ac/Power": native.powerW ?? 0,
        Current: native.currentsA?.[0] ?? 0,
        "Ac/Energy/Forward": charger.energyWh / 1000,
        "Session/Energy": charger.sessionWh / 1000,
        Status: STATUS[native.state ?? "unknown"],
        SetCurrent: Math.floor(level),
        MaxCurrent: charger.traits.maxCurrent,
        Mode: Number(order.mode),
        StartStop: order.paused ? 0 : 1,
        Connected: 1,
      };
      return [
        live(`N/${portal}/heartbeat`, { value: Math.floor(at / HEARTBEAT_MS) * (HEARTBEAT_MS / 1000) }),
        ...Object.entries(values).map(([path, value]) => live(`N/${portal}/${station}/${path}`, { value })),
      ];
    },
    publishesAll: false,
  };
}

function receive(order: LastOrder, { topic, payload, at, traits }: ReceivedMessage): OrderEffect {
  const path = topic.split("/").at(-1);
  if (path === "keepalive") return accepted({ ...order, masterAt: at });
  const value = memberOf(jsonIn(payload), "value");
  if (path === "SetCurrent" && isWholeWithin(value, 6, traits.maxCurrent))
    return accepted({ ...order, level: inAmperes(value) });
  if (path === "StartStop" && isWholeWithin(value, 0, 1)) return accepted({ ...order, paused: value === 0 });
  if (path === "Mode" && isWholeWithin(value, 0, 2)) return accepted({ ...order, mode: String(value) });
  return null;
}
