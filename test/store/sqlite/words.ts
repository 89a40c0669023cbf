import type { AuditEntry } from "../../../src/domain/audit.ts";
import type { Change } from "../../../src/domain/changes.ts";
import type { CommandRecord } from "../../../src/domain/command.ts";
import type { KnownEvent } from "../../../src/domain/event.ts";
import type { ReportRecord } from "../../../src/domain/report.ts";
import { amperes, chargerId, eventId, instant, vehicleId } from "../../../src/domain/units.ts";

export const NOON = instant(Date.parse("2026-11-21T12:00:00Z"));

const entry = (words: string, more: Partial<AuditEntry> = {}): AuditEntry => ({
  at: NOON,
  kind: "decision",
  charger: null,
  vehicle: null,
  event: null,
  command: null,
  words,
  facts: null,
  ...more,
});

export const row = (words: string, more: Partial<AuditEntry> = {}): Change => ({
  kind: "audit",
  entry: entry(words, more),
});

export const commandRecord = (charger: string, seq: number, epoch = 7): CommandRecord => ({
  command: {
    charger: chargerId(charger),
    epoch,
    seq,
    desired: { kind: "current", amperes: amperes(16) },
    until: NOON,
    vehicle: vehicleId("veh-214"),
    event: eventId("EV-7731"),
    cause: "event",
    decidedAt: NOON,
  },
  progress: "planned",
  sentAt: null,
  sends: 0,
  failures: 0,
  replaces: null,
  judgeAt: null,
  resends: 0,
});

export const tombstone = (id: string): KnownEvent => ({
  kind: "withdrawn",
  id: eventId(id),
  watermark: NOON,
  anchor: null,
  receivedAt: NOON,
  deletedAt: NOON,
  endings: [],
  descriptors: 0,
});

export const reportRecord = (name: string, more: Partial<ReportRecord> = {}): ReportRecord => ({
  name,
  event: eventId(name.split("/")[0] ?? ""),
  descriptor: 0,
  k: 0,
  payloadType: "USAGE",
  span: { from: NOON, until: NOON },
  summary: "1 vehicle, 4.2 kWh",
  flags: [],
  composedAt: NOON,
  since: NOON,
  state: "waiting",
  nextTry: NOON,
  attempts: 0,
  status: null,
  reason: null,
  receipt: null,
  sentAt: null,
  ...more,
});
