import { instant } from "../../domain/units.ts";
import { limitOf } from "../charger.ts";
import {
  type ReceivedMessage,
  identityOf,
  inAmperes,
  isWithin,
  jsonIn,
  unchanged,
  type Model,
  memberOf,
  desiredOf,
  param,
  type Params,
  retained,
  type OrderEffect,
  type LastOrder,
  NO_ORDER,
} from "./model.ts";

/** Age of the primary's last heartbeat, by the primary's clock, at which charging stops. */
const HEARTBEAT_MS = 80_000;

/**
 * openWB 2.x as a secondary. Accepts 0 or 6 to 32 A; anything else is rejected and the old value stays.
 * Goes to 0 A 80 s after the last heartbeat of its primary, or without any. Each command topic is cleared after use.
 */
export function openWb(params: Params): Model {
  const duo = param(params, "duo");
  const set = "openWB/set/internal_chargepoint";
  const ours = `${set}/${duo}/data`;
  const get = `openWB/internal_chargepoint/${duo}/get`;
  const read = (order: LastOrder, { topic, payload, at }: ReceivedMessage): LastOrder | null => {
    const value = jsonIn(payload);
    if (topic === `${set}/global_data`) {
      const heartbeat = memberOf(value, "heartbeat");
      return typeof heartbeat === "number" ? { ...order, masterAt: instant(heartbeat * 1000) } : null;
    }
    if (topic === `${ours}/phases_to_use`)
      return value === 1 || value === 3 ? { ...order, mode: String(value) } : null;
    if (topic === `${ours}/trigger_phase_switch`)
      return value === true && order.mode !== "" ? { ...order, phases: Number(order.mode) } : null;
    if (topic !== `${ours}/set_current` || (value !== 0 && !isWithin(value, 6, 32))) return null;
    return expired({ ...order, level: inAmperes(value), paused: value === 0 }, at);
  };
  return {
    fresh: { ...NO_ORDER, level: inAmperes(0), paused: true },
    filters: [`${set}/global_data`, `${ours}/+`],
    will: null,
    receive: (order, received): OrderEffect => {
      // The charger's own clearing of the topic.
      if (received.payload === "") return null;
      return { order: read(order, received) ?? order, answers: [retained(received.topic, "")] };
    },
    age: expired,
    desired: desiredOf,
    rebooted: (order) => ({ ...order, level: inAmperes(0), paused: true, masterAt: null }),
    unplugged: unchanged,
    messages: (view) => {
      const { native, charger, currents, voltages, vehicle } = view;
      const mac = identityOf(view, "mac");
      const topics: Readonly<Record<string, Parameters<typeof retained>[1]>> = {
        power: native.powerW ?? 0,
        imported: native.energyWh ?? 0,
        exported: 0,
        currents,
        voltages,
        plug_state: vehicle !== null,
        charge_state: charger.drawn > 0,
        phases_in_use: charger.traits.phases,
        evse_current: limitOf(charger),
        rfid: identityOf(view, "rfid"),
        // openWB Pro only.
        ...(mac !== null && { vehicle_id: mac }),
        soc: vehicle === null ? null : Math.round(vehicle.soc),
        fault_state: 0,
        fault_str: "Keine Fehler.",
      };
      // A text is JSON too, in quotes.
      return Object.entries(topics).map(([key, value]) => retained(`${get}/${key}`, JSON.stringify(value)));
    },
    publishesAll: false,
  };
}

const expired = (order: LastOrder, now: number): LastOrder =>
  order.masterAt !== null && order.masterAt + HEARTBEAT_MS >= now
    ? order
    : { ...order, level: inAmperes(0), paused: true };
