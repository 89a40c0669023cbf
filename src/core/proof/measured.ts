import { baselineOf } from "../reporting/baseline.ts";
import type { DataQuality, Finding } from "../reporting/cause.ts";
import { estimatedEnergy, measuredEnergy } from "../reporting/energy.ts";
import { type Evidence, evidenceOf, type FillContext, type Subject } from "../reporting/evidence.ts";
import { gapsIn, mean, peak, within } from "../reporting/series.ts";
import { earlier, type Instant, iso, type Window } from "../units.ts";
import { type Fact, fact, kilo } from "./fact.ts";

/** What the meters say of a vehicle's window up to now: energy, power, where readings are missing, and the baseline. */
export function measuredFacts(
  subject: Subject,
  window: Window,
  now: Instant,
  context: FillContext,
): readonly Fact[] {
  const { vehicle } = subject;
  const past: Window = { from: window.from, until: earlier(window.until, now) };
  if (past.from >= past.until) return [];
  const evidence = evidenceOf(subject, context);
  const { settings, calendar } = context;
  const span = { vehicle, from: iso(past.from), until: iso(past.until) };
  const energy = measuredEnergy(evidence.energy, past, settings.maxGap);
  const drawn = within(evidence.power.steps, past);
  // Of an event shorter than the pause between two readings the meter alone says nothing.
  const around = estimatedEnergy(evidence.energy, evidence.power.steps, past, settings.maxGap);
  const gaps = gapsIn(timesOf(evidence), past, settings.maxGap);
  const usual = baselineOf(evidence, past, calendar, settings);
  const figure = (what: string, value: number | null, unit: string, words: string): Fact =>
    fact("vehicle", what, { ...span, value: value === null ? null : kilo(value), unit, words });
  const covered = gaps.length === 0 ? "complete" : `with ${counted(gaps.length, "gap")}`;
  return [
    figure("energy", energy.value, "kWh", `by the charger's meter: ${judgement(energy)}`),
    ...(energy.quality === COMPLETE || around.value === null
      ? []
      : [
          figure(
            "estimated energy",
            around.value,
            "kWh",
            `by power and by meter readings around it: ${judgement(around)}`,
          ),
        ]),
    figure("mean power", mean(drawn), "kW", drawn.length === 0 ? "no readings" : `over time, ${covered}`),
    figure(
      "peak power",
      peak(drawn),
      "kW",
      drawn.length === 0 ? "no readings" : `of single readings, ${covered}`,
    ),
    ...gaps.map(({ from, until }) =>
      fact("vehicle", "gap", {
        vehicle,
        from: iso(from),
        until: iso(until),
        value: (until - from) / 1000,
        unit: "s",
        words: "no reading",
      }),
    ),
    figure(
      "baseline",
      usual.value,
      "kWh",
      usual.value === null
        ? "no comparable days"
        : `mean of the same hours of ${counted(usual.days, "comparable day")}`,
    ),
  ];
}

/** When anything was measured of it, in order. */
const timesOf = ({ power, register }: Evidence): readonly Instant[] =>
  [...new Set([...power.times, ...register.times])].toSorted((a, b) => a - b);

const COMPLETE: DataQuality = "OK";
const judgement = ({ quality, causes }: Finding): string =>
  quality === COMPLETE ? "complete" : [quality, causes.join(", ")].filter(Boolean).join(": ");

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;
