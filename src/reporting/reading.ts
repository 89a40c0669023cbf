import { measuredAt, type Stamped } from "../control/observe/presence.ts";
import type { Command } from "../domain/command.ts";
import type { MeasuredKind, Measured, Stated, CommandReading, Reading } from "../domain/reading.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import {
  type ChargerId,
  type Instant,
  type Millis,
  millis,
  minutes,
  type VehicleId,
} from "../domain/units.ts";

/** Ahead of the receipt by more than this, a charger's clock is wrong; less is taken for the receipt. */
const MOST_AHEAD = minutes(1);

interface Occupant {
  readonly charger: ChargerId;
  readonly vehicle: VehicleId | null;
}

/**
 * Readings of one telemetry message, and the command in force at its arrival. Command null: none by us. `behind`: lag
 * of the charger's clock.
 */
export function readingsOf(
  { charger, vehicle }: Occupant,
  telemetry: Telemetry,
  receivedAt: Instant,
  command: Command | null,
  behind: Millis = millis(0),
): readonly Reading[] {
  const { powerW, energyWh, currentsA = [], voltagesV = [], soc, limitA, state } = telemetry;
  const { at, quality } = timeOf({ at: telemetry.at, receivedAt }, behind);
  const live = voltagesV.filter((volts) => volts > 0);
  const values: readonly (readonly [MeasuredKind, number | undefined])[] = [
    ["power", powerW],
    ["energy", energyWh],
    ["current", currentsA.length === 0 ? undefined : Math.max(...currentsA)],
    ["voltage", live.length === 0 ? undefined : live.reduce((a, b) => a + b) / live.length],
    ["soc", soc],
    ["limit", limitA],
  ];
  // Each member is named: an object that begins as a copy of another takes a third more, and chargers keep a dozen of these.
  const measured = values.flatMap(([kind, value]): Measured[] =>
    value === undefined || !Number.isFinite(value)
      ? []
      : [
          {
            charger,
            vehicle,
            at,
            receivedAt,
            kind,
            value,
            source: kind === "soc" ? "vehicle" : "charger",
            quality: isPossible(kind, value) ? quality : "implausible",
          },
        ],
  );
  const stated: readonly Stated[] =
    state === undefined
      ? []
      : [{ charger, vehicle, at, receivedAt, kind: "state", value: state, source: "charger", quality }];
  const isInForce = command !== null && (command.until === null || receivedAt < command.until);
  return [...measured, ...stated, ...(isInForce ? [commandReading(command, receivedAt)] : [])];
}

/** Reading of a command from `at` on, by our own clock. */
export const commandReading = (
  { charger, vehicle, desired, until, event }: Command,
  at: Instant,
): CommandReading => ({
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

/** Larger numbers are implausible for any quantity. */
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
