import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const filesIn = (folder: string): readonly string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => `${folder}/${name}`);
const text = (file: string): string => readFileSync(join(root, file), "utf8");
/** The page runs in a browser: it has a tsconfig, limits and tests of its own. */
const PAGE = "src/operator/page/";
const source = filesIn("src").filter((file) => !file.startsWith(PAGE));
const tests = new Set(filesIn("test"));

/** The rooms that each room may import from, types included (src/README.md, "Who may import whom"). */
const MAY_IMPORT: Readonly<Record<string, readonly string[] | "every room">> = {
  main: ["cli"],
  domain: [],
  platform: ["domain"],
  control: ["domain", "platform"],
  reporting: ["domain", "platform", "control"],
  alarms: ["domain", "platform"],
  departures: ["domain", "platform", "control"],
  prices: ["domain", "platform"],
  proof: ["domain", "platform", "control", "reporting"],
  retention: ["domain", "platform", "control"],
  commissioning: ["domain", "platform", "control", "chargers/profile"],
  "vtn/dialects": ["domain", "platform", "reporting"],
  vtn: ["domain", "platform", "vtn/dialects", "config"],
  "chargers/profile": ["domain", "chargers/native"],
  chargers: ["domain", "platform", "chargers/profile", "chargers/native", "config"],
  "ocpp/wire": ["domain"],
  ocpp: ["domain", "platform", "config", "chargers", "chargers/native", "ocpp/wire"],
  store: ["domain", "platform"],
  "store/sqlite": ["domain", "platform", "store"],
  "store/postgres": ["domain", "platform", "store"],
  operator: [
    "domain",
    "platform",
    "config",
    "alarms",
    "departures",
    "control",
    "reporting",
    "prices",
    "retention",
  ],
  config: ["domain", "platform", "chargers/profile", "control", "reporting", "retention"],
  daemon: "every room",
  cli: "every room",
  sim: ["ocpp/wire", "domain", "platform", "vtn/dialects", "chargers/profile", "chargers", "chargers/native"],
  "chargers/native": ["domain", "platform", "chargers", "chargers/profile"],
};

/** Rooms that are pure: they read no clock and no random source. */
const PURE = [
  "domain",
  "alarms",
  "departures",
  "control",
  "reporting",
  "prices",
  "proof",
  "retention",
  "commissioning",
];

/** Files that may import RxJS beside those named `pipeline.ts`. */
const RXJS: readonly string[] = ["src/platform/scheduling.ts"];

/** Over 300 lines, and why that reads better than two files. */
const LONG: Readonly<Record<string, string>> = {};

/** Packages that pure rooms may import. Absent: every package. RxJS has a rule of its own. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  domain: ["node:crypto"],
  control: ["node:crypto"],
  reporting: ["node:crypto"],
  alarms: [],
  departures: [],
  prices: [],
  proof: ["node:crypto"],
  retention: [],
  commissioning: [],
  "vtn/dialects": ["node:crypto", "zod", "luxon"],
  "chargers/profile": ["node:crypto", "node:path", "zod"],
  "ocpp/wire": ["zod"],
};

/** Files whose behaviour is tested through another file, and through which. */
const TESTED_THROUGH: Readonly<Record<string, readonly string[]>> = {
  "test/operator/explanation.test.ts": ["src/operator/answer.ts"],
  "test/operator/handover.test.ts": ["src/operator/handoverEvents.ts"],
  "test/operator/metrics.test.ts": ["src/operator/gauges.ts"],
  "test/operator/problems.test.ts": ["src/operator/siteProblems.ts"],
  "test/alarms/registry.test.ts": ["src/domain/alarm.ts"],
  "test/e2e/alarms.test.ts": ["src/cli/commands/alarms.ts", "src/daemon/alarms.ts"],
  "test/control/holds/observePeriod.test.ts": ["src/operator/mode.ts"],
  "test/departures/departures.test.ts": [
    "src/control/decide/ahead.ts",
    "src/departures/board.ts",
    "src/departures/pipeline.ts",
  ],
  "test/departures/forecast.test.ts": ["src/domain/departure.ts"],
  "test/operator/departures.test.ts": ["src/operator/departureRequest.ts"],
  "test/e2e/departures.test.ts": ["src/cli/commands/departures.ts", "src/cli/commands/handover.ts"],
  "test/operator/standIn.test.ts": ["src/domain/leadership.ts"],
  "test/operator/holds.test.ts": ["src/operator/holdRequest.ts", "src/operator/holdView.ts"],
  "test/control/holds/holds.test.ts": ["src/domain/hold.ts"],
  "test/e2e/webhook.test.ts": ["src/daemon/daemon.ts", "src/daemon/real.ts"],
  "test/control/observe/bindings.test.ts": ["src/operator/bindings.ts"],
  "test/e2e/heldVehicles.test.ts": ["src/cli/commands/bind.ts"],
  "test/e2e/plan.test.ts": ["src/cli/commands/plan.ts"],
  "test/e2e/poll.test.ts": ["src/cli/commands/poll.ts"],
  "test/e2e/cli.test.ts": [
    "src/cli/commands/audit.ts",
    "src/cli/commands/explain.ts",
    "src/cli/configuration.ts",
    "src/cli/daemonClient.ts",
    "src/cli/program.ts",
    "src/cli/commands/release.ts",
    "src/cli/stopSignal.ts",
    "src/daemon/controlApi.ts",
    "src/daemon/offline.ts",
    "src/daemon/releaseOffline.ts",
  ],
  "test/e2e/status.test.ts": [
    "src/cli/commands/status.ts",
    "src/daemon/operatorSide.ts",
    "src/daemon/status.ts",
  ],
  "test/e2e/apply.test.ts": [
    "src/cli/commands/apply.ts",
    "src/cli/configurationFile.ts",
    "src/cli/siteConfigurations.ts",
  ],
  "test/operator/configuration.test.ts": ["src/operator/siteConfigurations.ts"],
  "test/operator/http/actionRoutes.test.ts": ["src/operator/http/chargerRoutes.ts"],
  "test/control/observe/reboots.test.ts": ["src/control/observe/recordRestarts.ts"],
  "test/e2e/modes.test.ts": ["src/cli/commands/mode.ts"],
  "test/e2e/reboot.test.ts": ["src/cli/commands/reboot.ts"],
  "test/e2e/acl.test.ts": ["src/cli/commands/acl.ts"],
  "test/ocpp/wire/ocpp16.test.ts": [
    "src/ocpp/wire/capabilities.ts",
    "src/ocpp/wire/dialect.ts",
    "src/ocpp/wire/profiles.ts",
  ],
  "test/ocpp/connector.test.ts": ["src/ocpp/orders.ts"],
  "test/ocpp/problems.test.ts": ["src/ocpp/stationCounts.ts"],
  "test/ocpp/proxy.test.ts": [
    "src/ocpp/foreignProfiles.ts",
    "src/ocpp/relay.ts",
    "src/ocpp/relayStore.ts",
    "src/ocpp/repeats.ts",
    "src/ocpp/upstreamLink.ts",
  ],
  "test/ocpp/start.test.ts": [
    "src/ocpp/bridge.ts",
    "src/ocpp/outlet.ts",
    "src/ocpp/probe.ts",
    "src/ocpp/server.ts",
    "src/ocpp/station.ts",
    "src/ocpp/status.ts",
  ],
  "test/e2e/stream.test.ts": ["src/operator/live.ts"],
  "test/operator/http/openapi.test.ts": [
    "src/operator/http/answers.ts",
    "src/operator/http/configurationAnswers.ts",
    "src/operator/http/chargerAnswers.ts",
    "src/operator/http/holdAnswers.ts",
    "src/operator/http/siteAnswers.ts",
  ],
  "test/e2e/access.test.ts": [
    "src/cli/commands/user.ts",
    "src/daemon/siteViews.ts",
    "src/daemon/stateFolder.ts",
  ],
  "test/operator/http/access.test.ts": ["src/operator/http/session.ts", "src/operator/http/route.ts"],
  "test/operator/http/serverPart.test.ts": ["src/operator/http/views.ts", "src/operator/http/problem.ts"],
  "test/e2e/checkLive.test.ts": [
    "src/cli/live/checkLive.ts",
    "src/cli/live/floor.ts",
    "src/cli/live/partner.ts",
    "src/cli/live/trials.ts",
  ],
  "test/e2e/doctor.test.ts": ["src/cli/commands/doctor.ts", "src/cli/live/running.ts"],
  "test/e2e/bundle.test.ts": ["src/cli/commands/bundle.ts"],
  "test/e2e/homeAssistant.test.ts": ["src/daemon/homeAssistant/pipeline.ts"],
  "test/e2e/webhookTest.test.ts": ["src/cli/commands/webhookTest.ts"],
  "test/e2e/proof.test.ts": ["src/daemon/proof.ts", "src/cli/commands/proof.ts"],
  "test/proof/compose.test.ts": ["src/proof/sections.ts", "src/proof/vehicles.ts"],
  "test/store/chain.test.ts": ["src/domain/audit.ts"],

  "test/reporting/reportSchedule.test.ts": ["src/reporting/obligations.ts"],
  "test/e2e/twoGateways.test.ts": ["src/daemon/standIn.ts", "src/store/postgres/inbox.ts"],
  "test/e2e/fleetWebhook.test.ts": ["src/daemon/fleet/webhook.ts", "src/daemon/fleet/webhookThread.ts"],
  "test/e2e/fleet.test.ts": [
    "src/cli/commands/fleet.ts",
    "src/cli/commands/site.ts",
    "src/daemon/fleet/fleet.ts",
    "src/daemon/fleet/operator.ts",
    "src/daemon/fleet/siteEdges.ts",
    "src/operator/http/fleet.ts",
  ],
  "test/daemon/moveState.test.ts": [
    "src/cli/commands/state.ts",
    "src/store/movedState.ts",
    "src/store/postgres/move.ts",
    "src/store/postgres/movedRows.ts",
    "src/store/sqlite/move.ts",
    "src/store/sqlite/movedRows.ts",
  ],
  "test/e2e/restart.test.ts": ["src/cli/commands/run.ts", "src/daemon/arrivals.ts", "src/daemon/site.ts"],
  "test/e2e/demo.test.ts": ["src/sim/ocppCharger.ts", "src/cli/commands/demo.ts"],
  "test/chargers/native/messages.test.ts": ["src/chargers/native/payload.ts"],
  "test/chargers/connections.test.ts": [
    "src/chargers/connectedCharger.ts",
    "src/chargers/driver.ts",
    "src/domain/charger.ts",
  ],
  "test/control/ingest/ingest.test.ts": ["src/domain/delivery.ts"],
  "test/control/ingest/intake.test.ts": ["src/control/ingest/endings.ts"],
  "test/daemon/fleet/deliveries.test.ts": ["src/daemon/deliveryFailures.ts"],
  "test/daemon/fleet/ledSites.test.ts": ["src/daemon/fleet/backOffs.ts"],
  "test/chargers/profileDriver.test.ts": [
    "src/chargers/profile/driverState.ts",
    "src/chargers/profile/decodeMessage.ts",
  ],
  "test/chargers/profile/everyMake.test.ts": [
    "src/chargers/profile/telemetryMap.ts",
    "src/chargers/profile/publishes.ts",
  ],
  "test/chargers/profile/makes/warp.test.ts": ["src/chargers/profile/signals.ts"],
  "test/chargers/evccDriver.test.ts": ["src/chargers/profile/acceptance.ts"],
  "test/chargers/profile/schema.test.ts": [
    "src/chargers/profile/consistency.ts",
    "src/chargers/profile/telemetryConsistency.ts",
    "src/chargers/profile/sections.ts",
  ],
  "test/e2e/profile.test.ts": ["src/cli/commands/profile.ts"],
  "test/reporting/plan.test.ts": ["src/reporting/grid.ts"],
  "test/sim/chargers.test.ts": ["src/sim/mqttModel.ts"],
  "test/sim/models.test.ts": [
    "src/sim/simulatedModel.ts",
    "src/sim/models/evcc.ts",
    "src/sim/models/everest.ts",
    "src/sim/models/goE.ts",
    "src/sim/models/model.ts",
    "src/sim/models/ocpp.ts",
    "src/sim/models/openEvse.ts",
    "src/sim/models/openWb.ts",
    "src/sim/models/smartEvse.ts",
    "src/sim/models/victron.ts",
    "src/sim/models/warp.ts",
  ],
  "test/commissioning/trial.test.ts": ["src/commissioning/judgement.ts"],
  "test/e2e/commission.test.ts": [
    "src/daemon/commissioningBench.ts",
    "src/cli/commands/commission.ts",
    "src/daemon/commissions.ts",
  ],
  "test/store/postgres/storeSuite.test.ts": [
    "src/store/postgres/auditRows.ts",
    "src/store/postgres/batch.ts",
    "src/store/postgres/bodies.ts",
    "src/store/postgres/lists.ts",
    "src/store/postgres/eventRows.ts",
    "src/store/postgres/readingQueue.ts",
    "src/store/postgres/readings.ts",
    "src/store/postgres/store.ts",
  ],
  "test/store/postgres/faults.test.ts": ["src/store/postgres/announcements.ts"],
  "test/store/postgres/open.test.ts": [
    "src/store/postgres/database.ts",
    "src/store/postgres/inspect.ts",
    "src/store/postgres/schema.ts",
    "src/store/postgres/verify.ts",
  ],
  "test/store/sqlite/open.test.ts": [
    "src/store/sqlite/fault.ts",
    "src/store/sqlite/openDatabase.ts",
    "src/store/sqlite/disk.ts",
    "src/store/sqlite/loadState.ts",
  ],
  "test/vtn/client.test.ts": ["src/vtn/authorized.ts", "src/vtn/dialects/choose.ts"],
  "test/vtn/dialects/partner/prices.test.ts": ["src/vtn/dialects/partner/priceEntries.ts"],
  "test/e2e/prices.test.ts": ["src/daemon/pipeline.ts", "src/cli/commands/prices.ts"],
  "test/e2e/reports.test.ts": ["src/cli/commands/reports.ts"],
  "test/control/decide/evaluationQueue.test.ts": ["src/control/decide/freeing.ts"],
  "test/control/pipeline.test.ts": ["src/control/stage.ts", "src/control/stages.ts"],
  "test/reporting/collect.test.ts": ["src/reporting/chargerReadings.ts"],
  "test/reporting/pipeline.test.ts": [
    "src/reporting/auditRows.ts",
    "src/reporting/composer.ts",
    "src/reporting/sender.ts",
  ],
  "test/store/sqlite/readings.test.ts": ["src/store/readingRow.ts", "src/store/sqlite/readingBuffer.ts"],
  "test/store/sqlite/store.test.ts": ["src/store/sqlite/reads.ts"],
  "test/e2e/backup.test.ts": ["src/cli/commands/backup.ts"],
  "test/control/rollBack.test.ts": ["src/domain/changes.ts"],
  "test/control/decide/reason.test.ts": ["src/domain/reason.ts"],
  "test/reporting/outbox.test.ts": ["src/domain/report.ts"],
  "test/control/observe/occupancy.test.ts": ["src/domain/vehicle.ts"],
  "test/control/state.test.ts": ["src/control/schedule/schedule.ts"],
};

/** `vtn/dialects` and `chargers/profile` are rooms of their own: pure, and importable where their parent is not. */
function roomOf(file: string): string {
  const [, first = "", second = ""] = file.split("/");
  if (!file.slice("src/".length).includes("/")) return "main";
  const inner = `${first}/${second}`;
  return inner in MAY_IMPORT ? inner : first;
}

/** Files that a file imports, from any kind of import, types included. */
const importsOf = (file: string): readonly string[] =>
  [...text(file).matchAll(/^(?:import|export)\b[^;]*?from "(\.[^"]+)"|import\("(\.[^"]+)"\)/gm)].map(
    (match) => relative(root, resolve(root, dirname(file), match[1] ?? match[2] ?? "")),
  );

test("a room imports only from the rooms that the table allows", () => {
  const forbidden = source.flatMap((file) => {
    const room = roomOf(file);
    const allowed = MAY_IMPORT[room];
    if (allowed === "every room") return [];
    return importsOf(file)
      .filter((target) => roomOf(target) !== room && allowed?.includes(roomOf(target)) !== true)
      .map((target) => `${file} -> ${target}`);
  });
  expect(forbidden).toEqual([]);
});

test("rooms with rules import no package but those that the table allows", () => {
  const forbidden = source.flatMap((file) => {
    const allowed = PACKAGES[roomOf(file)];
    const packages = [...text(file).matchAll(/^(?:import|export)\b[^;]*?from "([^."][^"]*)"/gm)].map(
      (match) => match[1] ?? "",
    );
    return packages
      .filter((name) => allowed !== undefined && !allowed.includes(name) && !name.startsWith("rxjs"))
      .map((name) => `${file} -> ${name}`);
  });
  expect(forbidden).toEqual([]);
});

test("outside the dialects only the simulated partner and signatures know the partner's wire format", () => {
  const importers = source
    .filter((file) => !file.startsWith("src/vtn/dialects/"))
    .flatMap((file) =>
      importsOf(file)
        .filter((target) => target.startsWith("src/vtn/dialects/partner/"))
        .map((target) => `${file} -> ${target}`),
    );
  const FIELDS = "src/vtn/dialects/partner/fields.ts";
  expect(importers.toSorted()).toEqual([
    `src/sim/events.ts -> ${FIELDS}`,
    `src/vtn/signature.ts -> ${FIELDS}`,
  ]);
});

test("a store is known by its interface: only the daemon and the verb backup know SQLite", () => {
  // A backup copies the files of SQLite as they are.
  const COPIES = "src/cli/commands/backup.ts";
  const importers = source
    .filter((file) => !file.startsWith("src/store/") && roomOf(file) !== "daemon" && file !== COPIES)
    .filter((file) => importsOf(file).some((target) => target.startsWith("src/store/")));
  expect(importers).toEqual([]);
});

test("no file imports itself through others, types included", () => {
  const circles: string[] = [];
  const state = new Map<string, "open" | "done">();
  const visit = (file: string, path: readonly string[]): void => {
    if (state.get(file) === "open") circles.push([...path.slice(path.indexOf(file)), file].join(" -> "));
    if (state.has(file)) return;
    state.set(file, "open");
    for (const target of importsOf(file)) visit(target, [...path, file]);
    state.set(file, "done");
  };
  for (const file of source) visit(file, []);
  expect(circles).toEqual([]);
});

/** Packages that a file needs before its first line runs: through static imports of values. */
function packagesAtStart(file: string): ReadonlySet<string> {
  const seen = new Set<string>();
  const packages = new Set<string>();
  const visit = (path: string): void => {
    if (seen.has(path)) return;
    seen.add(path);
    for (const [, target = ""] of text(path).matchAll(
      /^(?:import|export) (?!type\b)[^;]*?from "([^"]+)"/gm,
    )) {
      if (target.startsWith(".")) visit(relative(root, resolve(root, dirname(path), target)));
      else if (!target.startsWith("node:")) packages.add(target);
    }
  };
  visit(file);
  return packages;
}

test("a verb imports no more than it needs: --help no verb, and what reads a configuration no network", () => {
  expect([...packagesAtStart("src/main.ts")]).toEqual(["commander"]);
  const network = ["aedes", "fastify", "mqtt", "pino", "prom-client", "rxjs", "undici"];
  for (const verb of ["audit", "backup", "check", "plan", "poll", "release", "status", "user"]) {
    const packages = packagesAtStart(`src/cli/commands/${verb}.ts`);
    expect([verb, ...network.filter((name) => packages.has(name))]).toEqual([verb]);
  }
  // A site whose state is a folder does not load the client of PostgreSQL.
  expect([...packagesAtStart("src/daemon/offline.ts")]).not.toContain("pg");
});

test("only main.ts stands loose in src, and src has at most 473 files", () => {
  expect(source.filter((file) => roomOf(file) === "main")).toEqual(["src/main.ts"]);
  expect(source.length).toBeLessThanOrEqual(473);
});

test("the page imports nothing from the daemon, and has at most 43 files", () => {
  const page = readdirSync(join(root, PAGE), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => `${PAGE}${name}`);
  expect(page.length).toBeLessThanOrEqual(43);
  const outside = page.flatMap((file) =>
    importsOf(file)
      .filter((target) => !target.startsWith(PAGE))
      .map((target) => `${file} -> ${target}`),
  );
  expect(outside).toEqual([]);
  expect(page.filter((file) => /innerHTML|outerHTML|insertAdjacentHTML/.test(text(file)))).toEqual([]);
  // A link without `linkTo` leaves the site of a fleet.
  expect(page.filter((file) => /href=("|\{`)\/\w/.test(text(file)))).toEqual([]);
  // apiAnswers.ts is generated. All texts stand in one file, so that a second language is one file.
  const long = page.filter(
    (file) => !/(texts|apiAnswers)\.ts$/.test(file) && text(file).split("\n").length > 301,
  );
  expect(long).toEqual([]);
});

test("only the daemon subscribes, and the operators of scheduling", () => {
  // The broker's client has a verb of the same name.
  const subscribing = source.filter(
    (file) => roomOf(file) !== "chargers" && roomOf(file) !== "sim" && text(file).includes(".subscribe("),
  );
  expect(subscribing).toEqual(["src/daemon/daemon.ts", "src/daemon/operatorSide.ts", ...RXJS]);
});

test("RxJS is imported in pipelines and in scheduling", () => {
  const importing = source.filter((file) => /from "rxjs/.test(text(file)));
  expect(importing.filter((file) => !file.endsWith("/pipeline.ts") && !RXJS.includes(file))).toEqual([]);
});

test("rooms with rules read no clock and no random source", () => {
  const reading = source
    .filter((file) => PURE.includes(roomOf(file)))
    .filter((file) =>
      /\b(Date\.now|Math\.random|new Date\(\)|performance\.now|DateTime\.(now|utc)\(\))/.test(text(file)),
    );
  expect(reading).toEqual([]);
});

test("only daemon/real.ts, the command line and the simulator read the wall clock or a random source", () => {
  const reading = source
    .filter((file) => !["cli", "sim"].includes(roomOf(file)))
    .filter((file) => /\b(Date\.now|Math\.random|new Date\(\)|DateTime\.(now|utc)\(\))/.test(text(file)));
  // A thread cannot be handed a clock.
  expect(reading).toEqual(["src/daemon/real.ts", "src/daemon/fleet/webhookThread.ts"]);
});

test("no file is longer than 300 lines without a listed reason", () => {
  const long = source.filter((file) => text(file).split("\n").length > 301);
  expect(long).toEqual(Object.keys(LONG));
});
test("every file with behaviour has its test, or is listed with the test that holds it", () => {
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
