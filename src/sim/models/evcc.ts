import { after, amperes, seconds } from "../../domain/units.ts";
import type { ChargerTraits } from "../charger.ts";
import {
  type ReceivedMessage,
  identityOf,
  inAmperes,
  isWithin,
  kept,
  type Model,
  param,
  type Params,
  retained,
  type LastOrder,
  UNTOLD,
} from "./model.ts";

// No released one knows smart.
const MODES = ["off", "now", "pv", "minpv"];
/** It says online at once, and subscribes to its commands only after its set-up and a clean-up. */
const READY_AFTER_MS = 1500;
/** How often it evaluates its one loadpoint. */
const INTERVAL = seconds(30);
const PHASES = ["0", "1", "3"];

/**
 * evcc with one loadpoint. A current out of its range is an error and the old one stays; mode and current are kept
 * through a restart. Only off and now say what it does; with the others it is its own master, up to that current.
 * A current waits until the loadpoint is evaluated; a change of mode, or any word about phases, has it evaluated at
 * once. It empties every topic that it was told something on, and obeys nothing in its first moments.
 */
export function evcc(params: Params): Model {
  const root = param(params, "root");
  const loadpoint = `${root}/loadpoints/${param(params, "id")}`;
  return {
    fresh: { ...UNTOLD, mode: "pv" },
    filters: [`${loadpoint}/+/set`],
    will: retained(`${root}/status`, "offline"),
    hears: (told, heard) => {
      if (heard.payload === "" || heard.upFor < READY_AFTER_MS) return null;
      return { told: read(told, heard) ?? told, answers: [retained(heard.topic, "")] };
    },
    ages: (told, now) => (told.waiting !== null && now >= told.waiting.until ? evaluated(told) : told),
    does: ({ mode, level }) => (mode === "off" ? { kind: "pause" } : (level ?? { kind: "release" })),
    rebooted: evaluated,
    unplugged: kept,
    tells: (view) => {
      const { native, charger, currents, voltages, level, told, vehicle } = view;
      const enabled = told.mode !== "off";
      const topics: Readonly<Record<string, string | number | boolean>> = {
        chargePower: native.powerW ?? 0,
        "chargeCurrents/l1": currents[0],
        "chargeCurrents/l2": currents[1],
        "chargeCurrents/l3": currents[2],
        "chargeVoltages/l1": voltages[0],
        "chargeVoltages/l2": voltages[1],
        "chargeVoltages/l3": voltages[2],
        sessionEnergy: native.sessionWh ?? 0,
        chargeTotalImport: charger.energyWh / 1000,
        connected: vehicle !== null,
        charging: charger.drawn > 0,
        enabled,
        mode: told.mode,
        maxCurrent: askedIn(told) ?? level,
        effectiveMaxCurrent: askedIn(told) ?? level,
        offeredCurrent: enabled && vehicle !== null ? level : 0,
        phasesActive: charger.traits.phases,
        phasesConfigured: told.phases ?? 0,
        vehicleName: "",
        vehicleIdentity: identityOf(view, "mac") ?? identityOf(view, "rfid") ?? "",
        // Also where none is known.
        vehicleSoc: vehicle === null ? 0 : Math.round(vehicle.soc),
      };
      return [
        retained(`${root}/status`, "online"),
        ...(view.at - view.bootedAt < READY_AFTER_MS
          ? []
          : [retained(`${root}/updated`, Math.floor(view.at / 1000))]),
        ...Object.entries(topics).map(([key, value]) => retained(`${loadpoint}/${key}`, value)),
      ];
    },
    tellsAlways: false,
  };
}

function read(told: LastOrder, { topic, payload, traits, at }: ReceivedMessage): LastOrder | null {
  const key = topic.split("/").at(-2);
  if (key === "mode") {
    if (!MODES.includes(payload)) return null;
    return payload === told.mode ? told : evaluated({ ...told, mode: payload });
  }
  if (key === "phasesConfigured")
    return PHASES.includes(payload) ? evaluated({ ...told, phases: Number(payload) || null }) : null;
  return key === "maxCurrent" && isOffered(Number(payload), traits)
    ? { ...told, waiting: { level: inAmperes(amperes(Number(payload))), until: after(at, INTERVAL) } }
    : null;
}

/** What waited holds now. */
const evaluated = (told: LastOrder): LastOrder =>
  told.waiting === null ? told : { ...told, level: told.waiting.level, waiting: null };

const askedIn = ({ waiting }: LastOrder): number | null =>
  waiting?.level.kind === "current" ? waiting.level.amperes : null;

const isOffered = (current: number, { minCurrent, maxCurrent }: ChargerTraits): boolean =>
  isWithin(current, minCurrent, maxCurrent);
