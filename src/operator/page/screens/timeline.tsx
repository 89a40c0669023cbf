import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

import { get } from "../api.ts";
import type { PowerSample, PriceSeries, SitePower } from "../apiAnswers.ts";
import { clockTime, dayOf, kilowatts, nearTime, offsetName } from "../format.ts";
import { useLoaded } from "../effects.ts";
import { Title } from "../parts.tsx";
import { fusePower, limitedSteps, plannedPower } from "../power.ts";
import { departures, events, now, site, status, thisMinute, vehicles, zone } from "../store.ts";
import { t } from "../texts.ts";
import {
  type Bar,
  Departures,
  Events,
  Maintenance,
  Observing,
  type Scale,
  TimelineTable,
  WIDTH,
} from "./timelineTable.tsx";

const words = t.timeline;

const HOUR = 3_600_000;
const SPANS = [24, 48, 72] as const;
/** Hours that are shown. */
const hours = signal<number>(24);
/** Time before now that is shown: what just ended. */
const BEHIND = 2 * HOUR;
const PRICES_HEIGHT = 70;
const LIMITED_HEIGHT = 60;
const prices = signal<readonly PriceSeries[]>([]);

/** Steps of the whole minute, so that the drawing does not move with every second. */
function scaleNow(): Scale {
  const at = Math.floor(now.value / 60_000) * 60_000;
  const [from, until] = [at - BEHIND, at + hours.value * HOUR];
  const x = (moment: number): number => ((moment - from) / (until - from)) * WIDTH;
  return { from, until, x, least: (until - from) * leastShare() };
}

/** Least share of the drawing that a mark of 1.5 rem needs for itself, so that a finger or a pointer meets one alone. */
function leastShare(): number {
  const { clientWidth } = document.documentElement;
  const rem = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
  // The screen has at most 110 rem, and about 4 rem of it are beside the drawing.
  return 1.5 / (Math.min(110, clientWidth / rem) - 4);
}

const barsIn = (scale: Scale): readonly Bar[] =>
  events.all.value
    .filter(({ state, start, end }) => state !== "withdrawn" && start !== undefined && end !== undefined)
    .map((event) => ({
      event,
      from: Date.parse(event.start ?? ""),
      until: Date.parse(event.end ?? "") + (event.randomizeStartMs ?? 0),
    }))
    .filter(({ from, until }) => from < scale.until && until > scale.from)
    .toSorted((a, b) => a.from - b.from || a.event.id.localeCompare(b.event.id));

/** S5: what lies ahead. */
export function Timeline() {
  useEffect(() => {
    void get<readonly PriceSeries[]>("prices").then(
      (list) => (prices.value = list),
      () => undefined,
    );
  }, []);
  const scale = scaleNow();
  const bars = barsIn(scale);
  const leaving = departures.all.value
    .map((departure) => ({ departure, at: Date.parse(departure.at) }))
    .filter(({ at }) => at > scale.from && at < scale.until)
    .toSorted((a, b) => a.at - b.at);
  const shift = clockChange(scale);
  return (
    <>
      <Title>{words.title}</Title>
      <div class="chips" role="group" aria-label={words.ahead}>
        {SPANS.map((count) => (
          <button
            key={count}
            type="button"
            class="chip"
            aria-pressed={hours.value === count}
            onClick={() => (hours.value = count)}
          >
            {words.hours(count)}
          </button>
        ))}
      </div>
      {shift !== null && <p class="quiet">{words.change(nearTime(zone.value, shift, now.value))}</p>}
      {bars.length === 0 && leaving.length === 0 && <p class="quiet">{words.none}</p>}
      <div class="panel timeline">
        <Hours scale={scale} />
        <Observing scale={scale} />
        <Maintenance scale={scale} />
        <Events scale={scale} bars={bars} />
        <Departures scale={scale} leaving={leaving} />
        <Limited scale={scale} />
        <PlannedPower scale={scale} />
        {prices.value.map((series) => (
          <PriceLine key={series.region} series={series} scale={scale} />
        ))}
      </div>
      <TimelineTable scale={scale} bars={bars} leaving={leaving} />
    </>
  );
}

/** Moment at which the offset of the zone changes. Null: it does not. */
function clockChange({ from, until }: Scale): number | null {
  for (let at = from; at < until; at += HOUR)
    if (offsetName(zone.value, at) !== offsetName(zone.value, at + HOUR)) {
      const hour = Math.ceil(at / HOUR) * HOUR;
      return hour;
    }
  return null;
}

/** The hour; at midnight the day, without its month: the next mark is near. */
const markText = (at: number): string => {
  const hour = clockTime(zone.value, at);
  return hour === "00:00" ? dayOf(zone.value, at).split(" ").slice(0, 2).join(" ") : hour;
};

/** Hours of the site's zone. On a day with a clock change each hour also has its offset. */
function Hours({ scale }: { readonly scale: Scale }) {
  const step = hours.value <= 24 ? 2 : hours.value <= 48 ? 4 : 6;
  const marks: number[] = [];
  for (let at = Math.ceil(scale.from / HOUR) * HOUR; at < scale.until; at += HOUR) {
    const hour = Number(clockTime(zone.value, at).slice(0, 2));
    if (hour % step === 0) marks.push(at);
  }
  const isShifting = clockChange(scale) !== null;
  return (
    <div class="hours" aria-hidden="true">
      {marks.map((at) => (
        <span key={at} style={{ left: `${(scale.x(at) / WIDTH) * 100}%` }}>
          {markText(at)}
          {isShifting && <small>{offsetName(zone.value, at)}</small>}
        </span>
      ))}
    </div>
  );
}

const Lane = ({
  title,
  aside,
  height,
  scale,
  children,
}: {
  readonly title: string;
  readonly aside?: string;
  readonly height: number;
  readonly scale: Scale;
  readonly children: ComponentChildren;
}) => (
  <section class="timeline-lane" aria-label={title}>
    <h2>
      {title}
      {aside !== undefined && <small> {aside}</small>}
    </h2>
    <svg viewBox={`0 0 ${WIDTH} ${height}`} preserveAspectRatio="none" style={{ height: `${height}px` }}>
      {children}
      <line class="now-line" x1={scale.x(now.value)} x2={scale.x(now.value)} y1={0} y2={height} />
    </svg>
  </section>
);

/** Path of a step line over [from, until), with y growing downwards. */
function stepPath(points: readonly { readonly x: number; readonly y: number }[], floor: number): string {
  const [first] = points;
  if (first === undefined) return "";
  const steps = points.map(({ x, y }, index) => (index === 0 ? `M${x} ${floor}V${y}` : `H${x}V${y}`));
  return `${steps.join("")}H${WIDTH}V${floor}Z`;
}

function Limited({ scale }: { readonly scale: Scale }) {
  const steps = limitedSteps(vehicles.all.value);
  const most = Math.max(0, ...steps.map(({ count }) => count));
  if (most === 0) return null;
  const points = steps.map(({ at, count }) => ({
    x: Math.min(WIDTH, Math.max(0, scale.x(at))),
    y: LIMITED_HEIGHT - (count / most) * (LIMITED_HEIGHT - 6),
  }));
  return (
    <Lane title={words.limited} aside={words.limitedMost(most)} height={LIMITED_HEIGHT} scale={scale}>
      <path class="limited-steps" d={stepPath(points, LIMITED_HEIGHT)} />
    </Lane>
  );
}

/** Path of a level in the past. It breaks where nothing is on record. */
const pastPath = (past: readonly PowerSample[], value: "measuredW" | "atMostW", { x, y }: Draw): string =>
  past
    .map((sample, index) => {
      const watts = sample[value];
      if (watts === null) return "";
      return `${(past[index - 1]?.[value] ?? null) === null ? "M" : "L"}${x(Date.parse(sample.at))} ${y(watts)}`;
    })
    .join("");

interface Draw {
  readonly x: (at: number) => number;
  readonly y: (watts: number) => number;
}

/**
 * The most that the site can draw by the plan, below the main fuse. Before now: what was measured, beside the most that
 * the setpoints of then allowed.
 */
function PlannedPower({ scale }: { readonly scale: Scale }) {
  const range = [scale.from, scale.until].map((at) => new Date(Math.min(at, thisMinute.value)).toISOString());
  const past = useLoaded<SitePower>(`power?from=${range[0]}&until=${range[1]}`).value?.samples ?? [];
  const { fuseA = null, ratings = {} } = site.value ?? {};
  const { most, steps } = plannedPower(
    vehicles.all.value.flatMap(({ planned, charger }) =>
      charger === null ? [] : [{ planned, rating: ratings[charger] }],
    ),
  );
  if (most === 0) return null;
  const fuse = fuseA === null ? null : fusePower(fuseA, ratings);
  const ahead = steps.filter(({ at }) => at < scale.until);
  const top = Math.max(most, fuse ?? 0, ...past.map(({ measuredW }) => measuredW ?? 0));
  const y = (watts: number): number => LIMITED_HEIGHT - (watts / top) * (LIMITED_HEIGHT - 6);
  const draw = { x: scale.x, y };
  const last = past.findLast(({ measuredW }) => measuredW !== null)?.measuredW ?? null;
  const points = [{ at: now.value, watts: most }, ...ahead].map(({ at, watts }) => ({
    x: scale.x(Math.max(at, now.value)),
    y: y(watts),
  }));
  const least = Math.min(most, ...ahead.map(({ watts }) => watts));
  return (
    <Lane
      title={words.power}
      aside={[
        words.powerRange(kilowatts(least), kilowatts(most), fuse === null ? null : kilowatts(fuse)),
        ...(status.value?.mode === "observe" ? [words.dryRun] : []),
        ...(last === null ? [] : [words.powerPast(kilowatts(last))]),
      ].join("; ")}
      height={LIMITED_HEIGHT}
      scale={scale}
    >
      <path class="limited-steps" d={stepPath(points, LIMITED_HEIGHT)} />
      <path class="past-allowed" d={pastPath(past, "atMostW", draw)} />
      <path class="past-measured" d={pastPath(past, "measuredW", draw)} />
      {fuse !== null && <line class="fuse-line" x1={0} x2={WIDTH} y1={y(fuse)} y2={y(fuse)} />}
    </Lane>
  );
}

function PriceLine({ series, scale }: { readonly series: PriceSeries; readonly scale: Scale }) {
  const inView = series.prices.filter(
    ({ start, end }) => Date.parse(end) > scale.from && Date.parse(start) < scale.until,
  );
  const [sample] = inView;
  if (sample === undefined) return null;
  const values = inView.map(({ value }) => value);
  const [least, most] = [Math.min(0, ...values), Math.max(...values)];
  const y = (value: number): number =>
    PRICES_HEIGHT - 4 - ((value - least) / (most - least || 1)) * (PRICES_HEIGHT - 10);
  const line = inView
    .map(({ start, end, value }, index) => {
      const [left, right] = [scale.x(Date.parse(start)), Math.min(WIDTH, scale.x(Date.parse(end)))];
      return `${index === 0 ? "M" : "L"}${Math.max(0, left)} ${y(value)}H${right}`;
    })
    .join("");
  const { currency, perUnit } = sample;
  return (
    <Lane
      title={words.prices(series.region, `${currency}/${perUnit}`)}
      aside={`${Math.min(...values).toFixed(2)} – ${most.toFixed(2)}`}
      height={PRICES_HEIGHT}
      scale={scale}
    >
      <path class="price-line" d={line} />
    </Lane>
  );
}
