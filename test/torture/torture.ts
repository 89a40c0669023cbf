/**
 * `npm run torture [-- --kills N --seed N --depots N]`: the real daemon, killed with SIGKILL at random and at every kind of
 * commit, publish and acknowledge, 5,000 times unless told. Ends with 1 if any rule was broken. A violation names the
 * seed of its round; `--kills 1 --seed` that seed plays that round again. Needs mosquitto.
 */
import { randomInt } from "node:crypto";
import { cpus } from "node:os";
import { parseArgs } from "node:util";

import { campaign, percentile } from "./campaign.ts";

const KILLS_EACH = 8;

const { values } = parseArgs({
  options: { kills: { type: "string" }, seed: { type: "string" }, depots: { type: "string" } },
});
const kills = Number(values.kills ?? 5_000);
const seed = Number(values.seed ?? randomInt(2 ** 31));
const depots = Number(values.depots ?? Math.max(2, cpus().length * 2));
if (![kills, seed, depots].every(Number.isSafeInteger)) {
  process.stderr.write("usage: npm run torture [-- --kills N --seed N --depots N]\n");
  process.exit(2);
}
const say = (words: string): void => void process.stdout.write(`${words}\n`);

say(
  `${kills} kills, seed ${seed}, ${depots} depots at a time; ${cpus().length} x ${cpus()[0]?.model ?? "?"}, Node ${process.version}`,
);
const began = performance.now();
const outcome = await campaign({
  kills,
  seed,
  depots,
  killsEach: KILLS_EACH,
  onRound: (round) => {
    const minutes = ((performance.now() - began) / 60_000).toFixed(1);
    say(
      `${round.kills} kills in ${minutes} min, seed ${round.seed}: ${round.outcome.violations.length} violations`,
    );
    for (const words of round.outcome.violations) say(`VIOLATED ${words}`);
  },
});
const total = [...outcome.kills.values()].reduce((sum, count) => sum + count, 0);
for (const where of [...outcome.kills.keys()].toSorted())
  say(`killed at ${where}: ${outcome.kills.get(where)}`);
const [p50, p99] = [percentile(outcome.restarts, 50), percentile(outcome.restarts, 99)];
say(
  `restart to first correct publish: p50 ${p50} ms, p99 ${p99} ms (${outcome.restarts.length} restarts, ${depots + 1} daemons at a time)`,
);
const failed = outcome.violations.length > 0;
say(`${failed ? "FAILED" : "ok"}: ${total} kills, ${outcome.violations.length} violations, seed ${seed}`);
process.exitCode = failed ? 1 : 0;
