import type { ControlState } from "../control/state.ts";
import type { AlarmFact } from "../domain/alarm.ts";
import type { Charger } from "../domain/charger.ts";
import { type CommandRecord, reallySent } from "../domain/command.ts";
import { type Desired, formatLevel } from "../domain/setpoint.ts";
import type { StoreStats } from "../domain/store.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import { between, type ChargerId, type Instant, minutes } from "../domain/units.ts";
import { inSteps, type ResumableTask } from "../platform/cooperative.ts";
import { formatBytes } from "../retention/rules.ts";

/** A release that is not confirmed for this time keeps a vehicle from charging. */
const RELEASE_WITHIN = minutes(3);
/** Time for which a vehicle may charge and draws nothing, before that is an alarm. */
const NO_POWER_FOR = minutes(3);
/** A charger draws something itself. */
const STANDBY_W = 100;
const STANDBY_A = 0.5;
/** Unreachable chargers, as a part of all, that point to a common cause. */
const MANY = 0.1;

/** Facts about chargers that no single message shows. */
export class ChargerFacts {
  readonly #state: ControlState;
  /** Since when a vehicle may charge at a charger and draws nothing. */
  readonly #noPowerSince = new Map<ChargerId, Instant>();

  constructor(state: ControlState) {
    this.#state = state;
  }

  /** `isReachable`: readings of the charger are fresh. */
  *facts(isReachable: (charger: ChargerId) => boolean, now: Instant): ResumableTask<readonly AlarmFact[]> {
    const found: AlarmFact[] = [];
    yield* inSteps(this.#state.commands.values(), (record) => {
      const fact = this.#factOf(record, isReachable, now);
      if (fact !== null) found.push(fact);
    });
    return found;
  }

  #factOf(
    record: CommandRecord,
    isReachable: (charger: ChargerId) => boolean,
    now: Instant,
  ): AlarmFact | null {
    const { charger } = record.command;
    const configured = this.#state.chargers.get(charger);
    if (configured === undefined) return null;
    const sent = reallySent(record) ?? record;
    if (sent.command.desired.kind === "release") {
      this.#noPowerSince.delete(charger);
      return unconfirmedRelease(sent, now);
    }
    if (!this.#drawsNothing(configured, record) || !isReachable(charger)) {
      this.#noPowerSince.delete(charger);
      return null;
    }
    const since = this.#noPowerSince.get(charger) ?? now;
    this.#noPowerSince.set(charger, since);
    return between(since, now) >= NO_POWER_FOR ? noPower(this.#state, record, since) : null;
  }

  #drawsNothing(charger: Charger, { command, progress }: CommandRecord): boolean {
    if (progress === "planned" || progress === "refused" || progress === "observed") return false;
    if (!isAboveMinimum(command.desired, charger)) return false;
    const { telemetry } = this.#state.presence.of(charger.id);
    return telemetry !== null && mayCharge(telemetry) && isZero(telemetry);
  }
}

function isAboveMinimum(desired: Desired, { minCurrent, minPower }: Charger): boolean {
  if (desired.kind === "current") return desired.amperes > (minCurrent ?? 0);
  return desired.kind === "power" && desired.watts > (minPower ?? 0);
}

/** True: a vehicle is plugged in that is neither full nor done. */
const mayCharge = ({ state, soc }: Telemetry): boolean =>
  (state === "connected" || state === "charging" || state === "paused") && (soc === undefined || soc < 100);

/** False: it draws something, or that is not known. */
function isZero({ powerW, currentsA }: Telemetry): boolean {
  if (powerW !== undefined) return Math.abs(powerW) < STANDBY_W;
  return currentsA !== undefined && currentsA.every((amperes) => Math.abs(amperes) < STANDBY_A);
}

function noPower(
  { occupancy, vehicles }: ControlState,
  { command }: CommandRecord,
  since: Instant,
): AlarmFact {
  const { charger, desired } = command;
  const occupant = occupancy.at(charger);
  const id = occupant.kind === "vehicle" ? occupant.vehicle : null;
  const vehicle = id === null ? "the vehicle" : (vehicles.get(id)?.name ?? id);
  return {
    kind: "noPower",
    subject: charger,
    severity: "warning",
    since,
    message: `${vehicle} at ${charger} draws no power although ${formatLevel(desired)} is allowed`,
    action:
      "check cable and vehicle; a vehicle that is full, or has a timer of its own, draws none: acknowledge it then",
  };
}

/** Null: the release is confirmed, is younger, or the charger confirms none. */
function unconfirmedRelease(record: CommandRecord, now: Instant): AlarmFact | null {
  const { command, progress, replaces, outAt } = record;
  if (progress !== "planned" && progress !== "notFollowed" && progress !== "refused") return null;
  if (replaces === null || replaces.kind === "release") return null;
  const since = outAt ?? command.decidedAt;
  if (between(command.decidedAt, now) < RELEASE_WITHIN) return null;
  const state = progress === "planned" ? "was not sent" : "is not confirmed";
  return {
    kind: "releaseUnconfirmed",
    subject: command.charger,
    severity: "critical",
    since,
    message: `the release of ${command.charger} ${state}: it may still be limited to ${formatLevel(replaces)}`,
    action: `"Send again" on the page of its vehicle, or setpointd release ${command.charger}; if that does not help, free it at the charger`,
  };
}

/** Null: enough room for what retention.bytes allows the stored data. */
export function diskSpace(
  { bytes, free }: Pick<StoreStats, "bytes" | "free">,
  allowed: number,
): AlarmFact | null {
  const needed = Math.max(allowed - bytes, allowed * LEAST_FREE);
  if (free === null || free >= needed) return null;
  return {
    kind: "diskSpace",
    subject: null,
    severity: free < allowed * LEAST_FREE ? "critical" : "warning",
    since: null,
    message: `the disk of the state folder has ${formatBytes(free)} left, and the stored data may take ${formatBytes(needed)} more`,
    action: "make room on that disk, or lower retention.bytes",
  };
}

/** Free space that is critical, as a part of retention.bytes. */
const LEAST_FREE = 0.05;

/** Null: at most a few chargers are unreachable, which have alarms of their own. */
export function manyUnreachable(unreachable: number, all: number): AlarmFact | null {
  if (unreachable < 2 || unreachable < all * MANY) return null;
  return {
    kind: "manyUnreachable",
    subject: null,
    severity: "critical",
    since: null,
    message: `${unreachable} of ${all} chargers are unreachable`,
    action: "look for a common cause: a switch, an access point, a fuse, or the broker",
  };
}
