/**
 * `npm run failover [-- --count N --seed N --depots N --minutes N --fault KIND]`: depots with two gateways on one PostgreSQL each,
 * whose leader is killed, frozen, cut off the database, or both, and whose database is restarted, 1,000 times unless told.
 * `--fault "cut one way"`: this one only. Events never stop meanwhile. Ends with 1 if any rule was broken. Needs mosquitto and PostgreSQL.
 */
import { randomInt } from "node:crypto";
import { cpus, loadavg } from "node:os";
import { parseArgs } from "node:util";

import { commandLine, refuseOptions } from "../support/commandLine.ts";
import { campaign } from "./campaign.ts";
import { FAULTS } from "./depot.ts";

const option = { type: "string" } as const;
const USAGE = "usage: npm run failover [-- --count N --seed N --depots N --minutes N --fault KIND]";
const { values } = commandLine(USAGE, () =>
  parseArgs({ options: { count: option, seed: option, depots: option, minutes: option, fault: option } }),
);
const count = Number(values.count ?? 1_000);
const seed = Number(values.seed ?? randomInt(2 ** 31));
const depots = Number(values.depots ?? 4);
const minutes = Number(values.minutes ?? Infinity);
const say = (words: string): void => void process.stdout.write(`${words}\n`);
if (![count, seed, depots].every(Number.isSafeInteger) || Number.isNaN(minutes))
  refuseOptions(USAGE, "not a number");
const faults = FAULTS.filter((kind) => values.fault === undefined || values.fault === kind);
if (faults.length === 0) refuseOptions(USAGE, `--fault is one of ${FAULTS.join(", ")}`);
say(
  `${count} failovers, seed ${seed}, ${depots} depots at a time; ${cpus().length} x ${cpus()[0]?.model ?? "?"}, Node ${process.version}`,
);
const { rounds, violations, explained, stalls, deliveries, commands, refused, longestGap } = await campaign({
  count,
  seed,
  depots,
  faults,
  until: performance.now() + minutes * 60_000,
  onRound: (done) => done % 50 === 0 && say(`${done} failovers`),
});
const shown = (all: readonly (number | null)[]): string => {
  const sorted = all.filter((ms) => ms !== null).toSorted((a, b) => a - b);
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? "-";
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, most ${sorted.at(-1) ?? "-"} ms`;
};
for (const kind of faults) {
  const own = rounds.filter((round) => round.kind === kind);
  say(
    `${kind}: ${own.length}; led again: ${shown(own.map(({ ledAfterMs }) => ledAfterMs))}; next command: ${shown(own.map(({ commandAfterMs }) => commandAfterMs))}, from the lease on: ${shown(own.map(({ loadMs }) => loadMs))}`,
  );
}
for (const words of violations) say(`VIOLATED ${words}`);
for (const words of explained) say(`BY THE MACHINE ${words}`);
say(
  `timers of the campaign: ${stalls.length} times late, at most ${Math.max(0, ...stalls)} ms, ${stalls.reduce((a, b) => a + b, 0)} ms together; load ${loadavg()
    .map((load) => load.toFixed(1))
    .join(" ")}`,
);
say(
  `${deliveries} deliveries, ${commands} commands received, ${refused} refused by a charger as old, longest pause ${longestGap.toFixed(2)} of a charger's lease`,
);
const failed = violations.length > 0 || rounds.length === 0;
say(
  `${failed ? "FAILED" : "ok"}: ${rounds.length} failovers, ${violations.length} violations, ${explained.length} more by the machine, seed ${seed}`,
);
process.exitCode = failed ? 1 : 0;
