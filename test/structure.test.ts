import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const filesIn = (folder: string): readonly string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => `${folder}/${name}`);
const text = (file: string): string => readFileSync(join(root, file), "utf8");
const source = filesIn("src");
const tests = new Set(filesIn("test"));

/** Over 300 lines, and why that reads better than two files. */
const LONG: Readonly<Record<string, string>> = {
  "src/app.ts": "constructs every concrete part in one straight line, in the order in which they start",
};

/** Files whose behaviour is tested through another file, and through which. */
const TESTED_THROUGH: Readonly<Record<string, readonly string[]>> = {
  "test/e2e/webhook.test.ts": ["src/app.ts"],
  "test/e2e/cli.test.ts": [
    ...[
      "audit",
      "check",
      "configuration",
      "daemon",
      "outcome",
      "program",
      "release",
      "stopSignal",
      "storedState",
    ].map((verb) => `src/cli/${verb}.ts`),
    "src/releaseOffline.ts",
  ],
  "test/e2e/plan.test.ts": ["src/cli/plan.ts"],
  "test/e2e/restart.test.ts": ["src/cli/run.ts"],
  "test/e2e/demo.test.ts": ["src/cli/demo.ts"],
  "test/e2e/secrets.test.ts": ["src/cli/logger.ts"],
  "test/e2e/operator.test.ts": ["src/operator/views.ts"],
  "test/chargers/brokerSession.test.ts": ["src/chargers/connection.ts"],
  "test/chargers/native.test.ts": ["src/chargers/nativePayload.ts"],
  "test/sim/chargers.test.ts": ["src/sim/mqttCharger.ts"],
  "test/sim/charger.test.ts": ["src/sim/chargerTelemetry.ts"],
  "test/sim/partner.test.ts": ["partnerFaults", "prices", "tokens", "webhook"].map(
    (part) => `src/sim/${part}.ts`,
  ),
  "test/store/open.test.ts": [
    "boot",
    "disk",
    "fault",
    "files",
    "head",
    "lock",
    "migrations",
    "remember",
    "setAside",
  ].map((part) => `src/store/${part}.ts`),
  "test/store/store.test.ts": ["connection", "query", "rows", "turn"].map((part) => `src/store/${part}.ts`),
  "test/flow/polling.test.ts": ["src/flow/sources.ts"],
  "test/vtn/fetched.test.ts": ["src/vtn/failed.ts"],
};

test("only app.ts subscribes", () => {
  const subscribing = source.filter(
    (file) => /from "rxjs/.test(text(file)) && text(file).includes(".subscribe("),
  );
  expect(subscribing).toEqual(["src/app.ts"]);
});

test("RxJS lives in flow, and in app.ts which feeds it", () => {
  const importing = source.filter((file) => /from "rxjs/.test(text(file)));
  expect(importing.filter((file) => !file.startsWith("src/flow/"))).toEqual(["src/app.ts"]);
});

test("core and flow read no clock and no dice", () => {
  const reading = source
    .filter((file) => /^src\/(core|flow)\//.test(file))
    .filter((file) =>
      /\b(Date\.now|Math\.random|new Date\(\)|performance\.now|DateTime\.(now|utc)\(\))/.test(text(file)),
    );
  expect(reading).toEqual([]);
});

test("no file is longer than 300 lines without a listed reason", () => {
  const long = source.filter((file) => text(file).split("\n").length > 301);
  expect(long).toEqual(Object.keys(LONG));
});

test("every file with behaviour has its test, or says which test holds it", () => {
  const behaving = source.filter((file) =>
    /^(export )?(async )?(function|class|const \w+ = (async )?(<|\())/m.test(text(file)),
  );
  const through = new Map(
    Object.entries(TESTED_THROUGH).flatMap(([held, files]) => files.map((file) => [file, held])),
  );
  const untested = behaving.filter((file) => {
    const own = file.replace(/^src\//, "test/").replace(/\.ts$/, ".test.ts");
    return !tests.has(own) && !tests.has(through.get(file) ?? "");
  });
  expect(untested).toEqual([]);
  const vanished = [...through.keys()].filter((file) => !source.includes(file));
  expect(vanished).toEqual([]);
});

test("no test is skipped, focused or left to do", () => {
  const marked = [...tests].filter((file) => /\b(it|test|describe)\.(skip|only|todo)\(/.test(text(file)));
  expect(marked).toEqual([]);
});
