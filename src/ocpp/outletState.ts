import type { ChargerState, Telemetry } from "../domain/telemetry.ts";
import { type Instant, instant, type Millis, millis, minutes } from "../domain/units.ts";
import type { Identity } from "../domain/vehicle.ts";
import type { Composite, Meaning } from "./wire/dialect.ts";
import { amperesOf, type Outlet } from "./wire/profiles.ts";
import {
  atNewLevel,
  type Readings,
  type Register,
  UNKNOWN_REGISTER,
  withMeanPower,
} from "./wire/meterValues.ts";

/** State of an outlet, from the messages of its station. Pure. */
export interface OutletState {
  readonly state: ChargerState | null;
  /** Null: no fault. */
  readonly fault: string | null;
  /** Last status (1.6), where it has a time. Null: none. */
  readonly reported: { readonly state: ChargerState; readonly at: Instant } | null;
  /** State before the whole station became faulty or unavailable. Null: it is neither. */
  readonly beforeOutage: ChargerState | null;
  /** Null: no transaction, or one without a token. "unknown": the session is older than our connection. */
  readonly identity: Identity | "unknown" | null;
  readonly transaction: string | null;
  /** The last transaction that was started and not stopped. Kept when a status reports that no vehicle is there. */
  readonly started: Started | null;
  /** The last transaction that was stopped. Its late meter values are of no present one. */
  readonly ended: string | null;
  /** Connectors of an EVSE that are known (2.0.1). True: occupied. */
  readonly plugs: ReadonlyMap<number, boolean>;
  /** Register at the start of the transaction, Wh. Null: unknown. */
  readonly startedWh: number | null;
  readonly readings: Readings;
  /** Time of each reading of a message with meter values. */
  readonly times: Readonly<Partial<Record<keyof Readings, Instant>>>;
  readonly register: Register;
  /** Time of the newest readings. Null: none yet. */
  readonly readAt: Instant | null;
  /** Limit that the charger reported to apply, A. Null: not reported. */
  readonly compositeA: number | null;
  /** "": not reported. */
  readonly firmware: string;
  /** Last BootNotification. Null: none since our start. */
  readonly bootedAt: Instant | null;
}

interface Started {
  readonly transaction: string;
  readonly identity: Identity | null;
  readonly startedWh: number | null;
}

export const NOTHING_KNOWN: OutletState = {
  state: null,
  fault: null,
  reported: null,
  beforeOutage: null,
  identity: "unknown",
  transaction: null,
  started: null,
  ended: null,
  plugs: new Map(),
  startedWh: null,
  readings: {},
  times: {},
  register: UNKNOWN_REGISTER,
  readAt: null,
  compositeA: null,
  firmware: "",
  bootedAt: null,
};

/** Oldest time that a buffered message can have. Anything else is a wrong clock. */
const OLDEST = minutes(7 * 24 * 60);
const TOLERANCE = minutes(1);

/** Time of a message by our clock. `isWrong`: the station's clock cannot be used. */
export function believedTime(
  at: Instant | null,
  now: Instant,
): { readonly at: Instant; readonly isWrong: boolean } {
  if (at === null) return { at: now, isWrong: false };
  const isWrong = at > now + TOLERANCE || at < now - OLDEST;
  return { at: isWrong ? now : instant(Math.min(at, now)), isWrong };
}

/** Clocks that show another zone's time are ahead by up to 14 h. Beyond a day a clock is of no use. */
const FARTHEST_AHEAD = minutes(24 * 60);

/** Lead of a station's clock over ours, by the time in a message that was just sent. */
export function aheadOf(at: Instant, now: Instant): Millis {
  const ahead = at - now;
  return millis(ahead > 0 && ahead <= FARTHEST_AHEAD ? ahead : 0);
}

/** True: these readings are older than those that are known. */
export const isOutOfOrder = ({ readAt }: OutletState, at: Instant): boolean => readAt !== null && at < readAt;

/** The state after a message. `at`: its believed time. */
export function withMeaning(before: OutletState, meaning: Meaning, at: Instant): OutletState {
  switch (meaning.kind) {
    case "boot":
      // Some makes go on with their transaction after a restart.
      return { ...NOTHING_KNOWN, started: before.started, firmware: meaning.firmware, bootedAt: at };
    case "status": {
      const { plug, state, at: claimed } = meaning;
      return {
        ...withStatus(before, meaning),
        reported: plug !== null || claimed === null ? null : { state, at },
      };
    }
    case "charging":
      // An event that was kept comes after the end of its session.
      if (meaning.transaction === before.ended) return before;
      return meaning.state === "unplugged"
        ? withoutVehicle(before)
        : withState(withVehicleBack(before), meaning.state);
    case "occupied": {
      const next = { ...before, plugs: new Map(before.plugs).set(meaning.plug, true) };
      return isFree(before.state) ? withState(withVehicleBack(next), "connected") : next;
    }
    case "identified": {
      const { transaction, identity } = meaning;
      const startedWh = before.started?.transaction === transaction ? before.started.startedWh : null;
      const next = { ...before, started: { transaction, identity, startedWh } };
      return before.state === "unplugged" ? next : { ...next, identity };
    }
    case "started":
      return {
        ...before,
        // The end of the session before may have come late.
        state: isFree(before.state) || before.state === "finished" ? "connected" : before.state,
        beforeOutage: null,
        identity: meaning.identity,
        transaction: meaning.transaction,
        started: {
          transaction: meaning.transaction,
          identity: meaning.identity,
          startedWh: meaning.meterWh,
        },
        ended: null,
        startedWh: meaning.meterWh,
        ...(meaning.meterWh === null
          ? {}
          : { readings: { ...before.readings, energyWh: meaning.meterWh }, readAt: at }),
      };
    case "stopped": {
      // A charger that was cut off reports old sessions after its present state.
      const later = before.reported !== null && at < before.reported.at ? before.reported.state : null;
      const next = withoutFlow({
        ...before,
        state:
          later ?? (before.state === "charging" || before.state === "paused" ? "finished" : before.state),
        transaction: null,
        started: null,
        ended: meaning.transaction,
        readings:
          meaning.meterWh === null ? before.readings : { ...before.readings, energyWh: meaning.meterWh },
        readAt: meaning.meterWh === null ? before.readAt : at,
      });
      const isGone = later === "unplugged" || (before.plugs.size > 0 && !isOccupied(before.plugs));
      return isGone ? withoutVehicle(next) : next;
    }
    case "meter":
      return withReadings(before, meaning.readings, at);
  }
}

/** The state after a status of the whole station. A fault ends with the station's next status, or the outlet's own. */
export function withStationStatus(
  before: OutletState,
  { state, fault }: Pick<Extract<Meaning, { kind: "status" }>, "state" | "fault">,
): OutletState {
  const beforeOutage = before.beforeOutage ?? before.state;
  if (state === "error" || state === "unknown")
    return { ...withState({ ...before, fault }, state), beforeOutage };
  return before.beforeOutage === null
    ? before
    : { ...before, fault, state: beforeOutage, beforeOutage: null };
}

/**
 * The state when meter values name a transaction that it lacks. A status from before the start may arrive after it: then
 * the vehicle is the one of the start. Or another system started it: then the vehicle is unknown.
 */
export function withTransaction(before: OutletState, transaction: string): OutletState {
  const { started, ended } = before;
  if (transaction === ended) return before;
  const state = isFree(before.state) ? "connected" : before.state;
  return { ...before, ...(started?.transaction === transaction ? started : { transaction }), state };
}

/** True: the station has sent nothing about this outlet. */
export const isSilent = ({ state, readAt }: OutletState): boolean => state === null && readAt === null;

const isFree = (state: ChargerState | null): boolean =>
  state === null || state === "unplugged" || state === "error";

const isOccupied = (plugs: OutletState["plugs"]): boolean => plugs.values().some(Boolean);

/** The state after the status of an outlet, or of one connector of an EVSE. There a transaction ends by its own message. */
function withStatus(
  before: OutletState,
  { plug, state, fault }: Pick<Extract<Meaning, { kind: "status" }>, "plug" | "state" | "fault">,
): OutletState {
  if (plug === null || state !== "unplugged") return withState({ ...before, fault }, state);
  const next = { ...before, fault, plugs: new Map(before.plugs).set(plug, false) };
  const isOfVehicle = before.plugs.get(plug) === true || before.transaction === null;
  if (isOfVehicle && !isOccupied(next.plugs)) return withoutVehicle(next);
  const known = before.beforeOutage ?? before.state;
  return withState(next, known === null || known === "error" || known === "unknown" ? "connected" : known);
}

/** The vehicle is gone. Its transaction goes on until its own end (2.0.1). */
const withoutVehicle = (before: OutletState): OutletState =>
  withoutFlow({ ...before, state: "unplugged", beforeOutage: null, identity: null });

/** The vehicle of the transaction is there, or there again: its token may have come before it. */
const withVehicleBack = (before: OutletState): OutletState =>
  before.state === "unplugged" && before.started !== null && before.started.transaction === before.transaction
    ? { ...before, identity: before.started.identity }
    : before;

/** States in which no energy flows. Readings of a flow from before do not count any more. */
const WITHOUT_FLOW: ReadonlySet<ChargerState> = new Set(["unplugged", "finished", "paused", "error"]);

function withState(before: OutletState, state: ChargerState): OutletState {
  const next = { ...before, state, beforeOutage: null };
  const calm = WITHOUT_FLOW.has(state) && before.state !== state ? withoutFlow(next) : next;
  return state === "unplugged" ? { ...calm, identity: null, transaction: null, startedWh: null } : calm;
}

function withoutFlow(state: OutletState): OutletState {
  const { powerW: _, currentsA: __, soc: ___, ...kept } = state.readings;
  return { ...state, readings: kept, register: { ...state.register, begin: null } };
}

function withReadings(before: OutletState, measured: Readings, at: Instant): OutletState {
  const { register, readings } = withMeanPower(before.register, measured, at);
  const times = Object.fromEntries(Object.keys(readings).map((name) => [name, at]));
  return {
    ...before,
    readings: { ...before.readings, ...readings },
    times: { ...before.times, ...times },
    register,
    readAt: at,
  };
}

/** The state after a change of the level. A power by the register is a mean of the time before. */
export function withNewLevel(before: OutletState, now: Instant): OutletState {
  const { powerW: _, ...others } = before.readings;
  const readings = before.register.isNeedless ? before.readings : others;
  return { ...before, readings, register: atNewLevel(before.register, now) };
}

/** Interval of meter values beyond which a reading is no longer one of now. */
const INTERVALS = 3;
const LEAST_AGE = minutes(1);

/** Telemetry at a moment: the present state, and the readings that are not too old. */
export function telemetryOf(state: OutletState, outlet: Outlet, at: Instant, meterEvery: number): Telemetry {
  const { readings, times, identity, startedWh, compositeA, firmware, bootedAt } = state;
  const oldest = at - Math.max(millis(meterEvery * INTERVALS), LEAST_AGE);
  // A charger may stop reporting one of them, and go on with the others.
  const fresh = <K extends keyof Readings>(name: K): Readings[K] | undefined =>
    (times[name] ?? 0) >= oldest ? readings[name] : undefined;
  const { energyWh } = readings;
  const [powerW, currentsA, voltagesV] = [fresh("powerW"), fresh("currentsA"), fresh("voltagesV")];
  const [soc, limitA, limitW] = [fresh("soc"), fresh("limitA"), fresh("limitW")];
  const offered =
    limitA ?? (limitW === undefined ? undefined : amperesOf({ value: limitW, unit: "W" }, outlet));
  const limit = offered ?? compositeA ?? undefined;
  return {
    at,
    ...(state.state === null ? {} : { state: state.state }),
    // Without this member the daemon keeps the vehicle that it knows.
    ...(state.state === null || identity === "unknown" ? {} : { identity }),
    ...(powerW !== undefined ? { powerW } : {}),
    ...(currentsA !== undefined ? { currentsA } : {}),
    ...(voltagesV !== undefined ? { voltagesV } : {}),
    ...(energyWh === undefined ? {} : { energyWh }),
    ...(energyWh === undefined || startedWh === null || state.transaction === null
      ? {}
      : { sessionWh: Math.max(0, energyWh - startedWh) }),
    ...(soc !== undefined ? { soc } : {}),
    ...(limit === undefined ? {} : { limitA: limit }),
    ...(firmware === "" ? {} : { firmware }),
    ...(bootedAt === null ? {} : { started: { kind: "time", at: bootedAt } }),
  };
}

export const withComposite = (state: OutletState, composite: Composite | null, outlet: Outlet) => ({
  ...state,
  compositeA: composite === null ? null : amperesOf(composite, outlet),
});
