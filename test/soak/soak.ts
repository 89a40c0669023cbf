/**
 * `npm run soak [-- --minutes N --chargers N --seed N]`: the real daemon for an hour, sampled every 15 s.
 * `npm run soak -- --virtual [--days N]`: thirty days of ten chargers in virtual time, with retention on.
 * `npm run soak -- --restarts [--days N]`: one charger with an event each ten minutes, all kept, and a restart each day.
 * `npm run soak -- --day [--hours N]`: commits a second of an ordinary day of 200 chargers, in virtual time.
 * One JSON line per figure at the end, progress on stderr. Ends with 1 where a figure is not flat, or over a commit a
 * second. Needs Linux (/proc) and mosquitto.
 */
import { randomInt } from "node:crypto";
import { parseArgs } from "node:util";

import { HOUR } from "../simulate/plan.ts";
import { commandLine, refuseOptions } from "../support/commandLine.ts";
import { aliveInHeap } from "./aliveInHeap.ts";
import { dayFigure } from "./dayFigure.ts";
import { realSoak } from "./realSoak.ts";
import { FIGURE_NAMES, FIGURES, type Sample } from "./sample.ts";
import { type Point, type Rule, verdictOn } from "./verdict.ts";
import { VirtualDepot } from "./virtualDepot.ts";
import { RULES, type Stand, virtualSoak } from "./virtualSoak.ts";

const USAGE =
  "usage: npm run soak [-- [--virtual | --restarts | --day] --minutes N --days N --hours N --chargers N --seed N]";
const { values } = commandLine(USAGE, () =>
  parseArgs({
    options: {
      virtual: { type: "boolean", default: false },
      day: { type: "boolean", default: false },
      restarts: { type: "boolean", default: false },
      minutes: { type: "string", default: "60" },
      days: { type: "string", default: "30" },
      hours: { type: "string", default: "24" },
      chargers: { type: "string" },
      seed: { type: "string" },
    },
  }),
);
const seed = Number(values.seed ?? randomInt(2 ** 31));
const numbers = [values.minutes, values.days, values.hours, values.chargers ?? 1, seed].map(Number);
if (!numbers.every((number) => number > 0)) refuseOptions(USAGE, "not a number above 0");
const out = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`);
const progress = (words: string): void => void process.stderr.write(`${words}\n`);
const rounded = (value: number): number => Math.round(value * 1000) / 1000;

function judge(name: string, points: readonly Point[], rule: Rule, unit: string): void {
  const { verdict, ...numbers } = verdictOn(points, rule);
  if (verdict === "not flat") process.exitCode = 1;
  const { growth, first, last, highest } = numbers;
  const seen = {
    perHour: rounded(growth),
    first: rounded(first),
    last: rounded(last),
    highest: rounded(highest),
  };
  out({ name, unit, ...seen, rule, verdict });
}

async function real(): Promise<void> {
  const [minutes, chargers] = [Number(values.minutes), Number(values.chargers ?? 200)];
  progress(`${chargers} chargers for ${minutes} minutes, seed ${seed}`);
  const { samples, ...happened } = await realSoak({
    minutes,
    chargers,
    seed,
    beatMs: 60_000,
    sampleMs: 15_000,
    collectEvery: 10,
    onSample: (sample) => progress(sampleInWords(sample)),
    progress,
  });
  out({ minutes, chargers, seed, ...happened });
  for (const name of FIGURE_NAMES) {
    const points = samples.map(({ hours, [name]: value }) => ({ hours, value }));
    judge(name, points.filter(isMeasured), FIGURES[name].rule, FIGURES[name].unit);
  }
}

const isMeasured = (point: { readonly hours: number; readonly value: number | null }): point is Point =>
  point.value !== null;

const sampleInWords = ({ hours, resident, heap, handles, state, commits, log }: Sample): string => {
  const alive = heap === null ? "" : `, heap ${heap.toFixed(1)} MB`;
  return `${(hours * 60).toFixed(1)} min: resident ${resident.toFixed(1)} MB${alive}, ${handles} handles, state ${state.toFixed(1)} MB, ${commits.toFixed(1)} commits a second, log ${log.toFixed(1)} MB`;
};

const standInWords = ({ hours, heap, resident, file, ...rows }: Stand): string => {
  const counts = Object.entries(rows).map(([table, count]) => `${count} ${table}`);
  return `day ${hours / 24}: heap ${heap.toFixed(1)} MB, resident ${resident.toFixed(0)} MB, file ${file.toFixed(1)} MB; rows: ${counts.join(", ")}`;
};

/** Everything is kept for eight days, the least that the configuration allows: after the first third it is level. */
const KEPT_DAYS = 8;

async function virtual(): Promise<void> {
  const [days, chargers] = [Number(values.days), Number(values.chargers ?? 10)];
  progress(`${days} virtual days of ${chargers} chargers, seed ${seed}; kept for ${KEPT_DAYS} days`);
  const { stands, count } = await virtualSoak(
    { chargers, telemetryEvery: 60_000, eventEvery: 2 * HOUR, keep: KEPT_DAYS * 24 * HOUR, seed },
    { hours: days * 24, every: 24 },
    (stand) => progress(standInWords(stand)),
  );
  out({ days, chargers, seed, ...count });
  for (const [name, rule] of Object.entries(RULES)) {
    const points = stands.map((stand) => ({ hours: stand.hours, value: stand[name as keyof typeof RULES] }));
    judge(name, points, rule, ["heap", "resident", "file"].includes(name) ? "MB" : "rows");
  }
}

async function day(): Promise<void> {
  const hours = Number(values.hours);
  const figure = await dayFigure(hours, (hour) => progress(`${hour} of ${hours} virtual hours`));
  out({
    name: "commits a second, 200 chargers",
    ...figure,
    commitsPerSecond: rounded(figure.commitsPerSecond),
  });
  if (figure.commitsPerSecond >= 1) process.exitCode = 1;
}

/** What is over is kept, and costs neither whole events in memory nor reading them at a start. */
const MOST_WHOLE = 5;

async function restarts(): Promise<void> {
  const days = Number(values.days);
  const keep = (days + 1) * 24 * HOUR;
  using depot = new VirtualDepot({ chargers: 1, telemetryEvery: HOUR, eventEvery: HOUR / 6, keep, seed });
  for (let passed = 1; passed <= days; passed += 1) {
    await depot.passes(24 * HOUR);
    const { tookMs, wholeEventsRead } = depot.restart();
    const { whole, over } = depot.inMemory;
    const heap = rounded(aliveInHeap() / 1e6);
    out({ day: passed, whole, over, wholeEventsRead, startMs: Math.round(tookMs), heap });
    if (whole > MOST_WHOLE || wholeEventsRead > MOST_WHOLE) process.exitCode = 1;
  }
}

await (values.day ? day() : values.restarts ? restarts() : values.virtual ? virtual() : real());
