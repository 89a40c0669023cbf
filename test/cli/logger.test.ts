import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { stringify } from "yaml";

import { least } from "../support/aConfiguration.ts";

const LOGGER = new URL("../../src/cli/logger.ts", import.meta.url).href;
const ACTION_LOG = new URL("../../src/daemon/actionLog.ts", import.meta.url).href;

/** Runs it in a process of its own, whose output is no terminal; what it wrote, by line. */
const said = (script: string): readonly string[] =>
  spawnSync(
    process.execPath,
    [
      "--input-type=module",
      "-e",
      `import { logger } from "${LOGGER}"; const log = logger(1, "info"); ${script}`,
    ],
    { maxBuffer: 2 ** 24 },
  )
    .stdout.toString()
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line).msg);

test("a line of the demo is the time of day and a sentence, with no other field", () => {
  const script = `import { plainLogger } from "${LOGGER}"; plainLogger("info").warn({ n: 1 }, "it is so");`;
  const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    env: { ...process.env, TZ: "UTC" },
  });
  expect(stdout.toString()).toMatch(/^\d\d:\d\d:\d\d {2}it is so\n$/);
});

test("a held line of the demo waits for its release, and a later one does not", () => {
  const script = `import { heldLogger } from "${LOGGER}"; const { log, release } = heldLogger("info");
    log.info("early"); console.log("first"); release(); log.info("late");`;
  const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", script]);
  expect(stdout.toString()).toMatch(/^first\n[\d:]{8} {2}early\n[\d:]{8} {2}late\n$/);
});

test("a line that was logged in the turn in which the process ends is written", () => {
  expect(said(`log.info("one"); setTimeout(() => { log.info("two"); process.exit(0); }, 20);`)).toEqual([
    "one",
    "two",
  ]);
});

test("lines keep their order, however many a turn has", () => {
  const lines = said(`for (let n = 0; n < 20_000; n += 1) log.info(String(n)); log.fatal("last");`);
  expect(lines).toEqual([...Array.from({ length: 20_000 }, (_, n) => String(n)), "last"]);
});

test("20,000 long lines in one turn of the event loop are all written", () => {
  const lines = said(
    `for (let n = 0; n < 20_000; n += 1) log.info(String(n).padEnd(500)); log.info("last");`,
  );
  expect(lines).toHaveLength(20_001);
});

test("the lines of the last commit are written when a bug ends the process", () => {
  const row = `{ kind: "decision", charger: null, vehicle: null, event: null, command: null, words: "the last", facts: null }`;
  const script = `const { ActionLog } = await import("${ACTION_LOG}"); new ActionLog(log).add([${row}], 1); process.exit(1);`;
  expect(said(script)).toEqual(["the last"]);
});

test.each([
  [
    "goes on",
    `setInterval(() => { log.info("x"); if ((lines += 1) === 20) { process.stderr.write("went on"); process.exit(3); } }, 5);`,
  ],
  [
    "ends by a bug",
    `log.info("x"); setImmediate(() => { log.fatal("bug"); process.stderr.write("went on"); process.exit(3); });`,
  ],
])("a log that has no room ends nothing, and holds up no end: it %s (F05)", (_, work) => {
  const script = `import { logger } from "${LOGGER}"; const log = logger(1, "info"); let lines = 0; ${work}`;
  const { status, stderr } = spawnSync("sh", [
    "-c",
    'exec "$@" > /dev/full',
    "sh",
    process.execPath,
    "--input-type=module",
    "-e",
    script,
  ]);
  expect([status, stderr.toString()]).toEqual([3, "went on"]);
});

const HOSTILE = "a\u001b]0;title\u0007b\nc\u009b31m\u202ed";
const SAFE = "a\\u001b]0;title\\u0007b\\u000ac\\u009b31m\\u202ed";

test("texts of a partner or a charger neither move a terminal nor start a line of their own", () => {
  const script = `import { plainLogger } from "${LOGGER}"; plainLogger("info").warn(${JSON.stringify(HOSTILE)});`;
  const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", script]);
  expect(stdout.toString().slice(10)).toBe(`${SAFE}\n`);
});

test("lines of JSON keep their meaning, and hold no character that a terminal obeys", () => {
  const script = `import { logger } from "${LOGGER}"; logger(1, "info").info({ name: ${JSON.stringify(HOSTILE)} }, "x");`;
  const line = spawnSync(process.execPath, ["--input-type=module", "-e", script]).stdout.toString();
  expect(line).toMatch(/^[\x20-\x7e]+\n$/);
  expect(JSON.parse(line)).toMatchObject({ name: HOSTILE });
});

test("the reason of a start that fails is the last line of the journal, below all warnings", () => {
  const folder = mkdtempSync(join(tmpdir(), "setpointd-last-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const config = join(folder, "site.yaml");
  writeFileSync(config, stringify(least));
  mkdirSync(join(folder, "state"), { mode: 0o700 });
  writeFileSync(join(folder, "state/site.key"), "no key", { mode: 0o600 });
  const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
  const { status, stdout } = spawnSync(
    "sh",
    ["-c", 'exec "$@" 2>&1', "sh", process.execPath, main, "run", "-c", config],
    // The secret is short enough for a warning.
    { encoding: "utf8", env: { PATH: process.env["PATH"], SECRET: "short" } },
  );
  expect(status).toBe(1);
  const lines = stdout.trimEnd().split("\n");
  expect(lines[0]).toContain("works, but was it meant?");
  expect(lines.at(-1)).toContain("state/site.key");
});
