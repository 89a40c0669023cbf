import type * as z from "zod";

import { answers } from "../../src/operator/http/answers.ts";
import { routesOf } from "../../src/operator/http/server.ts";
import type { OperatorViews } from "../../src/operator/http/views.ts";
import { instant } from "../../src/domain/units.ts";

/** Answers of the API, whole. */

type Answers = { readonly [Name in keyof typeof answers]: z.output<(typeof answers)[Name]> };

const AT = "2026-11-23T05:30:00.000Z";
const END = "2026-11-23T06:00:00.000Z";

const aHold: Answers["hold"] = {
  id: "hold-7-1",
  scope: { vehicle: "veh-214" },
  kind: "level",
  level: { currentA: 16 },
  end: "at",
  since: AT,
  until: END,
  by: "anna",
  reason: "leaves early",
  events: [],
  eventCount: 0,
  sentence: "hold hold-7-1 of anna on veh-214: 16 A until 06:00:00",
  energyWh: null,
  deliveredWh: null,
  state: "open",
  ended: null,
  chargers: 1,
  effect: [
    {
      charger: "bay-01",
      vehicle: "veh-214",
      level: { currentA: 16 },
      applies: true,
      limits: ["40 A asked, 32 A allowed"],
      overrules: ["EV-1"],
      waits: null,
      verdict: "followed",
    },
  ],
};

const holdFacts = {
  id: aHold.id,
  scope: aHold.scope,
  kind: aHold.kind,
  level: aHold.level,
  end: aHold.end,
  since: AT,
  until: END,
  by: aHold.by,
  reason: aHold.reason,
  events: [],
  eventCount: 0,
};

const period = { since: AT, until: END, by: "anna", reason: "work on the panel", sentence: "mode observe" };

export const aDeparture: Answers["departure"] = {
  vehicle: "veh-214",
  name: "Bus 214",
  charger: "bay-01",
  at: "2026-11-23T05:40:00.000Z",
  need: { energyWh: 18_000 },
  source: "weekly",
  by: null,
  state: "short",
  leavesInS: 600,
  deliveredWh: 9000,
  soc: 71,
  remainingWh: 9000,
  powerW: 4100,
  readyAt: "2026-11-23T06:22:00.000Z",
  slackS: -2520,
  short: { energyWh: 7700 },
  cause: "event",
  because: "7.7 kWh short at 05:40:00: event EV-1 allows 4.1 kW until 06:00:00",
  missing: [],
  assumed: [],
  guardFrom: null,
};

const claim = {
  event: "EV-1",
  priority: 1,
  asked: "16 A",
  from: AT,
  until: END,
  offsetMs: 0,
  spreadMs: 0,
  cutAt: null,
};

export const anEventRow = (id: string): Answers["event"] => ({
  id,
  name: "Evening peak",
  programId: "program-1",
  state: "active",
  priority: 1,
  start: AT,
  end: END,
  randomizeStartMs: 0,
  ask: { kind: "current", level: 16 },
  vehicles: ["veh-214"],
  foreignVehicles: 1,
  unknownVehicles: [{ id: "veh-241", didYouMean: "veh-214" }],
  odd: [],
  reportDescriptors: 0,
  source: "poll",
  receivedAt: AT,
  modified: AT,
});

export const aChargerRow = (charger: string): Answers["charger"] => ({
  charger,
  vehicle: "veh-214",
  occupant: "vehicle",
  asked: { kind: "current", value: 16, unit: "A", event: "EV-1" },
  allowed: { kind: "current", value: 16, unit: "A" },
  measured: { at: AT, state: "charging", powerW: 11_000, currentsA: [16, 16, 16], limitA: 16 },
  hold: holdFacts,
  online: true,
  reachable: true,
  heardAt: AT,
  verdict: "followed",
  command: "7-1042",
  reason: {
    words: "bay-01 (Bus 214) to 16 A",
    cause: "event",
    until: END,
    held: { by: "release ramp", until: END },
    winner: claim,
    overruled: [claim],
    overruledCount: 1,
    limits: [{ by: "charger", asked: "40 A", allowed: "32 A" }],
    occupant: { kind: "vehicle", vehicle: "veh-214", source: "identity" },
    hold: holdFacts,
  },
  until: END,
  soc: 71,
  writes: { lastHour: 3, most: 60 },
  commissioning: false,
});

export const someAnswers: Answers = {
  status: {
    site: "depot",
    timezone: "UTC",
    startedAt: AT,
    mode: "observe",
    observing: period,
    ready: true,
    now: AT,
    epoch: 7,
    lookedAt: AT,
    next: END,
    partner: { ok: true, answeredAt: AT, failures: 0, lastFailure: null, stale: false, skewMs: 12 },
    broker: { connected: true, reason: null },
    problems: [{ since: AT, kind: "offline", subject: "bay-02", message: "offline", action: "check it" }],
    chargers: {
      total: 2,
      online: 1,
      unreachable: 1,
      limited: 1,
      notSent: 0,
      followed: 1,
      notFollowed: 0,
      refused: 0,
    },
    holds: { open: 1, list: [{ ...holdFacts, sentence: aHold.sentence }] },
    events: {
      known: 1,
      dispatches: 1,
      active: [{ id: "EV-1", name: "peak", asked: "16 A", vehicles: 1, start: AT, end: END, modified: AT }],
    },
    certificates: [{ certificate: "webhook", subject: "CN=depot", notAfter: END, alarm: null }],
    webhook: { refused: { headerMissing: { count: 1, lastAt: AT, lastFrom: "::1", explanation: "none" } } },
    store: { commits: 9, failures: 0, longestCommitMs: 3, failing: null, bytes: 4096, free: null },
    quarantine: [{ at: AT, source: "webhook", event: null, path: "id", reason: "missing", raw: "{}" }],
  },
  site: {
    site: "depot",
    timezone: "UTC",
    version: "1.2.3",
    board: [["bay-01"]],
    makes: { "bay-01": "native" },
    ratings: { "bay-01": { phases: 3, voltage: 230, maxCurrentA: 32, maxPowerW: null } },
    fuseA: 250,
  },
  event: anEventRow("EV-1"),
  charger: aChargerRow("bay-01"),
  vehicle: {
    id: "veh-214",
    name: "Bus 214",
    charger: "bay-01",
    command: "7-1042",
    planned: [{ event: "EV-1", from: AT, until: END, offsetMs: 0, asked: { kind: "current", amperes: 16 } }],
    departure: aDeparture,
  },
  priceSeries: {
    region: "NO1",
    kind: "actual",
    fetchedAt: AT,
    outcome: "ok",
    reason: null,
    doubts: [],
    prices: [
      {
        start: AT,
        end: END,
        value: 0.5,
        currency: "NOK",
        perUnit: "kWh",
        region: "NO1",
        vat: { rate: 0.25, hasVAT: true },
      },
    ],
    raw: "[]",
  },
  report: {
    name: "EV-1/0/0",
    event: "EV-1",
    descriptor: 0,
    payloadType: "USAGE",
    state: "sent",
    from: AT,
    until: END,
    due: null,
    summary: "1 vehicle, 4.2 kWh",
    flags: [],
    composedAt: END,
    sentAt: END,
    nextTry: null,
    attempts: 1,
    status: 201,
    reason: null,
    receipt: null,
  },
  auditRow: {
    seq: 1,
    at: AT,
    kind: "decision",
    charger: "bay-01",
    vehicle: null,
    event: "EV-1",
    command: "7-1042",
    words: "bay-01 to 16 A",
    facts: null,
    hash: "abc",
  },
  recordCheck: { ok: true, rows: 3, head: "abc", readings: 2, unsigned: 0 },
  explanation: {
    sentence: "bay-01 follows EV-1",
    charger: "bay-01",
    vehicle: "veh-214",
    at: AT,
    claims: [
      {
        kind: "event",
        source: "EV-1",
        level: { currentA: 16 },
        since: AT,
        until: END,
        status: "wins",
        because: "priority 1",
      },
    ],
    without: { level: { release: true }, most: { currentA: 32 } },
    departure: null,
  },
  readings: {
    charger: "bay-01",
    vehicle: null,
    from: AT,
    until: END,
    current: [],
    power: [],
    soc: [],
    limit: [],
    setpoints: [{ at: AT, level: { currentA: 16 }, event: "EV-1" }],
  },
  hold: aHold,
  openedHold: { ...aHold, others: [{ id: "hold-7-0", scope: { site: true }, sentence: "hold hold-7-0" }] },
  mode: {
    mode: "observe",
    configured: "drive",
    onObserve: "release",
    observing: period,
    sentence: "mode observe",
  },
  changedMode: {
    mode: "drive",
    configured: "drive",
    onObserve: null,
    observing: null,
    sentence: "mode drive",
    replaced: period,
    limited: ["bay-01"],
  },
  alarm: {
    key: "broker",
    kind: "broker",
    severity: "warning",
    state: "acknowledged",
    since: AT,
    lastSeen: AT,
    clearedAt: null,
    count: 1,
    subject: null,
    message: "the broker cannot be reached",
    action: "check that it runs",
    acknowledged: { at: AT, by: "anna", note: "" },
  },
  resent: {
    charger: "bay-01",
    vehicle: "veh-214",
    command: "7-1042",
    level: { currentA: 16 },
    sentence: "bay-01 is sent 16 A again",
  },
  departure: aDeparture,
  clearedDeparture: { vehicle: "veh-214", next: aDeparture },
  importedDepartures: { departures: 1, vehicles: 1 },
};

/** Routes of a listener that never starts. */
const ROUTES = routesOf(
  Promise.withResolvers<OperatorViews>().promise,
  { access: { kind: "open" }, now: () => instant(0), monotonic: () => 0, record: () => {}, page: null },
  null,
).map(({ method, path, answer }) => ({
  method,
  path: new RegExp(`^${path.replaceAll(/:\w+/g, "[^/]+")}$`),
  answer,
}));

/** Throws if a successful answer of the API has a member that is not in its schema, or lacks one that is. */
export function checkAnswer(method: string, path: string, answer: unknown): void {
  const { pathname } = new URL(path, "http://127.0.0.1");
  const row = ROUTES.find((route) => route.method === method && route.path.test(pathname));
  const read = row?.answer?.safeParse(answer);
  if (read?.success === false)
    throw new Error(`${method} ${path} is not as described: ${read.error.message.slice(0, 2000)}`);
}
