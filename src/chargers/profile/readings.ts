import type { Composed, Reading, SignalName, telemetry } from "./sections.ts";
import type * as z from "zod";

type Telemetry = z.output<typeof telemetry>;

/** A source of a signal. */
export interface Source {
  readonly signal: SignalName;
  readonly composed: Composed;
  /** Every reading that it uses. */
  readonly readings: readonly Reading[];
}

/** Signals with one value for each phase. */
export const isList = (signal: SignalName): signal is "currentsA" | "voltagesV" =>
  signal === "currentsA" || signal === "voltagesV";

const NUMERIC: ReadonlySet<SignalName> = new Set([
  "powerW",
  "energyWh",
  "sessionEnergyWh",
  "currentA",
  "currentsA",
  "voltagesV",
  "limitA",
  "requestedA",
  "socPct",
  "phases",
]);

/** Signals of one or several numbers. */
export const isNumeric = (signal: SignalName): boolean => NUMERIC.has(signal);

/** All sources of all signals. The sources of one signal are in order of preference. */
export const readingsOf = (telemetry: Telemetry): readonly Source[] =>
  Object.entries(telemetry).flatMap(([signal, ways]) =>
    [ways ?? []].flat().map((composed) => ({
      // The schema allows these keys only.
      signal: signal as SignalName,
      composed,
      readings: partsOf(composed),
    })),
  );

function partsOf(composed: Composed): readonly Reading[] {
  if ("each" in composed) return composed.each;
  return "minus" in composed ? composed.minus : [composed];
}

/** Every topic of a reading. */
export const topicsOf = ({ topic, index }: Reading): readonly string[] =>
  index === undefined ? [topic] : [topic, index.topic];
