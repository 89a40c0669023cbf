/**
 * `npm run fuzz [-- BODIES [SEED]]`: mutated webhook bodies, a million unless told, through the real reception, parser
 * and intake. Ends with 1 if anything was found; the seed that is printed makes the same bodies again.
 */
import { randomInt } from "node:crypto";

import { campaign } from "./campaign.ts";

/** The daemon's own bound is tighter; a million bodies that each left something behind would be far over this. */
const MOST_MEMORY_MB = 512;

const [bodies = 1_000_000, seed = randomInt(2 ** 32)] = process.argv.slice(2).map(Number);
if (![bodies, seed].every(Number.isSafeInteger)) {
  process.stderr.write("usage: npm run fuzz [-- BODIES [SEED]]\n");
  process.exit(2);
}
const say = (words: string): void => void process.stdout.write(`${words}\n`);

say(`${bodies} mutated bodies, seed ${seed}`);
const began = performance.now();
const rate = (done: number): number => Math.round((done / (performance.now() - began)) * 1000);
const outcome = await campaign({
  bodies,
  seed,
  onProgress: (done) => {
    if (done > 0 && done % 100_000 === 0) say(`${done} bodies, ${rate(done)} bodies/s`);
  },
});
const memoryMB = Math.round(process.resourceUsage().maxRSS / 1024);
for (const [status, count] of [...outcome.answers].toSorted(([a], [b]) => a - b)) say(`${status}: ${count}`);
say(`accepted events: ${outcome.accepted}, all normalized; set aside: ${outcome.rejected}`);
say(`slowest body: ${outcome.slowestMs.toFixed(1)} ms; memory at most ${memoryMB} MB`);
for (const finding of outcome.findings) say(`FOUND ${finding}`);
const failed = outcome.findings.length > 0 || memoryMB > MOST_MEMORY_MB;
say(
  failed
    ? `FAILED: ${bodies} bodies, ${rate(bodies)} bodies/s, ${outcome.findings.length} findings, ${memoryMB} MB`
    : `ok: ${bodies} bodies, ${rate(bodies)} bodies/s; nothing crashed, and junk changed no known event`,
);
process.exitCode = failed ? 1 : 0;
