import { ageOfMessage, type OwnClock, NO_CLOCK_KNOWN, waitingSince } from "../control/observe/presence.ts";
import type { ControlState } from "../control/state.ts";
import { type Command, type CommandRecord, leaseOf } from "../domain/command.ts";
import type { Measured, Reading, Stated } from "../domain/reading.ts";
import type { ChargerMessage, Telemetry } from "../domain/telemetry.ts";
import { type ChargerId, type Instant, type Millis, millis, type VehicleId } from "../domain/units.ts";
import { firstWhere } from "../platform/dueQueue.ts";
import { readingsOf, commandReading } from "./reading.ts";
import { Allowance, thin, isPowerFlowing, isLongAgo, TOGETHER, carryForward } from "./thinning.ts";

/** Message with the vehicle and the command at its arrival. */
interface CollectedMessage {
  readonly telemetry: Telemetry;
  readonly now: Instant;
  readonly vehicle: VehicleId | null;
  readonly command: Command | null;
}

const NOT_BEHIND = millis(0);
const LONG_AGO = millis(-Infinity);
/** Cap on undecided messages. A clock is judged after two seconds; more messages in that time are repeats. */
const MAX_UNDECIDED = 20;

interface ClockState {
  readonly at: number;
  /** The next start or end of what the vehicle on it was asked, as of then. */
  readonly turnsAt: number;
}

const UNSEEN: ClockState = { at: Infinity, turnsAt: Infinity };

/** Readings stored for one charger, and its allowance for more. */
interface ChargerReadingState {
  readonly newest: Map<Reading["kind"], Reading>;
  /** Last reported value of each kind, while it still holds. */
  readonly lastReported: Map<Reading["kind"], Measured | Stated>;
  /** Monotonic clock, as `flowedAt` and `meteredAt`. Null: no message yet. */
  lastMessageAt: Millis | null;
  /** Time of the last message while power flowed. */
  flowedAt: Millis;
  /** Time of the last register reading. */
  meteredAt: Millis;
  clock: OwnClock;
  /** Messages that may be late, or come from a clock that is behind. The next message decides. */
  undecided: readonly CollectedMessage[];
  /** Vehicle named by the last message, late ones included. Undefined: no message yet. */
  lastVehicle: VehicleId | null | undefined;
  /** Time of the last reading of each kind. */
  readonly seen: Map<Reading["kind"], ClockState>;
  /** Last reading of each kind, where it was not stored. */
  readonly passedOver: Map<Reading["kind"], Reading>;
  readonly allowance: Allowance;
}

const newReadingState = (): ChargerReadingState => ({
  newest: new Map(),
  lastReported: new Map(),
  lastMessageAt: null,
  flowedAt: LONG_AGO,
  meteredAt: LONG_AGO,
  clock: NO_CLOCK_KNOWN,
  undecided: [],
  lastVehicle: undefined,
  seen: new Map(),
  passedOver: new Map(),
  allowance: new Allowance(),
});

const isOut = ({ sentAt, progress }: CommandRecord): boolean => sentAt !== null && progress !== "observed";

export interface Collecting {
  /** Interval edges near now of the reports that are planned, in order. */
  readonly edges: () => readonly Instant[];
  readonly maxGap: Millis;
  /** True while the broker of this charger is connected. */
  readonly isLinked: (charger: ChargerId) => boolean;
  /** Monotonic clock, ms. */
  readonly monotonic: () => Millis;
}

/**
 * Turns telemetry and commands into the readings worth storing. On both sides of an interval edge the adjacent message
 * is stored whole. The register at an edge decides which interval gets the energy.
 */
export function collector(state: ControlState, { edges, maxGap, isLinked, monotonic }: Collecting) {
  const states = new Map<ChargerId, ChargerReadingState>();
  /** Three readings fit into the longest gap: one may be late, or lost with a commit. */
  const every = millis(maxGap / 3);

  const knownOf = (charger: ChargerId): ChargerReadingState => {
    const known = states.get(charger) ?? newReadingState();
    states.set(charger, known);
    return known;
  };

  const vehicleAt = (charger: ChargerId): VehicleId | null => {
    const occupant = state.occupancy.at(charger);
    // A vehicle that another charger claims is measured there.
    return occupant.kind === "vehicle" && occupant.source !== "kept" ? occupant.vehicle : null;
  };

  const nextTurn = (vehicle: VehicleId | null, at: Instant): number =>
    vehicle === null ? Infinity : state.agenda.nextOf(vehicle, at);

  /**
   * Chooses everything next to an edge, and elsewhere what is worth storing. It decides by kind: many chargers publish
   * each value separately.
   */
  const choose = (
    known: ChargerReadingState,
    readings: readonly Reading[],
    at: Instant,
    vehicle: VehicleId | null,
  ): readonly Reading[] => {
    const near = edges();
    const worth = new Set(thin(known.newest, readings));
    const turnsAt = nextTurn(vehicle, at);
    return readings.flatMap((reading): readonly Reading[] => {
      const { kind } = reading;
      const last = known.seen.get(kind) ?? UNSEEN;
      known.seen.set(kind, { at, turnsAt });
      const next = near[firstWhere(near, (edge) => edge > last.at)] ?? Infinity;
      const isAcross = last.at < at && Math.min(next, last.turnsAt) <= at;
      const before = known.passedOver.get(kind);
      known.passedOver.delete(kind);
      if (isAcross) return before === undefined ? [reading] : [before, reading];
      if (worth.has(reading)) return [reading];
      known.passedOver.set(kind, reading);
      return [];
    });
  };

  const keep = (
    known: ChargerReadingState,
    kept: readonly Reading[],
    now: Instant,
    at: Instant = now,
  ): readonly Reading[] => {
    if (kept.length === 0 || !known.allowance.takes(at, now)) return [];
    for (const reading of kept) known.newest.set(reading.kind, reading);
    return kept;
  };

  /** Marks the charger as present. Its last values hold, unless the silence was longer than `maxGap`. */
  const markPresent = (known: ChargerReadingState): void => {
    const tick = monotonic();
    if (known.lastMessageAt !== null && tick - known.lastMessageAt > maxGap) known.lastReported.clear();
    known.lastMessageAt = tick;
  };

  const repeatedReadings = (
    charger: ChargerId,
    known: ChargerReadingState,
    now: Instant,
  ): readonly Reading[] => {
    const hasFlowed = known.meteredAt + TOGETHER < known.flowedAt;
    return carryForward({ ...known, kept: known.newest, vehicle: vehicleAt(charger), hasFlowed }, now, every);
  };

  /** True while a command is believed to be in force at its charger. A release ends with its publish. */
  const isInForce = (record: CommandRecord, now: Instant): boolean => {
    const { charger: id, desired, until } = record.command;
    const charger = state.chargers.get(id);
    if (charger === undefined || !isOut(record) || desired.kind === "release") return false;
    if ((until !== null && until <= now) || state.barTo("judge", id) !== null) return false;
    const isReached = state.barTo("queue", id) === null && isLinked(id) && !state.silence.has(id);
    // A charger that is not refreshed goes to its own default when its lease expires.
    const lease = charger.refresh === null ? Infinity : leaseOf(state.settings.refresh);
    return isReached && now < (record.sentAt ?? now) + lease;
  };

  /** The setpoint in force, unless its last reading is recent. */
  const setpointAgain = (command: Command, now: Instant): readonly Reading[] => {
    const known = knownOf(command.charger);
    const last = known.newest.get("setpoint");
    const isRecent = last !== undefined && !isLongAgo(last.receivedAt, now, every);
    return isRecent ? [] : keep(known, [commandReading(command, now)], now);
  };

  const readingsIn = (
    charger: ChargerId,
    known: ChargerReadingState,
    { telemetry, now, vehicle, command }: CollectedMessage,
    behind: Millis,
    isLive = false,
  ) => {
    const readings = readingsOf({ charger, vehicle }, telemetry, now, command, behind);
    if (isPowerFlowing(known.lastReported)) known.flowedAt = monotonic();
    for (const reading of readings) {
      if (reading.kind === "setpoint" || reading.quality === "implausible") continue;
      // A late reading does not replace a newer one.
      const last = known.lastReported.get(reading.kind);
      if (!isLive && last !== undefined && reading.at < last.at) continue;
      known.lastReported.set(reading.kind, reading);
      if (reading.kind === "energy") known.meteredAt = monotonic();
    }
    const at = readings[0]?.at ?? now;
    const chosen = choose(known, readings, at, vehicle);
    const kept = keep(known, chosen, now, at);
    // More late messages may follow. Only live ones show which values still hold.
    return isLive ? [...kept, ...keep(known, repeatedReadings(charger, known, now), now)] : kept;
  };

  /**
   * A late message belongs to the vehicle that it names, or that the message before it named. Another vehicle may be
   * plugged in by now.
   */
  const withVehicleThen = (charger: ChargerId, known: ChargerReadingState, late: CollectedMessage) => {
    const named = state.occupancy.reportedVehicle(charger, late.telemetry);
    if (named !== undefined) known.lastVehicle = named;
    return known.lastVehicle === undefined ? late : { ...late, vehicle: known.lastVehicle };
  };

  const handleTelemetryOf = (
    charger: ChargerId,
    { telemetry, snapshot }: ChargerMessage & { readonly kind: "telemetry" },
    now: Instant,
  ): readonly Reading[] => {
    const known = knownOf(charger);
    markPresent(known);
    const record = state.commands.get(charger);
    const command = record !== undefined && isOut(record) ? record.command : null;
    const message = { telemetry, now, vehicle: vehicleAt(charger), command };
    const stamped = { at: telemetry.at, receivedAt: now };
    if (snapshot === true)
      return waitingSince(stamped) === null
        ? []
        : readingsIn(charger, known, withVehicleThen(charger, known, message), NOT_BEHIND);
    const { age, clock } = ageOfMessage(known.clock, stamped);
    known.clock = clock;
    const all = [...known.undecided, message];
    known.undecided = age === "unsure" ? all.slice(-MAX_UNDECIDED) : [];
    if (age === "unsure") return [];
    return all.flatMap((one) => {
      const isLive = age === "live" && one === message;
      if (isLive) known.lastVehicle = message.vehicle;
      const was = isLive ? message : withVehicleThen(charger, known, one);
      return readingsIn(charger, known, was, clock.behind, isLive);
    });
  };

  return {
    /** Readings of one message. Call it after the occupancy has been updated. */
    handleMessage(message: ChargerMessage, now: Instant): readonly Reading[] {
      const { charger } = message;
      if (!state.chargers.has(charger)) return [];
      const known = knownOf(charger);
      switch (message.kind) {
        case "telemetry":
          return handleTelemetryOf(charger, message, now);
        case "ack":
          markPresent(known);
          return keep(known, repeatedReadings(charger, known, now), now);
        case "online":
          if (message.online) markPresent(known);
          else known.lastReported.clear();
          return [];
        case "forgot":
          known.lastReported.clear();
          return [];
        case "unconfirmed":
        case "malformed":
          return [];
      }
    },

    /** Reading of a command that was sent, refreshes included. Some chargers never report their own setpoint. */
    handleCommand(command: Command, now: Instant): readonly Reading[] {
      const known = knownOf(command.charger);
      return keep(known, thin(known.newest, [commandReading(command, now)]), now);
    },

    /**
     * Repeats the last known readings of every online charger, and the active setpoint of every commanded one. Chargers
     * that report only changes would otherwise leave gaps in a report. Store the readings of a step before the next step.
     */
    *carryForward(now: Instant): Generator<readonly Reading[]> {
      for (const record of state.commands.values())
        yield isInForce(record, now) ? setpointAgain(record.command, now) : [];
      for (const [charger, known] of states) {
        const isThere =
          state.presenceOf(charger).online === true && isLinked(charger) && !state.silence.has(charger);
        yield isThere ? keep(known, repeatedReadings(charger, known, now), now) : [];
      }
    },

    /** Messages published while the broker was away are lost, so the last values no longer count. */
    brokerReturned(broker: string): void {
      for (const [charger, { lastReported }] of states)
        if (state.chargers.get(charger)?.broker === broker) lastReported.clear();
    },
  };
}
