/**
 * `npm run mutate [-- --seed N] [--count N] [--quick] [FILE | FOLDER | FILE:LINE ...]`: plants small faults in a copy of the
 * project and runs the nearest tests. A mutant that no test notices is a missing test, or a change without an effect.
 * The same seed picks the same mutants as long as the source is the same. FILE:LINE tries every mutant of that line.
 * `--quick`: without the compiler and the tests that only reach the file. Survivors have to be tried again without it.
 * Ends with 1 when fewer than nine of ten mutants die.
 */
import { randomInt } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { chance } from "../fuzz/chance.ts";
import { commandLine, refuseOptions } from "../support/commandLine.ts";
import { filesIn, nearestTests } from "./nearest.ts";
import { type Mutant, mutantsOf } from "./operators.ts";
import { ScratchTree } from "./scratchTree.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
const PLACES = ["src/control", "src/store", "src/reporting"];
const PASS_SHARE = 0.9;

const USAGE = "usage: npm run mutate [-- --seed N] [--count N] [--quick] [FILE | FOLDER | FILE:LINE ...]";

const print = (line: string): void => void process.stdout.write(`${line}\n`);
const fail = (message: string): never => refuseOptions(USAGE, message);

const { values, positionals } = commandLine(USAGE, () =>
  parseArgs({
    options: { seed: { type: "string" }, count: { type: "string" }, quick: { type: "boolean" } },
    allowPositionals: true,
  }),
);
const [seed = 0, count = 0] = [values.seed ?? randomInt(2 ** 31), values.count ?? 50].map(Number);
if (![seed, count].every((number) => Number.isSafeInteger(number) && number >= 0)) fail("not a whole number");

/** Every mutant of a file, a folder, or one line of a file. */
function mutantsAt(place: string): readonly Mutant[] {
  const [path = "", line] = place.split(":");
  if (!existsSync(join(ROOT, path))) return fail(`${path} does not exist`);
  const files = path.endsWith(".ts") ? [path] : filesIn(ROOT, path);
  const all = files.flatMap((file) => mutantsOf(file, readFileSync(join(ROOT, file), "utf8")));
  return line === undefined ? all : all.filter((mutant) => mutant.line === Number(line));
}

const places = positionals.length > 0 ? positionals : PLACES;
const all = places.flatMap(mutantsAt);
const random = chance(seed);
const chosen = all
  .map((mutant) => ({ mutant, rank: random() }))
  .toSorted((a, b) => a.rank - b.rank)
  .slice(0, count)
  .map(({ mutant }) => mutant);
const isQuick = values.quick === true;
const nearest = isQuick ? nearestTests(ROOT, 2) : nearestTests(ROOT);
const quick = isQuick ? ["--quick"] : [];
const again = ["npm run mutate -- --seed", seed, "--count", count, ...quick, ...positionals].join(" ");
print(`${chosen.length} of ${all.length} mutants, seed ${seed}; again: ${again}`);

using tree = new ScratchTree(ROOT);
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    tree[Symbol.dispose]();
    process.exit(1);
  });
}

const firstTests = [...new Set(chosen.flatMap(({ file }) => nearest(file)[0] ?? []))];
print(`the ${firstTests.length} nearest test files have to pass without a mutant...`);
const unchanged = firstTests.length === 0 ? { kind: "passed" } : await tree.runTests(firstTests);
if (unchanged.kind !== "passed") {
  print(`nothing was tried: ${"by" in unchanged ? unchanged.by : unchanged.kind}`);
  process.exit(1);
}

type Verdict = { readonly kind: "killed" | "timed out" | "survived"; readonly by: string };

/** The next group of tests is run only when the one before noticed nothing. */
async function tryOut(mutant: Mutant): Promise<Verdict> {
  const groups = nearest(mutant.file);
  for (const tests of groups) {
    const run = await tree.runTests(tests);
    if (run.kind === "failed") return { kind: "killed", by: run.by };
    if (run.kind === "timed out") return { kind: "timed out", by: "" };
  }
  if (!isQuick && !(await tree.compiles())) return { kind: "killed", by: "type check" };
  return { kind: "survived", by: `${groups.flat().length} test files passed` };
}

const inWords = ({ file, line, change }: Mutant): string => `${file}:${line}  ${change}`;
const survivors: Mutant[] = [];
let timedOut = 0;
for (const [index, mutant] of chosen.entries()) {
  tree.plant(mutant);
  const { kind, by } = await tryOut(mutant);
  tree.restore(mutant);
  if (kind === "survived") survivors.push(mutant);
  if (kind === "timed out") timedOut += 1;
  const number = `${index + 1}/${chosen.length}`.padStart(9);
  print(`${number} ${kind.padEnd(9)} ${inWords(mutant)}${by === "" ? "" : `  (${by})`}`);
}

const killed = chosen.length - survivors.length;
for (const mutant of survivors) print(`SURVIVED ${inWords(mutant)}`);
print(`${killed} of ${chosen.length} mutants died, ${timedOut} of them by the time limit; again: ${again}`);
process.exitCode = killed < PASS_SHARE * chosen.length ? 1 : 0;
