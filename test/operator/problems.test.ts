import { expect, test } from "vitest";

import { freshHealth } from "../../src/control/ingest/partnerHealth.ts";
import { ABSENT } from "../../src/control/observe/presence.ts";
import type { ControlState } from "../../src/control/state.ts";
import type { CommandRecord } from "../../src/domain/command.ts";
import { after, chargerId, millis, minutes, seconds, vehicleId } from "../../src/domain/units.ts";
import { runToEnd } from "../../src/platform/cooperative.ts";
import { countProblems, isUnreachable, problems } from "../../src/operator/problems.ts";
import type { ProblemSources } from "../../src/operator/siteProblems.ts";
import { RetentionAlarms } from "../../src/retention/rules.ts";
import { commandRecord, NOON } from "../store/sqlite/words.ts";
import { aVehicle } from "../support/aCharger.ts";
import { aPicture } from "../support/aPicture.ts";

const BAY = chargerId("bay-01");
const LATER = after(NOON, minutes(10));

const sources = (changes: Partial<ProblemSources> = {}): ProblemSources => ({
  startedAt: NOON,
  partner: { ...freshHealth(NOON), everAnswered: true },
  maxSkew: minutes(5),
  brokersAway: [],
  brokersUnstable: [],
  isLinked: () => true,
  failingCommits: null,
  database: null,
  clockDoubtedSince: null,
  unboundWebhook: null,
  refusedWebhooks: null,
  reportRequests: null,
  retention: [],
  failingReceivers: [],
  accessFault: null,
  configurationFault: null,
  ...changes,
});

/** Two chargers that were both heard. */
function heardDepot(): ControlState {
  const depot = aPicture();
  for (const id of depot.chargers.keys())
    depot.presence.update(id, { ...ABSENT, online: true, heardAt: NOON });
  return depot;
}

const found = (depot: ControlState, changes: Partial<ProblemSources> = {}) =>
  runToEnd(problems(depot, sources(changes), LATER)).map(
    ({ kind, subject, message }) => `${kind} ${subject ?? "-"}: ${message}`,
  );

const withCommand = (depot: ControlState, changes: Partial<CommandRecord>): ControlState => {
  depot.commands.record({ ...commandRecord("bay-01", 1), ...changes });
  return depot;
};

test("a healthy site has no problem", () => {
  expect(found(heardDepot())).toEqual([]);
});

test("a charger that never sent a message is a problem a minute after the start, and unreachable", () => {
  const depot = aPicture();
  const early = after(NOON, seconds(30));
  expect(runToEnd(problems(depot, sources(), early))).toEqual([]);
  expect(isUnreachable(depot, BAY, sources(), early)).toBe(false);
  expect(found(depot)).toEqual([
    "neverHeard bay-01: bay-01 has not sent a message since the start: it is unknown whether it receives commands",
    "neverHeard bay-02: bay-02 has not sent a message since the start: it is unknown whether it receives commands",
  ]);
  expect(isUnreachable(depot, BAY, sources(), LATER)).toBe(true);
});

test("a lost broker is one problem, not one for each charger, and its chargers are unreachable", () => {
  const depot = aPicture();
  const away = {
    isLinked: () => false,
    brokersAway: [{ name: "", since: NOON, reason: "the broker 127.0.0.1:1883 refuses us (Not authorized)" }],
  };
  expect(found(depot, away)).toEqual([
    "broker -: the broker 127.0.0.1:1883 refuses us (Not authorized); no setpoint reaches its chargers until it is connected",
  ]);
  expect(isUnreachable(heardDepot(), BAY, sources(away), LATER)).toBe(true);
  expect(found(depot, { ...away, brokersAway: [{ name: "yard", since: NOON, reason: null }] })).toEqual([
    "broker yard: the broker yard cannot be reached; no setpoint reaches its chargers until it is connected",
  ]);
});

test("a broker that keeps dropping our connection is a problem even while it is connected", () => {
  const drops = [
    { name: "", drops: 4 },
    { name: "yard", drops: 3 },
  ];
  expect(found(heardDepot(), { brokersUnstable: drops })).toEqual([
    "broker -: the broker dropped us 4 times within ten minutes",
    "broker yard: the broker yard dropped us 3 times within ten minutes",
  ]);
});

test("an offline charger and a silent charger are different problems", () => {
  const depot = heardDepot();
  depot.presence.update(BAY, { ...ABSENT, online: false });
  const silent = chargerId("bay-02");
  depot.silence.noteMessage(silent, millis(0));
  depot.silence.newlySilent(minutes(20), minutes(5), () => true);
  expect(found(depot)).toEqual([
    "offline bay-01: bay-01 is offline: no setpoint reaches it until it is back",
    "silent bay-02: bay-02 sent messages before and is silent now: whether it follows its setpoint is not known",
  ]);
  expect(isUnreachable(depot, BAY, sources(), LATER)).toBe(true);
});

test("a refused publish is shown with the broker's reason until a publish succeeds", () => {
  const depot = heardDepot();
  depot.commands.publishFailed(BAY, "Not authorized (topic setpointd/depot/chargers/bay-01/set)", NOON);
  expect(found(depot)).toEqual([
    "publish bay-01: the command of bay-01 was not published: Not authorized (topic setpointd/depot/chargers/bay-01/set)",
  ]);
});

const remedies = (over: Partial<CommandRecord>): readonly string[] =>
  runToEnd(problems(withCommand(heardDepot(), over), sources(), LATER)).map(({ action }) => action);

test("a remedy that the page has names its button first, then the verb", () => {
  expect(remedies({ progress: "notFollowed", outAt: NOON })).toEqual([
    expect.stringMatching(/"Send again" or "Reboot" on the page.*, or setpointd commission bay-01$/),
  ]);
  expect(remedies({ progress: "refused" })).toEqual([
    expect.stringMatching(/page System, or setpointd commission bay-01; .* page Log, or setpointd audit/),
  ]);
});

test("refused commands and commands that are not followed are shown", () => {
  expect(found(withCommand(heardDepot(), { progress: "refused" }))).toEqual([
    "refused bay-01: bay-01 refuses 16 A",
  ]);
  expect(found(withCommand(heardDepot(), { progress: "refused", refusal: "load balancer\nis off" }))).toEqual(
    ["refused bay-01: bay-01 refuses 16 A (load balancer\uFFFDis off)"],
  );
  expect(found(withCommand(heardDepot(), { progress: "refused", refusal: null }))).toEqual([
    "refused bay-01: bay-01 refuses 16 A and gives no reason",
  ]);
  expect(found(withCommand(heardDepot(), { progress: "notFollowed", outAt: NOON }))).toEqual([
    "notFollowed bay-01: bay-01 does not follow its setpoint of 16 A",
  ]);
  expect(found(withCommand(heardDepot(), { progress: "followed" }))).toEqual([]);
  const standing: CommandRecord = { ...commandRecord("bay-01", 1), progress: "refused" };
  expect(found(withCommand(heardDepot(), { progress: "observed", standing }))).toEqual([
    "refused bay-01: bay-01 refuses 16 A",
  ]);
});

test("an identity that no vehicle has is a problem where it takes a vehicle without identities off its charger", () => {
  const depot = heardDepot();
  const identity = { kind: "rfid", value: "04aa" };
  depot.occupancy.note(BAY, { at: NOON, identity }, NOON);
  expect(found(depot)).toEqual([
    "unknownVehicle bay-01: bay-01 reports the identity rfid 04aa, which no vehicle has: Bus 214, which is fixed to it, gets no setpoint",
  ]);
  depot.occupancy.note(BAY, { at: NOON, state: "unplugged" }, NOON);
  expect(found(depot)).toEqual([]);
  const named = aPicture({
    vehicles: [aVehicle({ charger: BAY, identities: [{ kind: "rfid", value: "04bb" }] })],
  });
  named.occupancy.note(BAY, { at: NOON, identity }, NOON);
  expect(found(named).filter((problem) => !problem.startsWith("neverHeard"))).toEqual([]);
});

test("a charger is shown that stays limited for a vehicle reported at another charger", () => {
  const depot = withCommand(heardDepot(), { progress: "followed" });
  const bus = vehicleId("veh-214");
  const at = NOON;
  depot.occupancy.note(chargerId("bay-02"), { at, vehicle: "veh-214" }, at);
  expect(found(depot)).toEqual([]);
  depot.occupancy.kept.keep(BAY, bus, at);
  expect(found(depot)).toEqual([
    "contradicted bay-01: bay-01 keeps its limit for Bus 214, which is reported at bay-02; bay-01 has not reported that it is unplugged",
  ]);
});

test("a limited charger that left the configuration is shown", () => {
  const depot = heardDepot();
  depot.commands.record(commandRecord("bay-99", 1));
  expect(found(depot)).toEqual([
    "stranded bay-99: bay-99 left the configuration while it was limited to 16 A",
  ]);
});

test("partner, clock, disk and webhook problems are shown, the gravest first", () => {
  const partner = {
    ...freshHealth(NOON),
    failures: 3,
    lastFailure: "HTTP 500",
    skew: millis(600_000),
    skewed: 2,
  };
  const all = found(heardDepot(), {
    partner,
    failingCommits: { since: NOON, reason: "database or disk is full" },
    clockDoubtedSince: NOON,
    unboundWebhook: "listen EADDRNOTAVAIL 192.0.2.1:8090",
    refusedWebhooks: { count: 4, at: NOON, reason: "no X-Payload-Signature header" },
  });
  expect(all).toEqual([
    "disk -: nothing can be stored: database or disk is full; nothing new is decided, only releases go out",
    "clock -: the clock of this machine is behind the last record: no new event starts",
    "partner -: the partner cannot be asked: HTTP 500; the stored plan goes on",
    "skew -: our clock is 600 s ahead of the partner's",
    "webhook -: no webhook delivery can arrive: listen EADDRNOTAVAIL 192.0.2.1:8090; events are fetched by polling",
    "webhook -: webhook deliveries refused: 4; the last one: no X-Payload-Signature header",
  ]);
  const state = { database: { doubtedSince: null } };
  expect(
    found(heardDepot(), { ...state, failingCommits: { since: NOON, reason: "connection refused" } }),
  ).toEqual(["database -: nothing can be stored: connection refused; nothing new is decided"]);
  expect(found(heardDepot(), state)).toEqual([]);
  expect(found(heardDepot(), { database: { doubtedSince: NOON } })).toEqual([
    "database -: the lease on the site cannot be renewed in the database: nothing is sent, and chargers fall back by their own lease",
  ]);
  const behind = { ...freshHealth(NOON), failures: 1, skew: millis(-600_000), skewed: 2 };
  expect(found(heardDepot(), { partner: behind })).toEqual([
    "partner -: the partner cannot be asked: no answer; the stored plan goes on",
    "skew -: our clock is 600 s behind the partner's",
  ]);
});

test("data that will be pruned early is a problem, and so are reports that will have to wait", () => {
  const alarms = new RetentionAlarms();
  alarms.measured("readings", 0.82, false, NOON);
  const both = { retention: alarms.open, reportRequests: { made: 97, most: 120 } };
  expect(found(heardDepot(), both)).toEqual([
    "reports -: reports made 97 of at most 120 requests within the last hour; further ones wait",
    "retention readings: readings use 82 % of their disk space: beyond it the oldest are pruned before their age (report.keepReadings)",
  ]);
});

test("the counts contain every kind, zeros included", () => {
  const counts = countProblems(runToEnd(problems(aPicture(), sources(), LATER)));
  expect(counts).toMatchObject({ neverHeard: 2, broker: 0, disk: 0 });
});

test("a receiver that does not accept alarms is a problem with the reason", () => {
  const failingReceivers = [{ name: "webhook alerts.example", since: NOON, reason: "HTTP 502" }];
  expect(found(heardDepot(), { failingReceivers })).toEqual([
    "notify webhook alerts.example: alarms cannot be sent to webhook alerts.example: HTTP 502",
  ]);
});

test("accounts that cannot be read are a problem: no user can sign in", () => {
  expect(found(heardDepot(), { accessFault: "access.json cannot be used: bad JSON" })).toEqual([
    "access -: nobody can sign in: access.json cannot be used: bad JSON",
  ]);
});
