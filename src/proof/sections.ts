import { hash } from "node:crypto";

import { factOf, type Json, numberOf, type RecordRow, textOf, type AuditEntry } from "../domain/audit.ts";
import type { ReportRecord } from "../domain/report.ts";
import {
  after,
  instant,
  iso,
  millis,
  type ChargerId,
  earlier,
  type Instant,
  later,
  type Window,
} from "../domain/units.ts";
import { type Fact, fact } from "./file.ts";

/**
 * What was asked: every revision as it came, with receipt time and source, and the withdrawal (DESIGN 5.2).
 * `powerUnit`: what the partner's power levels are in.
 */
export const askedFacts = (rows: readonly RecordRow[], powerUnit: "kW" | "W"): readonly Fact[] =>
  rows
    .filter(({ kind }) => kind === "event" || kind === "rejected")
    .flatMap((row) => [heading(row), ...details(row, powerUnit)]);

/** `new`, `changed`, `withdrawn`, `warning` or `rejected`, and when it came. */
function heading({ kind, at, facts, words, seq }: RecordRow): Fact {
  const what = textOf(facts, "outcome") ?? (kind === "rejected" ? kind : "warning");
  return fact("asked", what, { from: iso(at), words, seq });
}

function details({ facts, seq }: RecordRow, powerUnit: "kW" | "W"): readonly Fact[] {
  const said = (what: string, more: Omit<Partial<Fact>, "section" | "what">): Fact =>
    fact("asked", what, { ...more, seq });
  const source = textOf(facts, "source");
  const from = source === null ? [] : [said("source", { words: source })];
  const [start, duration] = [textOf(facts, "start"), numberOf(facts, "durationMs")];
  if (start === null || duration === null) return from;
  const priority = numberOf(facts, "priority");
  const foreign = numberOf(factOf(facts, "targets"), "foreignVehicles") ?? 0;
  return [
    ...from,
    said("modified", { from: textOf(facts, "revision") }),
    said("level", levelOf(factOf(facts, "ask"), powerUnit)),
    said("period", { from: start, until: iso(after(instant(Date.parse(start)), millis(duration))) }),
    said("random start within", { value: (numberOf(facts, "randomizeStartMs") ?? 0) / 1000, unit: "s" }),
    said("priority", priority === null ? { words: "none" } : { value: priority }),
    ...(foreign > 0 ? [said("targets that are not ours", { value: foreign, unit: "vehicles" })] : []),
    ...reportsIn(facts).map((words) => said("report asked for", { words })),
    said("content", { hash: textOf(facts, "hash") }),
  ];
}

/** `USAGE (DIRECT_READ)` of each descriptor. */
function reportsIn(facts: Json): readonly string[] {
  const reports = factOf(facts, "reports");
  return Array.isArray(reports)
    ? reports.map((report: Json) => `${textOf(report, "payloadType")} (${textOf(report, "readingType")})`)
    : [];
}

function levelOf(ask: Json, powerUnit: "kW" | "W"): Pick<Fact, "value" | "unit" | "words"> {
  const value = numberOf(ask, "level");
  if (value === null) return { value, unit: null, words: `payload type ${textOf(ask, "payloadType")}` };
  return { value, unit: factOf(ask, "kind") === "current" ? "A" : powerUnit, words: null };
}

/** What of the record concerns one event, in order, and what vouches for it. */
export interface EventRecord {
  readonly rows: readonly RecordRow[];
  /** The end of the whole record at the time, sealed with the site's key. */
  readonly head: { readonly seq: number; readonly hash: string; readonly seal: string };
  /** The checkpoint that pruning left in the place of all rows up to `facts.through`; null: nothing was pruned. */
  readonly checkpoint: RecordRow | null;
}

/** The rows themselves, so that anyone can hash each anew, and the sealed end of the chain that they are in. */
export const recordFacts = ({ rows, head, checkpoint }: EventRecord): readonly Fact[] => [
  ...(checkpoint === null ? [] : prunedFacts(checkpoint)),
  ...rows.map(({ seq, hash, previous, text }) => fact("record", "row", { seq, hash, previous, words: text })),
  fact("record", "head", {
    seq: head.seq,
    hash: head.hash,
    words: "the last row of the record when this was made",
  }),
  fact("record", "head seal", { hash: head.seal, words: "HMAC-SHA256 of the head with the site's key" }),
];

const prunedFacts = ({ facts, seq }: RecordRow): readonly Fact[] => [
  fact("record", "pruned", {
    seq,
    hash: textOf(facts, "hash"),
    value: numberOf(facts, "through"),
    words: `rows 1 to ${numberOf(facts, "through")} are no longer kept: if they said anything of this event, it is not here`,
  }),
];

/** A report as it is kept. */
export interface KeptReport {
  readonly record: ReportRecord;
  /** As it goes to the partner; null: not kept any more. */
  readonly body: string | null;
}

/**
 * The reports on an event, oldest first: what each holds, when it was sent, what the partner answered, and a hash by
 * which the partner knows it; then the descriptors that ended without one, and why (L3).
 */
export const reportFacts = (reports: readonly KeptReport[], rows: readonly RecordRow[]): readonly Fact[] => [
  ...reports
    .toSorted((a, b) => a.record.composedAt - b.record.composedAt)
    .flatMap(({ record, body }) => [...made(record, body), ...delivered(record)]),
  ...rows
    .filter(({ kind, facts }) => kind === "report" && textOf(facts, "descriptor") !== null)
    .map(({ at, words, seq }) => fact("report", "flagged", { from: iso(at), words, seq })),
];

const made = (
  { name, payloadType, span, summary, composedAt }: ReportRecord,
  body: string | null,
): readonly Fact[] => [
  fact("report", "report", {
    from: iso(span.from),
    until: iso(span.until),
    words: `${name} (${payloadType}): ${summary}`,
  }),
  fact("report", "composed", {
    from: iso(composedAt),
    words: `SHA-256 of its body`,
    hash: body === null ? null : hash("sha256", body),
  }),
];

function delivered({ state, status, sentAt, receipt, reason, attempts }: ReportRecord): readonly Fact[] {
  const answer = { value: status, unit: status === null ? null : "HTTP status" };
  if (sentAt === null || state !== "sent") return [fact("report", state, { ...answer, words: reason })];
  const from = iso(sentAt);
  return [
    fact("report", "sent", { from, value: attempts, unit: "tries" }),
    fact("report", "acknowledged", { from, ...answer, words: receipt }),
  ];
}

/** When the partner, a broker, a charger, the clock or setpointd itself was away or wrong. */
export interface Outage extends Window {
  /** Null: it befell the whole site. */
  readonly charger: ChargerId | null;
  readonly words: string;
  readonly seq: number;
}

/**
 * The outages that these rows, in order, tell of; one that is not over goes on for ever. A start of setpointd ends what
 * was open: from then on the record says that somebody is away only where the new run found that out itself.
 */
export function outagesIn(rows: readonly RecordRow[]): readonly Outage[] {
  const open = new Map<string, Outage>();
  const over: Outage[] = [];
  for (const row of rows) {
    const { at, charger, seq, facts, words: told } = row;
    if (isStart(row)) {
      for (const outage of open.values()) over.push({ ...outage, until: at });
      open.clear();
    }
    const outage = textOf(facts, "outage");
    if (outage === null) continue;
    const who = `${charger} ${outage}`;
    const words = `${outage}: ${told}`;
    const begun = open.get(who);
    const since = textOf(facts, "since");
    const from = begun?.from ?? (since === null ? at : instant(Date.parse(since)));
    if (factOf(facts, "over") !== true) {
      open.set(who, begun ?? { charger, words, seq, from, until: instant(Infinity) });
      continue;
    }
    open.delete(who);
    over.push({ charger, words, seq, from, until: at });
  }
  return [...over, ...open.values()].toSorted((a, b) => a.from - b.from);
}

/** Only the row of a start names the epoch of its run. */
const isStart = ({ kind, facts }: AuditEntry): boolean =>
  kind === "daemon" && numberOf(facts, "epoch") !== null;

/** Those of the site and of these chargers that reach into a vehicle's window, up to now; beside its figures they explain them. */
export const outageFacts = (
  outages: readonly Outage[],
  vehicle: string,
  chargers: ReadonlySet<string | null>,
  { from, until }: Window,
  now: Instant,
): readonly Fact[] =>
  outages
    .filter((outage) => outage.charger === null || chargers.has(outage.charger))
    .filter((outage) => outage.from < earlier(until, now) && outage.until >= from)
    .map(({ charger, words, seq, ...outage }) => {
      const during = { from: later(outage.from, from), until: earlier(outage.until, earlier(until, now)) };
      return fact("vehicle", "outage", {
        vehicle,
        charger,
        from: iso(during.from),
        until: iso(during.until),
        value: (during.until - during.from) / 1000,
        unit: "s",
        words,
        seq,
      });
    });
