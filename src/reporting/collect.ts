import { ageOfMessage, type OwnClock, NO_CLOCK_KNOWN, waitingSince } from "../control/observe/presence.ts";
import type { ControlState } from "../control/state.ts";
import { type Command, type CommandRecord, leaseOf } from "../domain/command.ts";
import type { Reading } from "../domain/reading.ts";
import type { ChargerMessage, Telemetry } from "../domain/telemetry.ts";
import { type ChargerId, type Instant, type Millis, millis, type VehicleId } from "../domain/units.ts";
import { ChargerReadings } from "./chargerReadings.ts";
import { readingsOf, commandReading } from "./reading.ts";

/** Message with the vehicle and the command at its arrival. */
interface CollectedMessage {
  readonly telemetry: Telemetry;
  readonly now: Instant;
  readonly vehicle: VehicleId | null;
  readonly command: Command | null;
}

/** A message whose age is known. */
interface DatedMessage extends CollectedMessage {
  /** Lag of the charger's clock. */
  readonly behind: Millis;
  /** False: it is about the past. */
  readonly isLive: boolean;
}

const NOT_BEHIND = millis(0);
/** Cap on undecided messages. A clock is judged after two seconds; more messages in that time are repeats. */
const MAX_UNDECIDED = 20;
/** The empty list, which all chargers share. */
const NONE_UNDECIDED: readonly CollectedMessage[] = [];

/** Readings of one charger, and the known age of its messages. */
interface CollectedCharger {
  readonly id: ChargerId;
  readonly readings: ChargerReadings;
  clock: OwnClock;
  /** Messages that may be late, or come from a clock that is behind. The next message decides. */
  undecided: readonly CollectedMessage[];
  /** Vehicle named by the last message, late ones included. Undefined: no message yet. */
  lastVehicle: VehicleId | null | undefined;
}

const isOut = ({ sentAt, progress }: CommandRecord): boolean => sentAt !== null && progress !== "observed";

export interface CollectorPorts {
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
export class ReadingCollector {
  readonly #state: ControlState;
  readonly #ports: CollectorPorts;
  readonly #chargers = new Map<ChargerId, CollectedCharger>();
  /** Three readings fit into the longest gap: one may be late, or lost with a commit. */
  readonly #every: Millis;

  constructor(state: ControlState, ports: CollectorPorts) {
    this.#state = state;
    this.#ports = ports;
    this.#every = millis(ports.maxGap / 3);
  }

  /** Readings of one message. Call it after the occupancy has been updated. */
  handleMessage(message: ChargerMessage, now: Instant): readonly Reading[] {
    if (!this.#state.chargers.has(message.charger)) return [];
    if (message.kind === "telemetry") {
      const charger = this.#chargerOf(message.charger);
      this.#markPresent(charger);
      return this.#handleTelemetry(charger, message, now);
    }
    // A charger without readings has nothing to repeat or forget: thousands of idle ones only say that they are online.
    const charger = this.#chargers.get(message.charger);
    if (charger === undefined) return [];
    switch (message.kind) {
      case "ack":
        this.#markPresent(charger);
        return this.#repeat(charger, now);
      case "online":
        if (message.online) this.#markPresent(charger);
        else charger.readings.forgetReported();
        return [];
      case "forgot":
        charger.readings.forgetReported();
        return [];
      case "unconfirmed":
      case "malformed":
        return [];
    }
  }

  /** Reading of a command that was sent, refreshes included. Some chargers never report their own setpoint. */
  handleCommand(command: Command, now: Instant): readonly Reading[] {
    return this.#chargerOf(command.charger).readings.keepCommand(commandReading(command, now), now);
  }

  /**
   * Repeats the last known readings of every online charger, and the active setpoint of every commanded one. Chargers
   * that report only changes would otherwise leave gaps in a report. Store the readings of a step before the next step.
   */
  *carryForward(now: Instant): Generator<readonly Reading[]> {
    for (const record of this.#state.commands.values())
      yield this.#isInForce(record, now) ? this.#repeatCommand(record.command, now) : [];
    for (const charger of this.#chargers.values()) {
      const isOnline = this.#state.presence.of(charger.id).online === true;
      yield isOnline && this.#isReached(charger.id) ? this.#repeat(charger, now) : [];
    }
  }

  /** Messages published while the broker was away are lost, so the last values no longer count. */
  brokerReturned(broker: string): void {
    for (const { id, readings } of this.#chargers.values())
      if (this.#state.chargers.get(id)?.broker === broker) readings.forgetReported();
  }

  #chargerOf(id: ChargerId): CollectedCharger {
    const charger = this.#chargers.get(id) ?? {
      id,
      readings: new ChargerReadings(),
      clock: NO_CLOCK_KNOWN,
      undecided: NONE_UNDECIDED,
      lastVehicle: undefined,
    };
    this.#chargers.set(id, charger);
    return charger;
  }

  #markPresent({ readings }: CollectedCharger): void {
    readings.markPresent(this.#ports.monotonic(), this.#ports.maxGap);
  }

  #handleTelemetry(
    charger: CollectedCharger,
    { telemetry, snapshot }: ChargerMessage & { readonly kind: "telemetry" },
    now: Instant,
  ): readonly Reading[] {
    const record = this.#state.commands.get(charger.id);
    const command = record !== undefined && isOut(record) ? record.command : null;
    const message = { telemetry, now, vehicle: this.#vehicleAt(charger.id), command };
    const dated =
      snapshot === true ? this.#dateRetained(charger, message) : this.#dateMessages(charger, message);
    return dated.flatMap((one) => this.#readingsIn(charger, one));
  }

  /** A retained message is about the past. Its own time must be possible. */
  #dateRetained(charger: CollectedCharger, message: CollectedMessage): readonly DatedMessage[] {
    const { telemetry, now } = message;
    if (waitingSince({ at: telemetry.at, receivedAt: now }) === null) return [];
    return [{ ...this.#withVehicleThen(charger, message), behind: NOT_BEHIND, isLive: false }];
  }

  /** Messages whose age this one settles. Empty: the next message decides. */
  #dateMessages(charger: CollectedCharger, message: CollectedMessage): readonly DatedMessage[] {
    const { telemetry, now } = message;
    const { age, clock } = ageOfMessage(charger.clock, { at: telemetry.at, receivedAt: now });
    charger.clock = clock;
    const all = [...charger.undecided, message];
    charger.undecided = age === "unsure" ? all.slice(-MAX_UNDECIDED) : NONE_UNDECIDED;
    if (age === "unsure") return [];
    return all.map((one) => {
      const isLive = age === "live" && one === message;
      if (isLive) charger.lastVehicle = message.vehicle;
      const then = isLive ? message : this.#withVehicleThen(charger, one);
      return { ...then, behind: clock.behind, isLive };
    });
  }

  /**
   * A late message belongs to the vehicle that it names, or that the message before it named. Another vehicle may be
   * plugged in by now.
   */
  #withVehicleThen(charger: CollectedCharger, late: CollectedMessage): CollectedMessage {
    const named = this.#state.occupancy.reportedVehicle(charger.id, late.telemetry);
    if (named !== undefined) charger.lastVehicle = named;
    return charger.lastVehicle === undefined ? late : { ...late, vehicle: charger.lastVehicle };
  }

  #readingsIn(charger: CollectedCharger, message: DatedMessage): readonly Reading[] {
    const { telemetry, now, vehicle, command, behind, isLive } = message;
    const readings = readingsOf({ charger: charger.id, vehicle }, telemetry, now, command, behind);
    charger.readings.report(readings, this.#ports.monotonic(), isLive);
    const at = readings[0]?.at ?? now;
    const chosen = charger.readings.choose(
      readings,
      at,
      this.#ports.edges(),
      this.#nextBoundary(vehicle, at),
    );
    const kept = charger.readings.keep(chosen, now, at);
    // More late messages may follow. Only live ones show which values still hold.
    return isLive ? [...kept, ...this.#repeat(charger, now)] : kept;
  }

  #repeat({ id, readings }: CollectedCharger, now: Instant): readonly Reading[] {
    return readings.repeat(this.#vehicleAt(id), now, this.#every);
  }

  #repeatCommand(command: Command, now: Instant): readonly Reading[] {
    const { readings } = this.#chargerOf(command.charger);
    return readings.repeatCommand(commandReading(command, now), now, this.#every);
  }

  #vehicleAt(charger: ChargerId): VehicleId | null {
    const occupant = this.#state.occupancy.at(charger);
    // A vehicle that another charger claims is measured there.
    return occupant.kind === "vehicle" && occupant.source !== "kept" ? occupant.vehicle : null;
  }

  /** Next start or end of a dispatch of this vehicle. */
  #nextBoundary(vehicle: VehicleId | null, at: Instant): number {
    return vehicle === null ? Infinity : this.#state.agenda.nextOf(vehicle, at);
  }

  /** True while a command is believed to be in force at its charger. A release ends with its publish. */
  #isInForce(record: CommandRecord, now: Instant): boolean {
    const { charger: id, desired, until } = record.command;
    const charger = this.#state.chargers.get(id);
    if (charger === undefined || !isOut(record) || desired.kind === "release") return false;
    if ((until !== null && until <= now) || this.#state.barTo("judge", id) !== null) return false;
    // A charger that is not refreshed goes to its own default when its lease expires.
    const lease = charger.refresh === null ? Infinity : leaseOf(this.#state.settings.refresh);
    const isObeyed = now < (record.sentAt ?? now) + lease;
    return this.#state.barTo("queue", id) === null && this.#isReached(id) && isObeyed;
  }

  #isReached(charger: ChargerId): boolean {
    return this.#ports.isLinked(charger) && !this.#state.silence.has(charger);
  }
}
