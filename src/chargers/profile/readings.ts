import type { Composed, Reading, SignalName, telemetry } from "./sections.ts";
import type * as z from "zod";

type Telemetry = z.output<typeof telemetry>;

/** One way to learn one signal. */
export interface Source {
  readonly signal: SignalName;
  readonly composed: Composed;
  /** All that it is made of. */
  readonly readings: readonly Reading[];
}

/** Signals with a value for each phase. */
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

/** Signals that are a number, or numbers. */
export const isNumeric = (signal: SignalName): boolean => NUMERIC.has(signal);

/** All ways to learn all signals, those of a signal in order of preference. */
export const readingsOf = (told: Telemetry): readonly Source[] =>
  Object.entries(told).flatMap(([signal, ways]) =>
    [ways ?? []].flat().map((composed) => ({
      // Its keys are those of the schema.
      signal: signal as SignalName,
      composed,
      readings: partsOf(composed),
    })),
  );

function partsOf(composed: Composed): readonly Reading[] {
  if ("each" in composed) return composed.each;
  return "minus" in composed ? composed.minus : [composed];
}

/** Every topic that a reading looks at. */
export const topicsOf = ({ topic, index }: Reading): readonly string[] =>
  index === undefined ? [topic] : [topic, index.topic];
