import { instant } from "../../domain/units.ts";
import { limitOf } from "../charger.ts";
import {
  type ReceivedMessage,
  identityOf,
  inAmperes,
  isWithin,
  jsonIn,
  kept,
  type Model,
  memberOf,
  obeyed,
  param,
  type Params,
  retained,
  type Taken,
  type LastOrder,
  UNTOLD,
} from "./model.ts";

/** How long after its master's last heartbeat, by the master's clock, it stops charging. */
const HEARTBEAT_MS = 80_000;

/**
 * openWB 2.x as a secondary: 0 or 6 to 32 A, anything else is rejected and the old value stays. 80 s after the last
 * heartbeat of its primary, or without any, it goes to 0 A. It empties every topic that it was told something on.
 */
export function openWb(params: Params): Model {
  const duo = param(params, "duo");
  const set = "openWB/set/internal_chargepoint";
  const ours = `${set}/${duo}/data`;
  const get = `openWB/internal_chargepoint/${duo}/get`;
  const read = (told: LastOrder, { topic, payload, at }: ReceivedMessage): LastOrder | null => {
    const value = jsonIn(payload);
    if (topic === `${set}/global_data`) {
      const heartbeat = memberOf(value, "heartbeat");
      return typeof heartbeat === "number" ? { ...told, masterAt: instant(heartbeat * 1000) } : null;
    }
    if (topic === `${ours}/phases_to_use`)
      return value === 1 || value === 3 ? { ...told, mode: String(value) } : null;
    if (topic === `${ours}/trigger_phase_switch`)
      return value === true && told.mode !== "" ? { ...told, phases: Number(told.mode) } : null;
    if (topic !== `${ours}/set_current` || (value !== 0 && !isWithin(value, 6, 32))) return null;
    return expired({ ...told, level: inAmperes(value), paused: value === 0 }, at);
  };
  return {
    fresh: { ...UNTOLD, level: inAmperes(0), paused: true },
    filters: [`${set}/global_data`, `${ours}/+`],
    will: null,
    hears: (told, heard): Taken => {
      // What it emptied itself.
      if (heard.payload === "") return null;
      return { told: read(told, heard) ?? told, answers: [retained(heard.topic, "")] };
    },
    ages: expired,
    does: obeyed,
    rebooted: (told) => ({ ...told, level: inAmperes(0), paused: true, masterAt: null }),
    unplugged: kept,
    tells: (view) => {
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
        // The Pro only.
        ...(mac !== null && { vehicle_id: mac }),
        soc: vehicle === null ? null : Math.round(vehicle.soc),
        fault_state: 0,
        fault_str: "Keine Fehler.",
      };
      // A text is JSON too, in quotes.
      return Object.entries(topics).map(([key, value]) => retained(`${get}/${key}`, JSON.stringify(value)));
    },
    tellsAlways: false,
  };
}

const expired = (told: LastOrder, now: number): LastOrder =>
  told.masterAt !== null && told.masterAt + HEARTBEAT_MS >= now
    ? told
    : { ...told, level: inAmperes(0), paused: true };
