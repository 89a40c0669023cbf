import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

import { alarmView } from "../../src/domain/alarm.ts";
import { type AuditRow, auditEntry, type Json } from "../../src/domain/audit.ts";
import { type Instant, instant } from "../../src/domain/units.ts";
import { type Answer, asJson } from "../../src/operator/answer.ts";
import { Accounts } from "../../src/operator/accounts.ts";
import type { ListenerOptions } from "../../src/operator/http/server.ts";
import { LiveStream } from "../../src/operator/http/stream.ts";
import type { OperatorViews } from "../../src/operator/http/views.ts";
import { anAlarm } from "./anAlarm.ts";
import { aChargerRow, aDeparture, anEventRow, someAnswers } from "./someAnswers.ts";

export const T0: Instant = instant(Date.parse("2026-11-23T05:30:00Z"));

/** A text as the pieces of a proof. */
export async function* inPieces(text: string): AsyncGenerator<string> {
  yield text;
}

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
  onBinding: () => {},
  onError: (error) => {
    throw error;
  },
  passing: () => null,
  ...over,
});

const answered = (value: unknown): Answer<Json> => ({ ok: true, value: asJson(value) });

/** Views of a site with two chargers. */
export const someViews: OperatorViews = {
  ready: () => true,
  health: () => ({ fit: true, status: "controlling" }),
  status: () => asJson(someAnswers.status),
  site: () => asJson(someAnswers.site),
  events: () => ["EV-1", "EV-2", "EV-3"].map((id) => asJson(anEventRow(id))),
  chargers: () => ["bay-01", "bay-02"].map((id) => asJson(aChargerRow(id))),
  vehicles: () => [asJson(someAnswers.vehicle)],
  verify: async () => asJson(someAnswers.recordCheck),
  audit: () => [asJson(someAnswers.auditRow)],
  prices: () => [asJson(someAnswers.priceSeries)],
  reports: () => [asJson(someAnswers.report)],
  explain: () => answered(someAnswers.explanation),
  handover: async () => answered(someAnswers.handover),
  readings: async () => answered(someAnswers.readings),
  stream: new LiveStream(),
  mode: {
    get: () => ({ ...someAnswers.mode }),
    put: async (_body, by) => answered({ ...someAnswers.changedMode, sentence: `mode drive, by ${by}` }),
  },
  holds: {
    list: () => answered([someAnswers.hold]),
    open: async (_body, by) => answered({ ...someAnswers.openedHold, by }),
    end: async (id, _body, by) => answered({ ...someAnswers.hold, id, by }),
    preview: async () => answered(someAnswers.holdPreview),
  },
  resend: async (charger, _body, by) =>
    answered({ ...someAnswers.resent, charger, sentence: `sent again by ${by}` }),
  reboots: {
    get: (charger) => answered({ ...someAnswers.reboot, charger }),
    start: async (charger, _body, by) =>
      answered({ ...someAnswers.reboot, charger, will: [`restarts for ${by}`] }),
  },
  bindings: {
    bind: async (charger, _body, by, key) =>
      answered({ ...someAnswers.bound, charger, by, sentence: `named with the key ${key}` }),
    unbind: async (charger, _body, by) =>
      answered({ ...someAnswers.bound, charger, by, sentence: "taken back" }),
  },
  bundle: async (by) => Buffer.from(`archive for ${by}`),
  sitePower: async () => answered(someAnswers.sitePower),
  configuration: {
    get: async () => asJson(someAnswers.configuration),
    apply: async (_body, by) => answered({ ...someAnswers.changedConfiguration, sentence: `by ${by}` }),
    rollback: async (_body, by) =>
      answered({ ...someAnswers.changedConfiguration, kind: "rollback", sentence: `by ${by}` }),
  },
  trials: {
    get: (charger) => answered({ ...someAnswers.trial, charger }),
    start: async (charger, { silence, reason }, by, key) => {
      const { run } = someAnswers.trial;
      return answered({
        ...someAnswers.trial,
        charger,
        hindrance: key,
        run: { ...run, silence, reason, by },
      });
    },
    stop: (charger, by) => answered({ ...someAnswers.trial, charger, hindrance: `stopped by ${by}` }),
    brokers: async (reason, by) => answered({ ...someAnswers.brokerTrial, reason, by }),
  },
  eventPlan: async (event) => answered({ ...someAnswers.eventPlan, event }),
  proof: async (event, format) =>
    event === "EV-9"
      ? { ok: false, reason: "nothing is known of an event EV-9" }
      : {
          ok: true,
          pieces: inPieces(
            format === "json" ? `${JSON.stringify([someAnswers.proofFact])}\n` : "section,what\n",
          ),
        },
  alarms: {
    list: () => answered([someAnswers.alarm]),
    acknowledge: async (key) => ({ ok: true, value: alarmView({ ...anAlarm("broker"), key }) }),
  },
  departures: {
    list: () => answered([aDeparture]),
    of: () => asJson(aDeparture),
    set: async (vehicle, _body, by) => answered({ ...aDeparture, vehicle, by, source: "api" }),
    clear: async (vehicle) => answered({ ...someAnswers.clearedDeparture, vehicle }),
    skip: async (vehicle) => answered({ ...someAnswers.skippedDeparture, vehicle }),
    importCsv: async () => answered(someAnswers.importedDepartures),
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
