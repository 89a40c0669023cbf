import { after, instant, type Instant, minutes, seconds, watts } from "../../src/domain/units.ts";
import { openEvse } from "../../src/sim/models/openEvse.ts";
import {
  accepted,
  desiredOf,
  inAmperes,
  isWholeWithin,
  isWithin,
  jsonIn,
  lastLevel,
  type LastOrder,
  live,
  memberOf,
  type Model,
  NO_ORDER,
  param,
  type Params,
  retained,
  unchanged,
  type View,
} from "../../src/sim/models/model.ts";

/** Models of the makes that `src/sim` lacks, as far as the facts about them go. They serve tests only. */

/** Obeys levels and pauses, and keeps them through everything. */
const KEEPS = {
  fresh: NO_ORDER,
  filters: [],
  will: null,
  age: unchanged,
  desired: desiredOf,
  rebooted: unchanged,
  unplugged: unchanged,
  publishesAll: false,
} as const;

const isCharging = ({ charger }: View): boolean => charger.drawn > 0;
const isPlugged = ({ vehicle }: View): boolean => vehicle !== null;
const powerOf = ({ native }: View): number => native.powerW ?? 0;
const asText = (is: boolean): string => (is ? "True" : "False");
const number = (payload: string): number => (payload.trim() === "" ? Number.NaN : Number(payload));

/** A claim is kept in memory, and ends with the session. */
function openEvseClaim(params: Params): Model {
  const base = param(params, "base");
  const model = openEvse(params);
  const [ours, theirs] = [`${base}/claim`, `${base}/override`];
  return {
    ...model,
    receive: (order, received) =>
      received.topic === `${ours}/set`
        ? model.receive(order, {
            ...received,
            payload: received.payload === "release" ? "clear" : received.payload,
          })
        : null,
    unplugged: () => NO_ORDER,
    messages: (view) =>
      model
        .messages(view)
        .map((message) => (message.topic === theirs ? { ...message, topic: ours } : message)),
  };
}

const OPENWB_MODES = ["instant", "pv", "eco", "stop", "target"];

/** A primary: the charge template is stored. The current counts in the mode instant only. */
function openWbSimple(params: Params): Model {
  const id = param(params, "id");
  const set = `openWB/simpleAPI/set/chargepoint/${id}`;
  return {
    ...KEEPS,
    fresh: { ...NO_ORDER, mode: "pv" },
    receive: (order, { topic, payload }) => {
      if (payload === "" || !topic.startsWith(set)) return null;
      const next =
        topic === `${set}/chargemode` && OPENWB_MODES.includes(payload)
          ? { ...order, mode: payload }
          : topic === `${set}/chargecurrent` && isWholeWithin(number(payload), 6, 32)
            ? { ...order, level: inAmperes(number(payload)) }
            : order;
      return accepted(next, retained(topic, ""));
    },
    desired: ({ mode, level }) =>
      mode === "stop"
        ? { kind: "pause" }
        : mode === "instant" && level !== null
          ? level
          : { kind: "release" },
    messages: (view) => {
      const topics = {
        power: powerOf(view),
        imported: view.charger.energyWh,
        plug_state: asText(isPlugged(view)),
        charge_state: asText(isCharging(view)),
        "currents/1": view.currents[0],
        "currents/2": view.currents[1],
        "currents/3": view.currents[2],
      };
      const { mode, level } = view.order;
      const selected = mode === "stop" ? mode : `${mode}_charging`;
      const current = level?.kind === "current" ? level.amperes : 6;
      const template = { chargemode: { selected, instant_charging: { current } } };
      return [
        retained(`openWB/chargepoint/${id}/set/charge_template`, JSON.stringify(template)),
        ...Object.entries(topics).map(([key, value]) =>
          retained(`openWB/simpleAPI/chargepoint/${id}/${key}`, value),
        ),
      ];
    },
  };
}

const HEARTBEAT_MS = 80_000;
const stopped = (order: LastOrder): LastOrder => ({ ...order, level: inAmperes(0), paused: true });
const expired = (order: LastOrder, now: number): LastOrder =>
  order.masterAt !== null && order.masterAt + HEARTBEAT_MS >= now ? order : stopped(order);

/** At 0 A without a heartbeat, and after a start, until it gets a level. */
function openWb19(params: Params): Model {
  const id = param(params, "id");
  const [current, phases] = [param(params, "currentTopic"), param(params, "phaseTopic")];
  return {
    ...KEEPS,
    fresh: stopped(NO_ORDER),
    receive: (order, { topic, payload, at }) => {
      const value = number(payload);
      switch (topic) {
        case "openWB/set/isss/heartbeat":
          return accepted({ ...order, masterAt: at });
        case `openWB/set/isss/${phases}`:
          return value === 1 || value === 3 ? accepted({ ...order, phases: value }) : null;
        case `openWB/set/isss/${current}`:
          if (value !== 0 && !isWithin(value, 6, 32)) return null;
          return accepted(expired({ ...order, level: inAmperes(value), paused: value === 0 }, at));
        default:
          return null;
      }
    },
    age: expired,
    rebooted: (order) => ({ ...stopped(order), masterAt: null }),
    messages: (view) => {
      const topics = {
        W: powerOf(view),
        kWhCounter: view.charger.energyWh / 1000,
        APhase1: view.currents[0],
        APhase2: view.currents[1],
        APhase3: view.currents[2],
        boolPlugStat: isPlugged(view) ? 1 : 0,
        boolChargeStat: isCharging(view) ? 1 : 0,
      };
      return [
        retained("openWB/system/Timestamp", Math.floor(view.at / 1000)),
        ...Object.entries(topics).map(([key, value]) => retained(`openWB/lp/${id}/${key}`, value)),
      ];
    },
  };
}

/** Its limit is lost with a restart. */
function openWbChargePoint(params: Params): Model {
  const id = param(params, "id");
  const set = `openWB/mqtt/chargepoint/${id}/set`;
  return {
    ...KEEPS,
    rebooted: () => NO_ORDER,
    receive: (order, { topic, payload }) => {
      const value = number(payload);
      if (topic === `${set}/phases_to_use`)
        return value === 1 || value === 3 ? accepted({ ...order, phases: value }) : null;
      if (topic !== `${set}/current` || (value !== 0 && !isWithin(value, 6, 80))) return null;
      return accepted({ ...order, level: inAmperes(value), paused: value === 0 });
    },
    messages: (view) => {
      const topics = {
        power: powerOf(view),
        imported: view.charger.energyWh,
        currents: view.currents,
        voltages: view.voltages,
        plug_state: isPlugged(view),
        charge_state: isCharging(view),
        phases_in_use: view.charger.traits.phases,
      };
      return Object.entries(topics).map(([key, value]) =>
        live(`openWB/set/mqtt/chargepoint/${id}/get/${key}`, JSON.stringify(value)),
      );
    },
  };
}

/** Every command is a write to its database. */
function wallbox(params: Params): Model {
  const root = `wallbox_${param(params, "serial")}`;
  return {
    ...KEEPS,
    will: retained(`${root}/availability`, "offline"),
    receive: (order, { topic, payload }) => {
      const value = number(payload);
      if (topic === `${root}/charging_enable/set`) return accepted({ ...order, paused: value !== 1 });
      return topic === `${root}/max_charging_current/set` && isWholeWithin(value, 6, 32)
        ? accepted({ ...order, level: inAmperes(value) })
        : null;
    },
    messages: (view) => {
      const topics = {
        charging_power: powerOf(view),
        cumulative_added_energy: view.charger.energyWh,
        charging_current_l1: view.currents[0],
        charging_current_l2: view.currents[1],
        charging_current_l3: view.currents[2],
        cable_connected: isPlugged(view) ? 1 : 0,
        charging_enable: view.order.paused ? 0 : 1,
        max_charging_current: view.level,
        status: isCharging(view) ? "Charging" : view.order.paused && isPlugged(view) ? "Paused" : "Ready",
      };
      return [
        retained(`${root}/availability`, "online"),
        ...Object.entries(topics).map(([key, value]) => retained(`${root}/${key}/state`, value)),
      ];
    },
  };
}

/** `enable` true restores the current from before the pause. A restart loses all. */
function wbec(params: Params): Model {
  const root = `wbec/lp/${param(params, "lp")}`;
  return {
    ...KEEPS,
    will: retained("wbec/connection", "offline"),
    rebooted: () => NO_ORDER,
    receive: (order, { topic, payload }) => {
      if (topic === `${root}/enable`) return accepted({ ...order, paused: payload !== "true" });
      const value = number(payload);
      if (topic !== `${root}/maxcurrent` || (value !== 0 && !isWithin(value, 6, 16))) return null;
      return accepted(
        value === 0 ? { ...order, paused: true } : { ...order, level: inAmperes(value), paused: false },
      );
    },
    messages: (view) => {
      const topics = {
        power: powerOf(view),
        energy: view.charger.energyWh / 1000,
        currL1: view.currents[0],
        currL2: view.currents[1],
        currL3: view.currents[2],
        status: !isPlugged(view) ? "A" : isCharging(view) || view.order.paused ? "C" : "B",
        plugState: isPlugged(view) ? 1 : 0,
        chargeState: isCharging(view) ? 1 : 0,
        enabled: view.order.paused ? "false" : "true",
        currLimit: view.order.paused ? 0 : view.level,
      };
      return [
        retained("wbec/connection", "online"),
        ...Object.entries(topics).map(([key, value]) => retained(`${root}/${key}`, value)),
      ];
    },
  };
}

const PULSATRIX_MS = minutes(5);

/** A limit expires. The charger's own limits hold then, and after a restart. */
function pulsatrix(params: Params): Model {
  const root = `${param(params, "prefix")}/${param(params, "clientId")}`;
  return {
    ...KEEPS,
    rebooted: () => NO_ORDER,
    age: (order, now) =>
      order.masterAt !== null && now >= after(order.masterAt, PULSATRIX_MS) ? NO_ORDER : order,
    receive: (order, { topic, payload, at }) => {
      const value = number(payload);
      switch (topic) {
        case `${root}/charging/amperageLimit`:
          return accepted({
            ...order,
            level: Number.isNaN(value) ? null : inAmperes(value),
            paused: value < 6,
            masterAt: at,
          });
        case `${root}/charging/powerLimit`:
          return Number.isNaN(value)
            ? null
            : accepted({
                ...order,
                level: { kind: "power", watts: watts(value) },
                paused: false,
                masterAt: at,
              });
        default:
          return null;
      }
    },
    messages: (view) => [
      live(`${root}/meter/fiscal`, {
        activePower: powerOf(view),
        energyImported: view.charger.energyWh / 1000,
        amperage: view.currents,
        voltage: view.voltages,
      }),
      live(`${root}/tx/status`, {
        state: !isPlugged(view) ? "IDLE" : isCharging(view) ? "CHARGING" : "SUSPENDED_EVSE",
        energyActiveImportRegister: view.charger.energyWh / 1000,
        meterStart: 0,
      }),
      live(`${root}/charging/status`, {
        signaledAmperage: view.order.paused ? 0 : view.level,
        vehicleStatus: !isPlugged(view) ? "A" : isCharging(view) ? "C" : "B",
        usedPhasesSession: "111",
      }),
    ],
  };
}

/** It repeats the accepted current when it is asked. */
function greencell(params: Params): Model {
  const root = `/greencell/evse/${param(params, "serial")}`;
  return {
    ...KEEPS,
    will: live(`${root}/status`, { state: "OFFLINE" }),
    receive: (order, { topic, payload, traits }) => {
      if (topic !== `${root}/cmd`) return null;
      const [command, current] = ["name", "current"].map((key) => memberOf(jsonIn(payload), key));
      const levelIn = ({ level }: LastOrder): number =>
        level?.kind === "current" ? level.amperes : traits.maxCurrent;
      switch (command) {
        case "START":
        case "STOP":
          return accepted({ ...order, paused: command === "STOP" });
        case "SET_CURRENT":
          return isWholeWithin(current, 6, 32) ? accepted({ ...order, level: inAmperes(current) }) : null;
        case "QUERY":
          return accepted(
            order,
            live(`${root}/device_state`, { level: "EXECUTE", hems_current: levelIn(order) }),
          );
        default:
          return null;
      }
    },
    messages: (view) => {
      const [l1, l2, l3] = view.currents.map((current) => current * 1000);
      return [
        live(`${root}/status`, {
          state: !isPlugged(view) ? "IDLE" : isCharging(view) ? "CHARGING" : "CONNECTED",
        }),
        live(`${root}/power`, { momentary: powerOf(view) }),
        live(`${root}/current`, { l1: l1 ?? 0, l2: l2 ?? 0, l3: l3 ?? 0 }),
      ];
    },
  };
}

/** A relay that comes back as it was. */
function tasmota(params: Params): Model {
  const topic = param(params, "topic");
  return {
    ...KEEPS,
    will: retained(`tele/${topic}/LWT`, "Offline"),
    receive: (order, received) =>
      received.topic === `cmnd/${topic}/POWER`
        ? accepted({ ...order, paused: received.payload === "OFF" })
        : null,
    messages: (view) => [
      retained(`tele/${topic}/LWT`, "Online"),
      live(`tele/${topic}/SENSOR`, {
        ENERGY: {
          Power: powerOf(view),
          Current: view.currents,
          Voltage: view.voltages,
          Total: view.charger.energyWh / 1000,
        },
      }),
    ],
  };
}

/** A relay that comes back as it was, without its timer. */
function shelly(params: Params): Model {
  const prefix = param(params, "prefix");
  const channel = param(params, "channel");
  return {
    ...KEEPS,
    will: retained(`${prefix}/online`, "false"),
    rebooted: (order) => ({ ...order, masterAt: null }),
    // `masterAt`: when its timer switches it off.
    age: (order, now) =>
      order.masterAt !== null && now >= order.masterAt ? { ...order, paused: true, masterAt: null } : order,
    receive: (order, { topic, payload, at }) => {
      const json = jsonIn(payload);
      if (topic !== `${prefix}/rpc` || memberOf(json, "method") !== "Switch.Set") return null;
      const timer = memberOf(json, "params", "toggle_after");
      const masterAt: Instant | null = typeof timer === "number" ? after(at, seconds(timer)) : null;
      return accepted({ ...order, paused: memberOf(json, "params", "on") !== true, masterAt });
    },
    messages: (view) => [
      retained(`${prefix}/online`, "true"),
      live(`${prefix}/status/switch:${channel}`, {
        output: !view.order.paused,
        apower: powerOf(view),
        current: view.currents[0],
        voltage: view.voltages[0],
        aenergy: { total: view.charger.energyWh },
      }),
    ],
  };
}

const DO_NOT_CHARGE = "2";

/** `chargeNow` and the action for other times are stored. */
function twcManager(params: Params): Model {
  const [prefix, twc] = [param(params, "prefix"), param(params, "twc")];
  return {
    ...KEEPS,
    fresh: { ...NO_ORDER, mode: "1" },
    // `masterAt`: when `chargeNow` ends.
    age: (order, now) =>
      order.masterAt !== null && now >= order.masterAt ? { ...order, level: null, masterAt: null } : order,
    desired: ({ level, mode }) => level ?? (mode === DO_NOT_CHARGE ? { kind: "pause" } : { kind: "release" }),
    receive: (order, { topic, payload, at }) => {
      if (!topic.startsWith(`${prefix}/control/`)) return null;
      switch (lastLevel(topic)) {
        case "chargeNow": {
          const [amps = 0, lasts = 0] = payload.split(",").map(Number);
          if (!isWithin(amps, 1, 80) || !isWithin(lasts, 1, Infinity)) return null;
          return accepted({ ...order, level: inAmperes(amps), masterAt: instant(at + lasts * 1000) });
        }
        case "chargeNowEnd":
          return accepted({ ...order, level: null, masterAt: null });
        case "nonScheduledAction":
          return ["1", "2", "3"].includes(payload) ? accepted({ ...order, mode: payload }) : null;
        default:
          return null;
      }
    },
    messages: (view) => {
      const topics = {
        state: isCharging(view) ? 1 : isPlugged(view) ? 4 : 0,
        ampsInUse: view.currents[0],
        chargerLoadInW: powerOf(view),
        lifetimekWh: view.charger.energyWh / 1000,
      };
      return Object.entries(topics).map(([key, value]) => live(`${prefix}/${twc}/${key}`, value));
    },
  };
}

/** It keeps its last mode and current. */
function e3dc(params: Params): Model {
  const prefix = param(params, "prefix");
  return {
    ...KEEPS,
    receive: (order, { topic, payload }) => {
      if (topic !== `${prefix}/set/wallbox/control`) return null;
      if (payload === "stop") return accepted({ ...order, paused: true });
      const [, mode = "", current = ""] = /^(mix|solar):(\d+)$/.exec(payload) ?? [];
      return isWithin(number(current), 6, 32)
        ? accepted({ ...order, mode, level: inAmperes(number(current)), paused: false })
        : null;
    },
    messages: (view) => {
      const topics = {
        "total/power": powerOf(view),
        plugged: isPlugged(view),
        charging: isCharging(view),
        max_current: view.level,
      };
      return Object.entries(topics).map(([key, value]) => live(`${prefix}/wallbox/${key}`, value));
    },
  };
}

/** By the name of the profile. */
export const OTHER_MODELS: ReadonlyMap<string, (params: Params) => Model> = new Map([
  ["openevse-claim", openEvseClaim],
  ["openwb-simpleapi", openWbSimple],
  ["openwb-1.9", openWb19],
  ["openwb-mqtt-chargepoint", openWbChargePoint],
  ["wallbox-mqtt-bridge", wallbox],
  ["wbec", wbec],
  ["pulsatrix", pulsatrix],
  ["greencell-habuden", greencell],
  ["tasmota-switch", tasmota],
  ["shelly-gen2-switch", shelly],
  ["twcmanager", twcManager],
  ["e3dc-rscp2mqtt", e3dc],
]);
