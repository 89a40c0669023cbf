import { listens } from "../control/decide/evaluate.ts";
import { ageOfMessage, type OwnClock, NO_CLOCK_KNOWN, waitingSince } from "../control/observe/presence.ts";
import type { ControlState } from "../control/state.ts";
import { type Command, type CommandRecord, leaseOf } from "../domain/command.ts";
import type { Measured, Reading, Stated } from "../domain/reading.ts";
import type { ChargerMessage, Telemetry } from "../domain/telemetry.ts";
import { type ChargerId, type Instant, type Millis, millis, type VehicleId } from "../domain/units.ts";
import { firstWhere } from "../platform/dueQueue.ts";
import { readingsOf, commandReading } from "./reading.ts";
import { Allowance, thin, isPowerFlowing, isLongAgo, TOGETHER, carryForward } from "./thinning.ts";

/** So many chargers are upheld at a time, some 50 ms: of more, the rest have their turn the next time. */
const MOST_UPHELD = 5_000;

/** One message, and how things stood when it came. */
interface CollectedMessage {
  readonly telemetry: Telemetry;
  readonly now: Instant;
  readonly vehicle: VehicleId | null;
  readonly command: Command | null;
}

const NOT_BEHIND = millis(0);
const LONG_AGO = millis(-Infinity);
/** A clock is known after two seconds: who says more in that time says it again. */
const MOST_UNSURE = 20;

interface ClockState {
  readonly at: number;
  /** The next start or end of what the vehicle on it was asked, as of then. */
  readonly turnsAt: number;
}

const UNSEEN: ClockState = { at: Infinity, turnsAt: Infinity };

/** What was kept of a charger, and how much more may be. */
interface ChargerReadingState {
  readonly newest: Map<Reading["kind"], Reading>;
  /** What it said last, for as long as that stands. */
  readonly said: Map<Reading["kind"], Measured | Stated>;
  /** By the clock that never jumps, as the two that follow. */
  heardAt: Millis | null;
  /** When it was heard last while energy flowed. */
  flowedAt: Millis;
  /** When it told its register last. */
  meteredAt: Millis;
  clock: OwnClock;
  /** What may have been kept, or is by a clock that is behind: the next words tell. */
  unsure: readonly CollectedMessage[];
  /** Who was there by its last words, late ones included; undefined: it has said nothing yet. */
  who: VehicleId | null | undefined;
  /** When it last told of something. */
  readonly seen: Map<Reading["kind"], ClockState>;
  /** What it last told of something, where that was not kept. */
  readonly passedOver: Map<Reading["kind"], Reading>;
  readonly allowance: Allowance;
}

const freshShelf = (): ChargerReadingState => ({
  newest: new Map(),
  said: new Map(),
  heardAt: null,
  flowedAt: LONG_AGO,
  meteredAt: LONG_AGO,
  clock: NO_CLOCK_KNOWN,
  unsure: [],
  who: undefined,
  seen: new Map(),
  passedOver: new Map(),
  allowance: new Allowance(),
});

const isOut = ({ sentAt, progress }: CommandRecord): boolean => sentAt !== null && progress !== "observed";

export interface Collecting {
  /** Of the reports to come, the edges of intervals near now, in order. */
  readonly edges: () => readonly Instant[];
  readonly maxGap: Millis;
  /** Whether the broker of a charger is there. */
  readonly isLinked: (charger: ChargerId) => boolean;
  /** Milliseconds that never jump. */
  readonly monotonic: () => Millis;
}

/**
 * Turns what chargers say, and what they are told, into the readings worth keeping. On both sides of an edge the
 * message next to it is kept whole: a register is booked to one side of it or the other.
 */
export function collector(depot: ControlState, { edges, maxGap, isLinked, monotonic }: Collecting) {
  const shelves = new Map<ChargerId, ChargerReadingState>();
  /** One may come late, or be lost with a commit: three in the longest gap. */
  const every = millis(maxGap / 3);

  const shelfOf = (charger: ChargerId): ChargerReadingState => {
    const shelf = shelves.get(charger) ?? freshShelf();
    shelves.set(charger, shelf);
    return shelf;
  };

  const vehicleAt = (charger: ChargerId): VehicleId | null => {
    const occupant = depot.occupancy.at(charger);
    // A vehicle that another charger claims is measured there.
    return occupant.kind === "vehicle" && occupant.source !== "kept" ? occupant.vehicle : null;
  };

  const nextTurn = (vehicle: VehicleId | null, at: Instant): number =>
    vehicle === null ? Infinity : depot.agenda.nextOf(vehicle, at);

  /** Everything next to an edge, otherwise what is worth it: by kind, since many makes tell one thing at a time. */
  const choose = (
    shelf: ChargerReadingState,
    readings: readonly Reading[],
    at: Instant,
    vehicle: VehicleId | null,
  ): readonly Reading[] => {
    const near = edges();
    const worth = new Set(thin(shelf.newest, readings));
    const turnsAt = nextTurn(vehicle, at);
    return readings.flatMap((reading): readonly Reading[] => {
      const { kind } = reading;
      const last = shelf.seen.get(kind) ?? UNSEEN;
      shelf.seen.set(kind, { at, turnsAt });
      const next = near[firstWhere(near, (edge) => edge > last.at)] ?? Infinity;
      const isAcross = last.at < at && Math.min(next, last.turnsAt) <= at;
      const before = shelf.passedOver.get(kind);
      shelf.passedOver.delete(kind);
      if (isAcross) return before === undefined ? [reading] : [before, reading];
      if (worth.has(reading)) return [reading];
      shelf.passedOver.set(kind, reading);
      return [];
    });
  };

  const keep = (
    shelf: ChargerReadingState,
    kept: readonly Reading[],
    now: Instant,
    at: Instant = now,
  ): readonly Reading[] => {
    if (kept.length === 0 || !shelf.allowance.takes(at, now)) return [];
    for (const reading of kept) shelf.newest.set(reading.kind, reading);
    return kept;
  };

  /** It is there: what it said last still holds, unless it was silent for so long that nobody can say. */
  const heardNow = (shelf: ChargerReadingState): void => {
    const tick = monotonic();
    if (shelf.heardAt !== null && tick - shelf.heardAt > maxGap) shelf.said.clear();
    shelf.heardAt = tick;
  };

  const still = (charger: ChargerId, shelf: ChargerReadingState, now: Instant): readonly Reading[] => {
    const hasFlowed = shelf.meteredAt + TOGETHER < shelf.flowedAt;
    return carryForward({ ...shelf, kept: shelf.newest, vehicle: vehicleAt(charger), hasFlowed }, now, every);
  };

  /** Whether a charger stands under this still, as far as we know. A release is over with that it was said. */
  const stands = (record: CommandRecord, now: Instant): boolean => {
    const { charger: id, desired, until } = record.command;
    const charger = depot.chargers.get(id);
    if (charger === undefined || !isOut(record) || desired.kind === "release") return false;
    if ((until !== null && until <= now) || depot.locks.has(id)) return false;
    const isReached = listens(depot, id) && isLinked(id) && !depot.silence.has(id);
    // Who is not refreshed any more goes to its own default when its lease passes.
    const lease = charger.refresh === null ? Infinity : leaseOf(depot.settings.refresh);
    return isReached && now < (record.sentAt ?? now) + lease;
  };

  const readingsIn = (
    charger: ChargerId,
    shelf: ChargerReadingState,
    { telemetry, now, vehicle, command }: CollectedMessage,
    behind: Millis,
    isLive = false,
  ) => {
    const readings = readingsOf({ charger, vehicle }, telemetry, now, command, behind);
    if (isPowerFlowing(shelf.said)) shelf.flowedAt = monotonic();
    for (const reading of readings) {
      if (reading.kind === "setpoint" || reading.quality === "implausible") continue;
      // What comes late tells how things were: it stands only where nothing newer does.
      const last = shelf.said.get(reading.kind);
      if (!isLive && last !== undefined && reading.at < last.at) continue;
      shelf.said.set(reading.kind, reading);
      if (reading.kind === "energy") shelf.meteredAt = monotonic();
    }
    const at = readings[0]?.at ?? now;
    const chosen = choose(shelf, readings, at, vehicle);
    const kept = keep(shelf, chosen, now, at);
    // More that came late may follow: until then nobody knows what of it still holds.
    return isLive ? [...kept, ...keep(shelf, still(charger, shelf, now), now)] : kept;
  };

  /** Of what comes late only its own words, or those before it, tell who was there: somebody else may be there by now. */
  const asOfThen = (
    charger: ChargerId,
    shelf: ChargerReadingState,
    late: CollectedMessage,
  ): CollectedMessage => {
    const told = depot.occupancy.handleTelemetry(charger, late.telemetry);
    if (told !== undefined) shelf.who = told;
    return shelf.who === undefined ? late : { ...late, vehicle: shelf.who };
  };

  const heardTelemetry = (
    charger: ChargerId,
    { telemetry, snapshot }: ChargerMessage & { readonly kind: "telemetry" },
    now: Instant,
  ): readonly Reading[] => {
    const shelf = shelfOf(charger);
    heardNow(shelf);
    const record = depot.commands.get(charger);
    const command = record !== undefined && isOut(record) ? record.command : null;
    const taken = { telemetry, now, vehicle: vehicleAt(charger), command };
    const stamped = { at: telemetry.at, receivedAt: now };
    if (snapshot === true)
      return waitingSince(stamped) === null
        ? []
        : readingsIn(charger, shelf, asOfThen(charger, shelf, taken), NOT_BEHIND);
    const { age, clock } = ageOfMessage(shelf.clock, stamped);
    shelf.clock = clock;
    const all = [...shelf.unsure, taken];
    shelf.unsure = age === "unsure" ? all.slice(-MOST_UNSURE) : [];
    if (age === "unsure") return [];
    return all.flatMap((one) => {
      const isLive = age === "live" && one === taken;
      if (isLive) shelf.who = taken.vehicle;
      const was = isLive ? taken : asOfThen(charger, shelf, one);
      return readingsIn(charger, shelf, was, clock.behind, isLive);
    });
  };

  return {
    /** Of one message: to be called once it has changed who is where. */
    heard(message: ChargerMessage, now: Instant): readonly Reading[] {
      const { charger } = message;
      if (!depot.chargers.has(charger)) return [];
      const shelf = shelfOf(charger);
      switch (message.kind) {
        case "telemetry":
          return heardTelemetry(charger, message, now);
        case "ack":
          heardNow(shelf);
          return keep(shelf, still(charger, shelf, now), now);
        case "online":
          if (message.online) heardNow(shelf);
          else shelf.said.clear();
          return [];
        case "unconfirmed":
          return [];
        case "forgot":
          shelf.said.clear();
          return [];
        case "malformed":
          return [];
      }
    },

    /** Of one command that went out, its refreshes included: a charger may never say anything itself. */
    told(command: Command, now: Instant): readonly Reading[] {
      const shelf = shelfOf(command.charger);
      return keep(shelf, thin(shelf.newest, [commandReading(command, now)]), now);
    },

    /**
     * Of the chargers that are there by their own word, or their broker's, and not silent: what still holds. And of all
     * what they were told and stand under: who says nothing may not be told it again for long.
     */
    upheld(now: Instant): readonly Reading[] {
      const readings: (readonly Reading[])[] = [];
      for (const [charger, record] of depot.commands) {
        if (readings.length >= MOST_UPHELD) break;
        if (!stands(record, now)) continue;
        const shelf = shelfOf(charger);
        const last = shelf.newest.get("setpoint");
        if (last !== undefined && !isLongAgo(last.receivedAt, now, every)) continue;
        readings.push(keep(shelf, [commandReading(record.command, now)], now));
      }
      for (const [charger, shelf] of shelves) {
        if (readings.length >= MOST_UPHELD) break;
        const isThere = depot.presenceOf(charger).online === true && isLinked(charger);
        if (!isThere || depot.silence.has(charger)) continue;
        const again = keep(shelf, still(charger, shelf, now), now);
        if (again.length > 0) readings.push(again);
      }
      return readings.flat();
    },

    /** What the chargers of this broker said while it was away was not heard. */
    brokerReturned(broker: string): void {
      for (const [charger, { said }] of shelves)
        if (depot.chargers.get(charger)?.broker === broker) said.clear();
    },
  };
}
