import { after, amperes, seconds } from "../../domain/units.ts";
import type { ChargerTraits } from "../charger.ts";
import {
  type ReceivedMessage,
  identityOf,
  inAmperes,
  isWithin,
  unchanged,
  type Model,
  param,
  type Params,
  retained,
  type LastOrder,
  NO_ORDER,
} from "./model.ts";

// No release of evcc supports the mode `smart`.
const MODES = ["off", "now", "pv", "minpv"];
/** evcc publishes `online` at once and subscribes to its commands only this long after the start. */
const READY_AFTER_MS = 1500;
/** Interval at which evcc evaluates its loadpoint. */
const INTERVAL = seconds(30);
const PHASES = ["0", "1", "3"];

/**
 * evcc with one loadpoint. Rejects a current out of its range and keeps the old one. Mode and current survive a
 * restart. Only the modes `off` and `now` fix the current; in the other modes evcc controls it, up to that current.
 * A current is applied when the loadpoint is evaluated. A change of mode or of phases triggers that at once.
 * Each command topic is cleared after use. Commands in the first moments after a start are ignored.
 */
export function evcc(params: Params): Model {
  const root = param(params, "root");
  const loadpoint = `${root}/loadpoints/${param(params, "id")}`;
  return {
    fresh: { ...NO_ORDER, mode: "pv" },
    filters: [`${loadpoint}/+/set`],
    will: retained(`${root}/status`, "offline"),
    receive: (order, received) => {
      if (received.payload === "" || received.upFor < READY_AFTER_MS) return null;
      return { order: read(order, received) ?? order, answers: [retained(received.topic, "")] };
    },
    age: (order, now) => (order.waiting !== null && now >= order.waiting.until ? evaluated(order) : order),
    desired: ({ mode, level }) => (mode === "off" ? { kind: "pause" } : (level ?? { kind: "release" })),
    rebooted: evaluated,
    unplugged: unchanged,
    messages: (view) => {
      const { native, charger, currents, voltages, level, order, vehicle } = view;
      const enabled = order.mode !== "off";
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
        mode: order.mode,
        maxCurrent: askedIn(order) ?? level,
        effectiveMaxCurrent: askedIn(order) ?? level,
        offeredCurrent: enabled && vehicle !== null ? level : 0,
        phasesActive: charger.traits.phases,
        phasesConfigured: order.phases ?? 0,
        vehicleName: "",
        vehicleIdentity: identityOf(view, "mac") ?? identityOf(view, "rfid") ?? "",
        // 0 also while the state of charge is unknown.
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
    publishesAll: false,
  };
}

function read(order: LastOrder, { topic, payload, traits, at }: ReceivedMessage): LastOrder | null {
  const key = topic.split("/").at(-2);
  if (key === "mode") {
    if (!MODES.includes(payload)) return null;
    return payload === order.mode ? order : evaluated({ ...order, mode: payload });
  }
  if (key === "phasesConfigured")
    return PHASES.includes(payload) ? evaluated({ ...order, phases: Number(payload) || null }) : null;
  return key === "maxCurrent" && isOffered(Number(payload), traits)
    ? { ...order, waiting: { level: inAmperes(amperes(Number(payload))), until: after(at, INTERVAL) } }
    : null;
}

/** The waiting level becomes the level. */
const evaluated = (order: LastOrder): LastOrder =>
  order.waiting === null ? order : { ...order, level: order.waiting.level, waiting: null };

const askedIn = ({ waiting }: LastOrder): number | null =>
  waiting?.level.kind === "current" ? waiting.level.amperes : null;

const isOffered = (current: number, { minCurrent, maxCurrent }: ChargerTraits): boolean =>
  isWithin(current, minCurrent, maxCurrent);
