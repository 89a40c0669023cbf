import type { ChargerState } from "../../domain/telemetry.ts";
import {
  type ReceivedMessage,
  inAmperes,
  isWholeWithin,
  jsonIn,
  kept,
  live,
  type Model,
  memberOf,
  param,
  type Params,
  taken,
  type Taken,
  type LastOrder,
  UNTOLD,
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
/** Without a keepalive for this long the GX device says nothing more. */
const KEEPALIVE_MS = 60_000;
const HEARTBEAT_MS = 3000;

/**
 * Victron EV Charging Station behind a GX device. Whole amperes from 6 that count in manual mode only, start and stop
 * apart from it; anything else is left as it was. It speaks only while someone keeps it awake.
 */
export function victron(params: Params): Model {
  const portal = param(params, "portalId");
  const station = `evcharger/${param(params, "instance")}`;
  return {
    fresh: { ...UNTOLD, mode: "1" },
    filters: [`W/${portal}/${station}/+`, `R/${portal}/keepalive`],
    will: null,
    hears,
    ages: kept,
    does: ({ mode, paused, level }) => {
      if (paused) return { kind: "pause" };
      return mode === MANUAL && level !== null ? level : { kind: "release" };
    },
    rebooted: kept,
    unplugged: kept,
    tells: (view) => {
      const { native, charger, level, told, at } = view;
      if (told.masterAt === null || at > told.masterAt + KEEPALIVE_MS) return [];
      const values: Readonly<Record<string, number>> = {
        "Ac/Power": native.powerW ?? 0,
        Current: native.currentsA?.[0] ?? 0,
        "Ac/Energy/Forward": charger.energyWh / 1000,
        "Session/Energy": charger.sessionWh / 1000,
        Status: STATUS[native.state ?? "unknown"],
        SetCurrent: Math.floor(level),
        MaxCurrent: charger.traits.maxCurrent,
        Mode: Number(told.mode),
        StartStop: told.paused ? 0 : 1,
        Connected: 1,
      };
      return [
        live(`N/${portal}/heartbeat`, { value: Math.floor(at / HEARTBEAT_MS) * (HEARTBEAT_MS / 1000) }),
        ...Object.entries(values).map(([path, value]) => live(`N/${portal}/${station}/${path}`, { value })),
      ];
    },
    tellsAlways: false,
  };
}

function hears(told: LastOrder, { topic, payload, at, traits }: ReceivedMessage): Taken {
  const path = topic.split("/").at(-1);
  if (path === "keepalive") return taken({ ...told, masterAt: at });
  const value = memberOf(jsonIn(payload), "value");
  if (path === "SetCurrent" && isWholeWithin(value, 6, traits.maxCurrent))
    return taken({ ...told, level: inAmperes(value) });
  if (path === "StartStop" && isWholeWithin(value, 0, 1)) return taken({ ...told, paused: value === 0 });
  if (path === "Mode" && isWholeWithin(value, 0, 2)) return taken({ ...told, mode: String(value) });
  return null;
}
