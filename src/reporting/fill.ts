import type { Method, Wanted, Quantity } from "../domain/report.ts";
import type { Millis, Window } from "../domain/units.ts";
import type { ResumableTask } from "../platform/cooperative.ts";
import { type Cause, type DataQuality, type Finding, nothing, worstOf } from "./cause.ts";
import { estimatedEnergy, measuredEnergy } from "./energy.ts";
import { type Baseline, baselineOf, type Evidence, type FillContext, type Signal } from "./evidence.ts";
import { forecastIn, levelsIn, setpointIn, operatingState } from "./payload.ts";
import { gapsIn, last, mean, peak, type Step, within } from "./series.ts";

/** A value as a report gives it: kWh, kW, A, percent, or a word. */
export interface Filled extends Finding {
  /** Days in the baseline; null: none is part of it. */
  readonly days: number | null;
}

type Found = Finding & { readonly days?: number };
const NOT_HERE: Finding<never> = nothing("not available here");

/** Value of one vehicle in one window, by quantity and method of the descriptor. */
export function* fill(
  wanted: Wanted,
  window: Window,
  evidence: Evidence,
  context: FillContext,
  basis: "history" | "forecast",
): ResumableTask<Filled> {
  const isAhead = basis === "forecast" || wanted.method === "forecast";
  const found = yield* (isAhead ? ahead : behind)(wanted, window, evidence, context);
  return { days: null, ...found, causes: withOutages(found.causes, window, evidence) };
}

/** Forecast from the planned setpoints. */
function* ahead(
  wanted: Wanted,
  window: Window,
  evidence: Evidence,
  context: FillContext,
): ResumableTask<Found> {
  const { quantity, method, level } = wanted;
  const levels = (unit: Wanted["level"]): readonly Step<number>[] =>
    context.settings.forecastSource === "none" ? [] : levelsIn(evidence, window, unit, context);
  switch (quantity) {
    case "usage":
    case "demand":
      return forecastIn(levels("W"), quantity);
    case "setpoint":
      return setpointIn(levels(level), method, level);
    case "baseline":
      return yield* baseline(window, evidence, context);
    case "deltaUsage":
      return difference(forecastIn(levels("W"), "usage"), yield* baseline(window, evidence, context));
    case "reading":
    case "chargeLevel":
    case "operatingState":
    case "dataQuality":
    case null:
      return NOT_HERE;
  }
}

/** Past values: measured and commanded. */
function* behind(
  wanted: Wanted,
  window: Window,
  evidence: Evidence,
  context: FillContext,
): ResumableTask<Found> {
  const { quantity, method, level } = wanted;
  const { maxGap, percentScale } = context.settings;
  switch (quantity) {
    case "usage":
      return usage(method, window, evidence, maxGap);
    case "demand":
      return demand(method, window, evidence, maxGap);
    case "reading":
      return scaled(lastOf(evidence.register, window), 1000);
    case "setpoint":
      return setpointIn(levelsIn(evidence, window, level, context), method, level);
    case "operatingState":
      return operatingState(evidence, window);
    case "chargeLevel":
      return scaled(chargeLevel(method, window, evidence, maxGap), 100 / percentScale);
    case "baseline":
      return yield* baseline(window, evidence, context);
    case "deltaUsage":
      return difference(usage(method, window, evidence, maxGap), yield* baseline(window, evidence, context));
    case "dataQuality":
      return judged(usage(method, window, evidence, maxGap), demand(method, window, evidence, maxGap));
    case null:
      return NOT_HERE;
  }
}

/** kWh. A mean or a peak of energy over one window is that energy. */
function usage(method: Method, window: Window, { energy, power }: Evidence, maxGap: Millis): Finding<number> {
  const found =
    method === "estimated"
      ? estimatedEnergy(energy, power.bridged, window, maxGap)
      : measuredEnergy(energy, window, maxGap);
  return scaled(found, 1000);
}

/** kW: the highest, or the mean over the time that is covered. */
const demand = (method: Method, window: Window, { power }: Evidence, maxGap: Millis): Finding<number> =>
  scaled(overTime(power, window, method, method === "peak" ? peak : mean, maxGap), 1000);

function chargeLevel(method: Method, window: Window, { soc }: Evidence, maxGap: Millis): Finding<number> {
  switch (method) {
    case "mean":
      return overTime(soc, window, method, mean, maxGap);
    case "peak":
      return overTime(soc, window, method, peak, maxGap);
    case "estimated":
      return overTime(soc, window, method, last, maxGap);
    case "direct":
    case "summed":
    case "forecast":
      return lastOf(soc, window);
  }
}

/** The last sample is what it is, whatever is missing before it. */
function lastOf(signal: Signal<number>, window: Window): Finding<number> {
  const value = last(within(signal.steps, window));
  return value === null ? nothing("no readings") : { value, quality: "OK", causes: [] };
}

/** Over the time that is covered; an estimate covers the gaps with what was before them. */
function overTime(
  signal: Signal<number>,
  window: Window,
  method: Method,
  pick: (steps: readonly Step<number>[]) => number | null,
  maxGap: Millis,
): Finding<number> {
  const isEstimate = method === "estimated";
  const value = pick(within(isEstimate ? signal.bridged : signal.steps, window));
  if (value === null) return nothing("no readings");
  if (isEstimate) return { value, quality: "ESTIMATED", causes: [] };
  return gapsIn(signal.times, window, maxGap).length === 0
    ? { value, quality: "OK", causes: [] }
    : { value, quality: "MISSING", causes: ["gap in the readings"] };
}

/** Divided, not multiplied by a fraction: 70 % of 1 is 0.7, and not a little more. */
const scaled = <Found extends Finding<number>>(found: Found, by: number): Found =>
  found.value === null ? found : { ...found, value: found.value / by };

function* baseline(
  window: Window,
  evidence: Evidence,
  { calendar, settings }: FillContext,
): ResumableTask<Baseline> {
  return scaled(yield* baselineOf(evidence, window, calendar, settings), 1000);
}

function difference(used: Finding<number>, usual: Baseline): Found {
  const causes = [...used.causes, ...usual.causes];
  if (used.value === null || usual.value === null) return { ...nothing(...causes), days: usual.days };
  const quality = worstOf([used.quality, usual.quality]);
  return { value: used.value - usual.value, quality, causes, days: usual.days };
}

/** Quality of the energy value. Without a register: quality of the power. */
function judged(energy: Finding, power: Finding): Found {
  const { quality, causes } = energy.value === null ? power : energy;
  return { value: quality, quality, causes };
}

/** Outages come first. They explain the missing readings, so that cause is dropped. */
function withOutages(causes: readonly Cause[], window: Window, { outages }: Evidence): readonly Cause[] {
  const kept = outages.filter(({ from, until }) => from < window.until && until > window.from);
  const rest = kept.length > 0 ? causes.filter((cause) => cause !== "no readings") : causes;
  return [...new Set([...kept.map(({ cause }) => cause), ...rest])];
}

/** OpenADR's name for the one entry that stands for all (openadr3 2). */
export const AGGREGATED = "AGGREGATED_REPORT";

/** Value over several vehicles. `included`: vehicles in it, out of how many. */
export interface Aggregated extends Filled {
  readonly included: { readonly vehicles: number; readonly of: number };
}

/**
 * Adds up energy, power and setpoints, averages percentages and takes the worst quality. States and registers of
 * different meters are never added up. A missing vehicle makes the sum MISSING, not smaller. No added part is kept:
 * an event may name many thousand vehicles.
 */
export class Aggregation {
  readonly #quantity: Wanted["quantity"];
  readonly #causes = new Set<Cause>();
  #of = 0;
  #vehicles = 0;
  #sum = 0;
  #quality: DataQuality = "OK";
  #days: number | null = null;

  constructor({ quantity }: Pick<Wanted, "quantity">) {
    this.#quantity = quantity;
  }

  add({ value, quality, causes, days }: Filled): void {
    this.#of += 1;
    for (const cause of causes) this.#causes.add(cause);
    this.#quality = worstOf([this.#quality, quality]);
    if (days !== null) this.#days = Math.min(days, this.#days ?? days);
    if (typeof value !== "number") return;
    this.#vehicles += 1;
    this.#sum += value;
  }

  result(): Aggregated {
    const [quantity, quality, vehicles, of] = [this.#quantity, this.#quality, this.#vehicles, this.#of];
    const causes = [...this.#causes];
    const none = { ...nothing(...causes), days: null, included: { vehicles: 0, of } };
    if (quantity === "dataQuality")
      return { ...none, value: quality, quality, included: { vehicles: of, of } };
    const how = combinationOf(quantity);
    if (how === null)
      return {
        ...none,
        causes: [quantity === null ? "not available here" : "not meaningful as an aggregate"],
      };
    if (vehicles === 0) return none;
    const value = how === "mean" ? this.#sum / vehicles : this.#sum;
    return { value, quality, causes, days: this.#days, included: { vehicles, of } };
  }
}

function combinationOf(quantity: Exclude<Quantity, "dataQuality"> | null): "sum" | "mean" | null {
  switch (quantity) {
    case "usage":
    case "demand":
    case "setpoint":
    case "baseline":
    case "deltaUsage":
      return "sum";
    case "chargeLevel":
      return "mean";
    case "reading":
    case "operatingState":
    case null:
      return null;
  }
}
