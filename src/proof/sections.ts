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
  type EventId,
  fromIso,
} from "../domain/units.ts";
import { type Fact, fact, kilo } from "./file.ts";

/**
 * Section `asked`: every revision of the event with receipt time and source, and its withdrawal. `powerUnit`: unit of
 * the partner's power levels.
 */
export const askedFacts = (rows: readonly RecordRow[], powerUnit: "kW" | "W"): readonly Fact[] =>
  rows
    .filter(({ kind }) => kind === "event" || kind === "rejected")
    .flatMap((row) => [heading(row), ...details(row, powerUnit)]);

/** Fact `new`, `changed`, `withdrawn`, `warning` or `rejected`, with its receipt time. */
function heading({ kind, at, facts, words, seq }: RecordRow): Fact {
  const what = textOf(facts, "outcome") ?? (kind === "rejected" ? kind : "warning");
  return fact("asked", what, { from: iso(at), words, seq });
}

function details({ facts, seq }: RecordRow, powerUnit: "kW" | "W"): readonly Fact[] {
  const asked = (what: string, more: Omit<Partial<Fact>, "section" | "what">): Fact =>
    fact("asked", what, { ...more, seq });
  const source = textOf(facts, "source");
  const from = source === null ? [] : [asked("source", { words: source })];
  const [start, duration] = [textOf(facts, "start"), numberOf(facts, "durationMs")];
  if (start === null || duration === null) return from;
  const priority = numberOf(facts, "priority");
  const foreign = numberOf(factOf(facts, "targets"), "foreignVehicles") ?? 0;
  return [
    ...from,
    asked("modified", { from: textOf(facts, "revision") }),
    asked("level", levelOf(factOf(facts, "ask"), powerUnit)),
    asked("period", { from: start, until: iso(after(fromIso(start), millis(duration))) }),
    asked("random start within", { value: (numberOf(facts, "randomizeStartMs") ?? 0) / 1000, unit: "s" }),
    asked("priority", priority === null ? { words: "none" } : { value: priority }),
    ...(foreign > 0 ? [asked("targets that are not ours", { value: foreign, unit: "vehicles" })] : []),
    ...reportsIn(facts).map((words) => asked("report asked for", { words })),
    asked("content", { hash: textOf(facts, "hash") }),
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

/** Numbers of the rows of the record that concern one event, in order, and their seal. */
export interface EventRecord {
  readonly seqs: readonly number[];
  /** Last row of the whole record at the time, sealed with the site key. */
  readonly head: { readonly seq: number; readonly hash: string; readonly seal: string };
  /** Checkpoint that replaces the pruned rows up to `facts.through`. Null: none was pruned. */
  readonly checkpoint: RecordRow | null;
}

/** Section `record`: the rows, so that anyone can hash them again. */
export const rowFacts = (rows: readonly RecordRow[]): readonly Fact[] =>
  rows.map(({ seq, hash, previous, text }) => fact("record", "row", { seq, hash, previous, words: text }));

/** End of the section `record`: the sealed end of the chain. */
export const headFacts = ({ head }: EventRecord): readonly Fact[] => [
  fact("record", "head", {
    seq: head.seq,
    hash: head.hash,
    words: "the last row of the record when this was made",
  }),
  fact("record", "head seal", {
    hash: head.seal,
    words: "HMAC-SHA256 of the head with the site's key",
  }),
];

/** Start of the section `record`: the rows that were pruned. */
export const prunedFacts = ({ facts, seq }: RecordRow): readonly Fact[] => [
  fact("record", "pruned", {
    seq,
    hash: textOf(facts, "hash"),
    value: numberOf(facts, "through"),
    words: `rows 1 to ${numberOf(facts, "through")} are no longer kept: if they said anything of this event, it is not here`,
  }),
];

/** Section `hold`: energy that holds take from the event, estimated when they open, and measured when they are over. */
export const costFacts = (event: EventId, rows: readonly RecordRow[]): readonly Fact[] =>
  rows.flatMap((row) => {
    const { at, words, seq, facts } = row;
    const basis = textOf(facts, "cost");
    if (row.event !== event || basis === null) return [];
    const wh = numberOf(facts, `${basis}Wh`);
    const value = wh === null ? null : kilo(wh);
    const unit = value === null ? null : "kWh";
    return [fact("hold", `energy taken, ${basis}`, { from: iso(at), value, unit, words, seq })];
  });

/** Section `observe`: periods in which the site observed for a person, and commanded no charger. */
export const observeFacts = (rows: readonly RecordRow[]): readonly Fact[] =>
  rows.flatMap(({ at, words, seq, facts }) => {
    if (textOf(facts, "mode") === null) return [];
    const until = textOf(facts, "until");
    const from = textOf(facts, "since");
    return [
      until === null
        ? fact("observe", "period ended", { from, until: iso(at), words, seq })
        : fact("observe", "period begun", { from, until, words, seq }),
    ];
  });

/** A stored report. */
export interface KeptReport {
  readonly record: ReportRecord;
  /** Body for the partner. Null: no longer stored. */
  readonly body: string | null;
}

/** Section `report`: reports on an event, oldest first, with content, time, the partner's answer and the hash of the body. */
export const reportFacts = (reports: readonly KeptReport[]): readonly Fact[] =>
  reports
    .toSorted((a, b) => a.record.composedAt - b.record.composedAt)
    .flatMap(({ record, body }) => [...composed(record, body), ...delivered(record)]);

/** End of the section `report`: the descriptors that ended without a report, with the reason. */
export const flaggedFacts = (rows: readonly RecordRow[]): readonly Fact[] =>
  rows
    .filter(({ kind, facts }) => kind === "report" && textOf(facts, "descriptor") !== null)
    .map(({ at, words, seq }) => fact("report", "flagged", { from: iso(at), words, seq }));

const composed = (
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

/** Outage of the partner, a broker, a charger, the clock or setpointd itself. */
interface Outage extends Window {
  /** Null: the whole site. */
  readonly charger: ChargerId | null;
  readonly words: string;
  readonly seq: number;
}

/** `order`: position among all outages, by their begin. */
export type OutagesByCharger = ReadonlyMap<
  ChargerId | null,
  readonly (Outage & { readonly order: number })[]
>;

/**
 * Outages in rows that are added in order. An open one has no end. A start of setpointd ends all open outages: the new
 * run records an outage only after it has detected it itself.
 */
export class Outages {
  readonly #open = new Map<string, Outage>();
  readonly #over: Outage[] = [];

  add(row: RecordRow): void {
    const { at, charger, seq, facts, words: message } = row;
    if (isStart(row)) {
      for (const outage of this.#open.values()) this.#over.push({ ...outage, until: at });
      this.#open.clear();
    }
    const outage = textOf(facts, "outage");
    if (outage === null) return;
    const key = `${charger} ${outage}`;
    const words = `${outage}: ${message}`;
    const begun = this.#open.get(key);
    const since = textOf(facts, "since");
    const from = begun?.from ?? (since === null ? at : fromIso(since));
    if (factOf(facts, "over") !== true) {
      this.#open.set(key, begun ?? { charger, words, seq, from, until: instant(Infinity) });
      return;
    }
    this.#open.delete(key);
    this.#over.push({ charger, words, seq, from, until: at });
  }

  /** Outages by charger, as each vehicle of a fleet shows those of its own chargers. */
  get byCharger(): OutagesByCharger {
    const all = [...this.#over, ...this.#open.values()].toSorted((a, b) => a.from - b.from);
    return Map.groupBy(
      all.map((outage, order) => ({ ...outage, order })),
      ({ charger }) => charger,
    );
  }
}

/** Only the row of a start has the epoch of its run. */
const isStart = ({ kind, facts }: AuditEntry): boolean =>
  kind === "daemon" && numberOf(facts, "epoch") !== null;

/** Outages of the site and of these chargers in a vehicle's window, up to now. They explain its figures. */
export const outageFacts = (
  outages: OutagesByCharger,
  vehicle: string,
  chargers: ReadonlySet<ChargerId | null>,
  { from, until }: Window,
  now: Instant,
): readonly Fact[] =>
  [...new Set([null, ...chargers])]
    .flatMap((charger) => outages.get(charger) ?? [])
    .filter((outage) => outage.from < earlier(until, now) && outage.until >= from)
    .toSorted((a, b) => a.order - b.order)
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
