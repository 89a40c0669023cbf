/**
 * `npm run simulate [-- --seed N --days N --chargers N --mixed | --moving | --held]`: whole days of a depot in virtual time, a
 * hundred unless told; mixed: its chargers are of ten makes, each spoken with as its profile says; moving: half of its
 * chargers are native, half are of makes, and vehicles move from one kind to the other; held: operators override events.
 * Day k of seed S is the day of seed S + k, so that one can be had again by itself. Ends with 1 at the first breach,
 * after cutting its day down to what is needed for it.
 */
import { randomInt } from "node:crypto";
import { parseArgs } from "node:util";

import { commandLine, refuseOptions } from "../support/commandLine.ts";
import { dayFrom } from "./generate.ts";
import { heldDay } from "./heldDay.ts";
import { mixedDay } from "./mixedDay.ts";
import { DAY, type Day, HOUR } from "./plan.ts";
import { playDay } from "./playDay.ts";
import { shrunk } from "./shrink.ts";
import { twoKindsDay } from "./twoKindsDay.ts";
import { dayInWords, timeOfDay } from "./words.ts";

const PROGRESS_EVERY = 5_000;

const USAGE = `usage: npm run simulate [-- --seed N --days N --chargers N --mixed | --moving | --held]

  --seed N      seed of the first day (default: drawn)
  --days N      number of days, one seed each (default: 100)
  --chargers N  chargers of each day, at least 1 (default: 4)
  --mixed       chargers of ten makes
  --moving      vehicles move between native chargers and chargers of makes
  --held        operators override events
  --help        this text`;

const values = commandLine(
  USAGE,
  () =>
    parseArgs({
      options: {
        seed: { type: "string" },
        days: { type: "string" },
        chargers: { type: "string" },
        mixed: { type: "boolean" },
        moving: { type: "boolean" },
        held: { type: "boolean" },
      },
    }).values,
);
const [seed = 0, days = 0, chargers = 0] = [
  values.seed ?? randomInt(2 ** 31),
  values.days ?? 100,
  values.chargers ?? 4,
].map(Number);
if (![seed, days, chargers].every((number) => Number.isSafeInteger(number) && number >= 0) || chargers < 1)
  refuseOptions(USAGE, "not a whole number");
interface Kind {
  readonly option: string;
  readonly name: string;
  readonly day: (seed: number) => Day;
}
const NATIVE: Kind = { option: "", name: "", day: (of) => dayFrom(of, chargers) };
const MIXED: Kind = {
  option: " --mixed",
  name: " of ten makes",
  day: (of) => mixedDay(of, chargers, DAY / HOUR),
};
const MOVING: Kind = {
  option: " --moving",
  name: " of two kinds",
  day: (of) => twoKindsDay(of, chargers, DAY / HOUR),
};
const HELD: Kind = { option: " --held", name: " with holds", day: (of) => heldDay(of, chargers) };
const kind =
  values.held === true ? HELD : values.moving === true ? MOVING : values.mixed === true ? MIXED : NATIVE;
const say = (words: string): void => void process.stdout.write(`${words}\n`);

say(`${days} days of ${chargers} chargers${kind.name}, seed ${seed}`);
const began = performance.now();
const total = { publishes: 0, crashes: 0, looks: 0, held: 0, watched: 0, reports: 0 };
const ended = { energy: 0, unplugged: 0, events: 0, guarded: 0, periods: 0 };
const most = { requests: 0, tokens: 0 };
const progress = (done: number): string => {
  const tookMs = performance.now() - began;
  return `${done} days in ${(tookMs / 1000).toFixed(1)} s: ${Math.round((done * DAY) / tookMs)} times real time`;
};
let told = began;
for (let done = 0; done < days; done += 1) {
  const day = kind.day(seed + done);
  const played = await playDay(day);
  const { failure, publishes, crashes, watched, reported, asked } = played;
  for (const name of ["energy", "unplugged", "events", "guarded", "periods"] as const)
    ended[name] += played.ended[name];
  total.publishes += publishes;
  total.crashes += crashes;
  total.looks += watched.looks;
  total.watched += watched.all;
  total.held += watched.held;
  total.reports += reported.length;
  most.requests = Math.max(most.requests, asked.requests);
  most.tokens = Math.max(most.tokens, asked.tokens);
  if (failure !== null) {
    say(`seed ${seed + done}, ${timeOfDay(failure.at)}: ${failure.invariant}: ${failure.words}`);
    say(`again: npm run simulate -- --seed ${seed + done} --days 1 --chargers ${chargers}${kind.option}`);
    say("cutting the day down...");
    const least = await shrunk(day, failure, async (smaller) => (await playDay(smaller)).failure);
    for (const line of dayInWords(least.day)) say(`  ${line}`);
    say(`  ${timeOfDay(least.failure.at)} breaks: ${least.failure.invariant}: ${least.failure.words}`);
    process.exit(1);
  }
  if (performance.now() > told + PROGRESS_EVERY) {
    told = performance.now();
    say(progress(done + 1));
  }
}
say(progress(days));
if (kind === HELD)
  say(
    `holds that ended: ${ended.energy} by energy, ${ended.unplugged} by unplug, ${ended.events} with events; ${ended.guarded} of the guard; ${ended.periods} periods of observe`,
  );
const percent = (part: number): string => `${Math.round((100 * part) / Math.max(1, total.looks))} %`;
say(
  `${total.publishes} messages, ${total.reports} reports, ${total.crashes} crashes; at most ${most.requests} requests and ${most.tokens} for a token in an hour; ${total.looks} looks, ${percent(total.watched)} without an excuse, ${percent(total.held)} of them under an event`,
);
