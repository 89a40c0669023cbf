import type { Command } from "../control/command.ts";
import type { Desired } from "../control/setpoint.ts";
import { measuredAt, type Stamped } from "../site/ownClock.ts";
import type { ChargerState, Telemetry } from "../site/telemetry.ts";
import {
  type ChargerId,
  type EventId,
  type Instant,
  type Millis,
  millis,
  minutes,
  type VehicleId,
} from "../units.ts";

/**
 * `power` W; `energy` Wh, the charger's lifetime register; `current` A of the phase that carries most, as an event
 * asks for amperes per phase; `voltage` V, mean of the phases; `soc` percent; `limit` A, as the charger reports it.
 */
export type MeasuredKind = "power" | "energy" | "current" | "voltage" | "soc" | "limit";

interface Stamp {
  readonly charger: ChargerId;
  /** Who was on the charger; null: nobody, or not one of ours. */
  readonly vehicle: VehicleId | null;
  readonly at: Instant;
  readonly receivedAt: Instant;
  readonly source: "charger" | "vehicle" | "command";
  readonly quality: ReadingQuality;
}

/** `received`: the charger's clock is wrong, so `at` goes by the receipt. `implausible`: kept, never counted. */
type ReadingQuality = "good" | "received" | "implausible";

export interface Measured extends Stamp {
  readonly kind: MeasuredKind;
  readonly value: number;
}

/** How the charger said it was. */
export interface Stated extends Stamp {
  readonly kind: "state";
  readonly value: ChargerState;
}

/** What the charger was told by us, and until when that holds at most. */
export interface Told extends Stamp {
  readonly kind: "setpoint";
  readonly value: Desired;
  readonly until: Instant | null;
  readonly event: EventId | null;
}

/** One thing that was so at one moment. */
export type Reading = Measured | Stated | Told;

/** Ahead of the receipt by more than this, a charger's clock is wrong; less is taken for the receipt. */
const MOST_AHEAD = minutes(1);

interface Seat {
  readonly charger: ChargerId;
  readonly vehicle: VehicleId | null;
}

/**
 * What one message from a charger says of power, energy, current, voltage, charge, state and limit, and what the
 * charger was told to do when it came (null: nothing by us). `behind`: so far is its clock.
 */
export function readingsOf(
  { charger, vehicle }: Seat,
  telemetry: Telemetry,
  receivedAt: Instant,
  command: Command | null,
  behind: Millis = millis(0),
): readonly Reading[] {
  const { powerW, energyWh, currentsA = [], voltagesV = [], soc, limitA, state } = telemetry;
  const { at, quality } = timeOf({ at: telemetry.at, receivedAt }, behind);
  const stamp = { charger, vehicle, at, receivedAt };
  const live = voltagesV.filter((volts) => volts > 0);
  const values: readonly (readonly [MeasuredKind, number | undefined])[] = [
    ["power", powerW],
    ["energy", energyWh],
    ["current", currentsA.length === 0 ? undefined : Math.max(...currentsA)],
    ["voltage", live.length === 0 ? undefined : live.reduce((a, b) => a + b) / live.length],
    ["soc", soc],
    ["limit", limitA],
  ];
  const measured = values.flatMap(([kind, value]): Measured[] =>
    value === undefined || !Number.isFinite(value)
      ? []
      : [
          {
            ...stamp,
            kind,
            value,
            source: kind === "soc" ? "vehicle" : "charger",
            quality: isPossible(kind, value) ? quality : "implausible",
          },
        ],
  );
  const stated: readonly Stated[] =
    state === undefined ? [] : [{ ...stamp, kind: "state", value: state, source: "charger", quality }];
  const isInForce = command !== null && (command.until === null || receivedAt < command.until);
  return [...measured, ...stated, ...(isInForce ? [toldBy(command, receivedAt)] : [])];
}

/** What a charger was told, from `at` on: our own word, by our own clock. */
export const toldBy = ({ charger, vehicle, desired, until, event }: Command, at: Instant): Told => ({
  charger,
  vehicle,
  at,
  receivedAt: at,
  source: "command",
  quality: "good",
  kind: "setpoint",
  value: desired,
  until,
  event,
});

function timeOf(stamped: Stamped, behind: Millis): { at: Instant; quality: "good" | "received" } {
  const isWrong = behind > 0 || stamped.at > stamped.receivedAt + MOST_AHEAD;
  return { at: measuredAt({ behind }, stamped), quality: isWrong ? "received" : "good" };
}

/** Beyond this a number is none, whatever it measures. */
const MOST = 1e12;

function isPossible(kind: MeasuredKind, value: number): boolean {
  if (Math.abs(value) > MOST) return false;
  switch (kind) {
    case "soc":
      return value >= 0 && value <= 100;
    case "energy":
    case "voltage":
    case "limit":
      return value >= 0;
    case "power":
    case "current":
      return true;
  }
}
