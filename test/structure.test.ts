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
  "test/gently.test.ts": ["src/flow/breather.ts"],
  "test/flow/evaluationQueue.test.ts": ["src/flow/freeings.ts"],
  "test/e2e/webhook.test.ts": ["src/app.ts"],
  "test/e2e/poll.test.ts": ["src/cli/poll.ts"],
  "test/e2e/cli.test.ts": [
    ...[
      "audit",
      "check",
      "configuration",
      "daemon",
      "environment",
      "outcome",
      "program",
      "release",
      "stopSignal",
      "storedState",
    ].map((verb) => `src/cli/${verb}.ts`),
    "src/controlDoor.ts",
    "src/releaseOffline.ts",
  ],
  "test/cli/owner.test.ts": ["src/cli/ownerOf.ts", "src/cli/privateFolder.ts"],
  "test/e2e/status.test.ts": ["src/cli/status.ts"],
  "test/e2e/acl.test.ts": ["src/cli/acl.ts", "src/chargers/brokerAccess.ts"],
  "test/e2e/checkLive.test.ts": [
    ...["checkLive", "liveFloor", "liveLines", "livePartner", "liveWebhook"].map(
      (part) => `src/cli/${part}.ts`,
    ),
    "src/chargers/tryBroker.ts",
  ],
  "test/e2e/webhookTest.test.ts": ["src/cli/webhookTest.ts", "src/vtn/ownListener.ts"],
  "test/e2e/proof.test.ts": [
    "src/proof.ts",
    "src/cli/proof.ts",
    "src/cli/proofKey.ts",
    "src/cli/proofVerify.ts",
  ],
  "test/core/proof/compose.test.ts": [
    "asked",
    "deeds",
    "measured",
    "outages",
    "record",
    "reported",
    "share",
  ].map((part) => `src/core/proof/${part}.ts`),
  "test/core/proof/verify.test.ts": ["src/core/proof/seal.ts", "src/core/proof/fact.ts"],
  "test/store/chain.test.ts": ["src/core/chain.ts"],
  "test/core/reporting/desk.test.ts": ["src/core/reporting/duties.ts"],
  "test/actionLog.test.ts": ["src/core/audit.ts"],
  "test/e2e/plan.test.ts": ["src/cli/plan.ts"],
  "test/e2e/restart.test.ts": ["src/cli/run.ts"],
  "test/e2e/crash.test.ts": ["src/cli/lastWords.ts"],
  "test/e2e/demo.test.ts": ["src/cli/demo.ts"],
  "test/e2e/operator.test.ts": ["src/operator/views.ts"],
  "test/chargers/native.test.ts": ["src/chargers/nativePayload.ts"],
  "test/chargers/fleet.test.ts": ["src/chargers/line.ts", "src/chargers/nativeLine.ts"],
  "test/chargers/profileLine.test.ts": ["picture", "readable"].map(
    (part) => `src/chargers/profile/${part}.ts`,
  ),
  "test/makes.test.ts": ["src/config/makes.ts"],
  "test/config/example.test.ts": ["src/loadSite.ts"],
  "test/chargers/profile/everyMake.test.ts": ["ear", "publishes"].map(
    (part) => `src/chargers/profile/${part}.ts`,
  ),
  "test/chargers/profile/makes/warp.test.ts": ["hear", "means", "readings", "signal"].map(
    (part) => `src/chargers/profile/${part}.ts`,
  ),
  "test/chargers/profile/makes/native.test.ts": ["src/chargers/profile/nativeHear.ts"],
  "test/chargers/evccLine.test.ts": ["acceptance", "overwritten", "settling"].map(
    (part) => `src/chargers/profile/${part}.ts`,
  ),
  "test/chargers/profile/inWords.test.ts": ["reach", "topics"].map(
    (part) => `src/chargers/profile/${part}.ts`,
  ),
  "test/chargers/profile/schema.test.ts": [
    "consistency",
    "telemetryConsistency",
    "topicConsistency",
    "publishSchema",
  ].map((part) => `src/chargers/profile/${part}.ts`),
  "test/e2e/profile.test.ts": ["src/cli/profile.ts", "src/cli/profileCommands.ts"],
  "test/core/reporting/plan.test.ts": ["src/core/reporting/grid.ts"],
  "test/core/reporting/fill.test.ts": ["cause", "evidence"].map((part) => `src/core/reporting/${part}.ts`),
  "test/core/reporting/report.test.ts": ["src/core/reporting/snapshot.ts"],
  "test/sim/chargers.test.ts": ["src/sim/mqttCharger.ts", "src/sim/floorClient.ts"],
  "test/sim/mixedFloor.test.ts": ["src/sim/mqttMake.ts"],
  "test/sim/makes.test.ts": [
    "src/sim/madeCharger.ts",
    ...["evcc", "everest", "goE", "make", "ocpp", "openEvse", "openWb", "smartEvse", "victron", "warp"].map(
      (make) => `src/sim/makes/${make}.ts`,
    ),
  ],
  "test/commission/trial.test.ts": ["inWords", "judgement", "levels"].map(
    (part) => `src/commission/${part}.ts`,
  ),
  "test/e2e/commission.test.ts": [
    "src/commission/mqttBench.ts",
    "src/commission/talk.ts",
    "src/cli/commission.ts",
    "src/daemonCommissions.ts",
  ],
  "test/sim/charger.test.ts": ["src/sim/chargerTelemetry.ts"],
  "test/sim/partner.test.ts": ["partnerFaults", "tokens", "webhook"].map((part) => `src/sim/${part}.ts`),
  "test/store/open.test.ts": [
    "boot",
    "disk",
    "fault",
    "files",
    "head",
    "lock",
    "remember",
    "restored",
    "setAside",
  ].map((part) => `src/store/${part}.ts`),
  "test/store/storedEvents.test.ts": ["src/store/archive.ts"],
  "test/store/store.test.ts": ["readBodies", "connection", "query", "rows", "turn"].map(
    (part) => `src/store/${part}.ts`,
  ),
  "test/vtn/fetched.test.ts": ["src/vtn/failed.ts"],
  "test/vtn/wire/json.test.ts": ["src/vtn/wire/scanner.ts"],
  "test/vtn/client.test.ts": ["src/vtn/authorized.ts"],
  "test/vtn/wire/prices.test.ts": ["priceEntry", "priceIntervals", "priceShapes", "priceUnits"].map(
    (part) => `src/vtn/wire/${part}.ts`,
  ),
  "test/e2e/prices.test.ts": ["src/spotPrices.ts", "src/cli/prices.ts"],
  "test/e2e/reports.test.ts": ["src/partnerReports.ts", "src/cli/reports.ts"],
  "test/flow/control.test.ts": ["src/flow/stages.ts"],
  "test/core/depot.test.ts": ["src/core/site/presence.ts"],
  "test/flow/reporting.test.ts": ["src/flow/reportRows.ts", "src/flow/reportStages.ts"],
  "test/store/readings.test.ts": ["src/store/readingBuffer.ts"],
  "test/e2e/backup.test.ts": ["src/cli/backup.ts"],
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
