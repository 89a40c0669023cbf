import {
  after,
  earlier,
  type Instant,
  type Millis,
  millis,
  minutes,
  seconds,
  type Window,
  hours,
} from "../domain/units.ts";
import type { DescriptorParameters } from "./ranges.ts";
import type { ReportSettings } from "./settings.ts";

/** Report intervals of an event that has none of its own. */
export interface Grid {
  /** Number of intervals; infinite where reports go on after the event. */
  readonly count: number;
  readonly spanOf: (interval: number) => Window;
  /** Descriptor counts, fitted to this grid. */
  readonly parameters: DescriptorParameters;
  readonly flags: readonly string[];
}

/** The event's nominal window: the randomized start differs from vehicle to vehicle. */
export interface Nominal {
  readonly start: Instant;
  readonly duration: Millis;
}

/** An event longer than this has no real end: it holds until it is withdrawn. */
const ENDLESS = hours(10 * 365 * 24);
/** Interval where `frequency` is a time and is not set. */
const HOURLY = hours(1);
const RARER = "frequency is larger than the event: reported once, at its end";

/** Divides an event into the intervals of the mode. */
export function gridOf(parameters: DescriptorParameters, nominal: Nominal, settings: ReportSettings): Grid {
  switch (settings.mode) {
    case "event":
      return whole(parameters, nominal, []);
    case "auto":
      return auto(parameters, nominal, settings);
    case "implied":
      return implied(parameters, nominal, settings);
    case "fixed":
      return fixed(parameters, nominal, settings);
    case "frequencySeconds":
      return timed(parameters, nominal, seconds(1), settings);
    case "frequencyMinutes":
      return timed(parameters, nominal, minutes(1), settings);
  }
}

interface Steps {
  /** Length of an interval, ms. */
  readonly stride: number;
  readonly count: number;
  readonly flags: readonly string[];
  /** True: they go on after the end of the event. False: the last one is cut there. */
  readonly goesOn: boolean;
}

/** Intervals of equal length from the start of the event. */
function grid(
  parameters: DescriptorParameters,
  { start, duration }: Nominal,
  { stride, count, flags, goesOn }: Steps,
): Grid {
  const end = after(start, duration);
  const edge = (index: number): Instant => {
    const at = after(start, millis(Math.round(stride * index)));
    return goesOn ? at : earlier(at, end);
  };
  return { parameters, count, flags, spanOf: (index) => ({ from: edge(index), until: edge(index + 1) }) };
}

const whole = (parameters: DescriptorParameters, nominal: Nominal, flags: readonly string[]): Grid =>
  grid(parameters, nominal, { stride: nominal.duration, count: 1, flags, goesOn: false });

/** "All" of something without end is what there is in the event. */
const bounded = (parameters: DescriptorParameters, within: number): DescriptorParameters =>
  parameters.count === "all" ? { ...parameters, count: parameters.step ?? within } : parameters;

/** Equal parts, so many that the asked reports fill the event exactly. */
function auto(parameters: DescriptorParameters, nominal: Nominal, settings: ReportSettings): Grid {
  const { duration } = nominal;
  const { subInterval, minInterval, maxIntervals, continueAfterEvent } = settings;
  const isForever = parameters.repeat === "forever";
  if (isForever && duration > ENDLESS) return fixed(parameters, nominal, settings);
  const wanted = isForever ? Math.ceil(duration / subInterval) : needed(parameters);
  const count = Math.min(wanted, maxIntervals);
  const flags = count < wanted ? [`${wanted} intervals were asked for: made ${count}`] : [];
  if (count > 1 && duration / count < minInterval) {
    return whole(parameters, nominal, [
      ...flags,
      `${count} intervals of this event would be too short: made one`,
    ]);
  }
  if (isForever && continueAfterEvent) {
    const steps = { stride: duration / count, count: Infinity, flags, goesOn: true };
    return grid(bounded(parameters, count), nominal, steps);
  }
  if (isRarer(parameters, count)) return whole(parameters, nominal, [...flags, RARER]);
  return grid(parameters, nominal, { stride: duration / count, count, flags, goesOn: false });
}

/** Intervals that it takes for all reports that are asked for. */
function needed({ start, count, step, repeat, historical }: DescriptorParameters): number {
  if (repeat === "forever") return Infinity;
  const held = count === "all" ? (step ?? 1) : count;
  const every = step ?? held;
  if (!historical) return (start === "last" ? 0 : start) + held + (repeat - 1) * every;
  if (start === "last") return every * repeat;
  return repeat === 1 ? start + held : Math.max(start, held - 1) + (repeat - 1) * every + 1;
}

const isRarer = ({ historical, start, step }: DescriptorParameters, count: number): boolean =>
  historical && start === "last" && step !== null && step > count;

/** Intervals as long as the event: the first one is the event itself, the rest come after it. */
function implied(parameters: DescriptorParameters, nominal: Nominal, settings: ReportSettings): Grid {
  const goesOn = parameters.repeat !== "forever" || settings.continueAfterEvent;
  const count = goesOn ? needed(parameters) : 1;
  if (count > 1 && nominal.duration < settings.minInterval) {
    return whole(parameters, nominal, [
      "the event is too short to be reported again and again: reported once",
    ]);
  }
  if (isRarer(parameters, count)) return whole(parameters, nominal, [RARER]);
  const steps = { stride: nominal.duration, count, flags: [], goesOn: true };
  return grid(count === Infinity ? bounded(parameters, 1) : parameters, nominal, steps);
}

/** Steps of `subInterval`, or of a multiple where one report could not hold them all. */
function fixed(parameters: DescriptorParameters, nominal: Nominal, settings: ReportSettings): Grid {
  const { subInterval, maxIntervals } = settings;
  const isForever = parameters.repeat === "forever";
  const steps = Math.ceil(nominal.duration / subInterval);
  const isEndless = nominal.duration > ENDLESS;
  if (isEndless && !isForever) return whole(parameters, nominal, ["the event has no real end"]);
  const factor = isEndless ? 1 : Math.ceil(steps / maxIntervals);
  const count = Math.ceil(steps / factor);
  const flags = factor > 1 ? [`${steps} intervals are too many: made ${count}`] : [];
  const goesOn = isForever && settings.continueAfterEvent;
  if (!goesOn && isRarer(parameters, count)) return whole(parameters, nominal, [...flags, RARER]);
  const asked = isEndless || goesOn ? bounded(parameters, isEndless ? 1 : count) : parameters;
  return grid(asked, nominal, {
    stride: subInterval * factor,
    count: goesOn ? Infinity : count,
    flags,
    goesOn,
  });
}

/**
 * `frequency` as a time: a report on each such stretch while the event lasts, whatever the other counts are.
 * A forecast ignores it.
 */
function timed(
  parameters: DescriptorParameters,
  nominal: Nominal,
  unit: Millis,
  settings: ReportSettings,
): Grid {
  if (!parameters.historical) return auto(parameters, nominal, settings);
  const { minInterval, continueAfterEvent } = settings;
  const wanted = parameters.step === null ? HOURLY : parameters.step * unit;
  const stride = Math.max(wanted, minInterval);
  const flags = stride > wanted ? [`every ${wanted / 1000} s is too often: every ${stride / 1000} s`] : [];
  const count = continueAfterEvent ? Infinity : Math.ceil(nominal.duration / stride);
  const each: DescriptorParameters = {
    start: "last",
    count: 1,
    step: 1,
    repeat: "forever",
    historical: true,
  };
  return grid(each, nominal, { stride, count, flags, goesOn: continueAfterEvent });
}
