/**
 * `npm run torture [-- --kills N --minutes N --seed N --depots N --jobs N]`: the real daemon, killed with SIGKILL at random
 * and at every kind of commit, publish and acknowledge, 5,000 times unless told, or for so many minutes. Ends with 1 if any
 * rule was broken. A violation names the seed of its round, and how that round is played again. Needs mosquitto.
 * With `--holds` (and `--kills`, `--seed`) one bay is under holds of every kind that are opened and ended meanwhile.
 */
import { randomInt } from "node:crypto";
import { writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { commandLine, refuseOptions } from "../support/commandLine.ts";
import { campaign, heldCampaign, percentile } from "./campaign.ts";
import { POINTS } from "./kills.ts";
import type { Story } from "./story.ts";

const KILLS_EACH = 8;

const option = { type: "string" } as const;
const USAGE = "usage: npm run torture [-- --kills N --minutes N --seed N --depots N --jobs N --holds]";
const { values } = commandLine(USAGE, () =>
  parseArgs({
    options: {
      kills: option,
      minutes: option,
      seed: option,
      depots: option,
      jobs: option,
      holds: { type: "boolean" },
    },
  }),
);
const kills = Number(values.kills ?? 5_000);
const minutes = Number(values.minutes ?? Infinity);
const jobs = Number(values.jobs ?? 1);
const seed = Number(values.seed ?? randomInt(2 ** 31));
const depots = Number(values.depots ?? Math.max(2, cpus().length * 2));
if (![kills, seed, depots, jobs].every(Number.isSafeInteger) || jobs < 1 || Number.isNaN(minutes))
  refuseOptions(USAGE, "not a whole number");
const say = (words: string): void => void process.stdout.write(`${words}\n`);
if (values.holds === true) {
  const { violations, holds, kinds, kills: done } = await heldCampaign({ seed, kills });
  for (const words of violations) say(`VIOLATED ${words}`);
  say(
    `${done} kills, ${holds} holds (${[...kinds].toSorted().join(", ")}), ${violations.length} violations, seed ${seed}`,
  );
  process.exit(violations.length === 0 ? 0 : 1);
}

say(
  `${kills} kills, seed ${seed}, ${jobs} x ${depots} depots at a time; ${cpus().length} x ${cpus()[0]?.model ?? "?"}, Node ${process.version}`,
);
/** The clock has its part in every round: played again, it may not show. */
function keep(roundSeed: number, stories: readonly Story[]): string {
  const path = join(tmpdir(), `torture-${roundSeed}.json`);
  writeFileSync(
    path,
    JSON.stringify(stories, (_key, value) => (value instanceof Map ? [...value] : value), 1),
  );
  return path;
}

const began = performance.now();
const outcome = await campaign({
  kills,
  seed,
  depots,
  jobs,
  until: began + minutes * 60_000,
  killsEach: KILLS_EACH,
  onRound: (round) => {
    const passed = ((performance.now() - began) / 60_000).toFixed(1);
    say(
      `${round.kills} kills in ${passed} min, seed ${round.seed}: ${round.outcome.violations.length} violations`,
    );
    for (const words of round.outcome.violations) say(`VIOLATED ${words}`);
    if (round.outcome.violations.length > 0) {
      say(`again: npm run torture -- --kills 1 --seed ${round.seed} --depots ${depots}`);
      say(`what was seen: ${keep(round.seed, round.outcome.stories)}`);
    }
  },
});
const total = [...outcome.kills.values()].reduce((sum, count) => sum + count, 0);
for (const where of [...outcome.kills.keys()].toSorted())
  say(`killed at ${where}: ${outcome.kills.get(where)}`);
const [p50, p99] = [percentile(outcome.restarts, 50), percentile(outcome.restarts, 99)];
say(
  `restart to first correct publish: p50 ${p50} ms, p99 ${p99} ms (${outcome.restarts.length} restarts, ${jobs * (depots + 1)} daemons at a time)`,
);
const unreached = POINTS.filter((point) => !outcome.kills.has(point));
if (unreached.length > 0) say(`never killed at ${unreached.join(", ")}`);
// A campaign that nothing happened in has shown nothing.
const isEmpty = total === 0 || outcome.restarts.length === 0;
if (isEmpty) say("no kill, or no restart that had anything to say");
const failed = outcome.violations.length > 0 || isEmpty;
say(`${failed ? "FAILED" : "ok"}: ${total} kills, ${outcome.violations.length} violations, seed ${seed}`);
process.exitCode = failed ? 1 : 0;
