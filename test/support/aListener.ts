import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

import { alarmView } from "../../src/domain/alarm.ts";
import { type AuditRow, auditEntry } from "../../src/domain/audit.ts";
import { type Instant, instant, iso } from "../../src/domain/units.ts";
import { Accounts } from "../../src/operator/accounts.ts";
import type { ListenerOptions } from "../../src/operator/http/server.ts";
import { LiveStream } from "../../src/operator/http/stream.ts";
import type { OperatorViews } from "../../src/operator/http/views.ts";
import { anAlarm } from "./anAlarm.ts";

export const T0: Instant = instant(Date.parse("2026-11-23T05:30:00Z"));

/** Options of an open listener on a free port. */
export const someListener = (over: Partial<ListenerOptions> = {}): ListenerOptions => ({
  host: "127.0.0.1",
  port: 0,
  hosts: [],
  tls: null,
  trustProxy: false,
  page: null,
  access: { kind: "open" },
  now: () => instant(Date.now()),
  monotonic: () => performance.now(),
  record: () => {},
  onError: (error) => {
    throw error;
  },
  ...over,
});

/** A departure as the API shows it. */
const aDeparture = {
  vehicle: "veh-214",
  name: "Bus 214",
  charger: "bay-01",
  at: "2026-11-23T05:40:00.000Z",
  need: { energyWh: 18_000 },
  source: "weekly",
  by: null,
  state: "short",
  readyAt: "2026-11-23T06:22:00.000Z",
  slackS: -2520,
  short: { energyWh: 7700 },
  cause: "event",
  because: "7.7 kWh short at 05:40:00: event EV-1 allows 4.1 kW until 06:00:00",
  missing: [],
  guardFrom: null,
};

/** Views of a site with two chargers. */
export const someViews: OperatorViews = {
  ready: () => true,
  health: () => ({ fit: true, words: "controlling" }),
  status: () => ({ mode: "drive" }),
  site: () => ({
    site: "depot",
    timezone: "UTC",
    version: "1.2.3",
    board: [],
    makes: {},
    ratings: {},
    fuseA: 250,
  }),
  events: () => [{ id: "EV-1" }, { id: "EV-2" }, { id: "EV-3" }],
  chargers: () => [{ charger: "bay-01" }, { charger: "bay-02" }],
  vehicles: () => [],
  verify: async () => ({ ok: true, rows: 3, head: "abc" }),
  audit: (query) => [{ ...query }],
  prices: () => [{ region: "NO1" }],
  reports: () => [{ name: "EV-1/0/0" }],
  explain: () => ({ ok: true, value: { sentence: "bay-01 follows EV-1", claims: [] } }),
  readings: async ({ charger }) => ({
    ok: true,
    value: {
      charger: charger ?? null,
      vehicle: null,
      from: iso(T0),
      until: iso(T0),
      current: [],
      power: [],
      soc: [],
      limit: [],
      setpoints: [],
    },
  }),
  stream: new LiveStream(),
  mode: {
    get: () => ({
      mode: "drive",
      configured: "drive",
      onObserve: "release",
      observing: null,
      sentence: "mode drive",
    }),
    put: async (_body, by) => ({
      ok: true,
      value: {
        mode: "drive",
        configured: "drive",
        onObserve: null,
        observing: null,
        sentence: `mode drive, by ${by}`,
      },
    }),
  },
  holds: {
    list: () => ({ ok: true, value: [{ id: "hold-7-1" }] }),
    open: async (body, by, key) => ({
      ok: true,
      value: { id: "hold-7-2", by, key, body: { ...(body as object) } },
    }),
    end: async (id, _body, by) => ({ ok: true, value: { id, by } }),
  },
  resend: async (charger, _body, by) => ({
    ok: true,
    value: { charger, vehicle: null, command: "7-1", sentence: `${charger} is sent 16 A again`, by },
  }),
  proof: async (event, format) =>
    event === "EV-9"
      ? { ok: false, reason: "nothing is known of an event EV-9" }
      : { ok: true, text: format === "json" ? "[{}]\n" : "section,what\n" },
  alarms: {
    list: () => ({ ok: true, value: [] }),
    acknowledge: async (key) => ({ ok: true, value: alarmView({ ...anAlarm("broker"), key }) }),
  },
  departures: {
    list: () => ({ ok: true, value: [aDeparture] }),
    of: () => aDeparture,
    set: async (vehicle, _body, by) => ({ ok: true, value: { ...aDeparture, vehicle, by, source: "api" } }),
    clear: async (vehicle) => ({ ok: true, value: { vehicle, next: aDeparture } }),
    importCsv: async () => ({ ok: true, value: { departures: 1, vehicles: 1 } }),
  },
  metrics: { contentType: "text/plain; version=0.0.4", text: async () => "up 1\n" },
};

/** Accounts in a folder of the test's own, with a further pair of eyes on the file. */
export function someAccounts(): {
  readonly accounts: Accounts;
  readonly again: () => Accounts;
  readonly path: string;
} {
  const state = mkdtempSync(join(tmpdir(), "setpointd-accounts-"));
  onTestFinished(() => rmSync(state, { recursive: true, force: true }));
  const again = (): Accounts =>
    new Accounts(state, {
      prepare: () => null,
      read: (path) => readFileSync(path),
      replace: (path, content) => writeFileSync(path, content, { mode: 0o600 }),
    });
  return { accounts: again(), again, path: join(state, "access.json") };
}

/** A row of the record. */
export const aRow = (seq: number): AuditRow => ({
  ...auditEntry("daemon", T0, `row ${seq}`),
  seq,
  hash: seq.toString(16).padStart(64, "0"),
});
