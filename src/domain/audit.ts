import { createHmac, hash } from "node:crypto";

import { type Command, commandId } from "./command.ts";
import {
  type ChargerId,
  type EventId,
  type Instant,
  type VehicleId,
  chargerId,
  instant,
  iso,
  vehicleId,
} from "./units.ts";

/** Any value that JSON can carry. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** Kinds of audit rows. */
export const AUDIT_KINDS = [
  /** The program itself: started, stopped, state set aside, clock jumped. */
  "daemon",
  /** An event was new, changed or withdrawn, or two copies of one revision differed. */
  "event",
  /** Input that cannot be parsed. */
  "rejected",
  /** A decision for one charger, committed before it is published. */
  "decision",
  /** A decision was sent, acknowledged, accepted, refused, or failed. */
  "outcome",
  /** A window passed without action, or its vehicle was at no charger. */
  "missed",
  /** A commanded charger, a broker or the partner fell silent, or returned. */
  "silence",
  /** Prices arrived, or stopped arriving. */
  "prices",
  /** A report was composed, sent or given up. */
  "report",
  /** A person did something. */
  "operator",
  /** Written by pruning. It continues the hash chain. */
  "checkpoint",
] as const;

/** Rows about rejected input that a start reads. */
export const REMEMBERED_REJECTIONS = 20;

export type AuditKind = (typeof AUDIT_KINDS)[number];

/** A row of the record. `words` is a sentence for people; `facts` is the same as JSON. */
export interface AuditEntry {
  readonly at: Instant;
  readonly kind: AuditKind;
  readonly charger: ChargerId | null;
  readonly vehicle: VehicleId | null;
  readonly event: EventId | null;
  /** Command id, `epoch-seq`. */
  readonly command: string | null;
  readonly words: string;
  readonly facts: Json;
}

/** Creates an entry. A member of `about` that is absent is null: the entry does not concern it. */
export const auditEntry = (
  kind: AuditKind,
  at: Instant,
  message: string,
  about: Partial<Omit<AuditEntry, "at" | "kind" | "words">> = {},
): AuditEntry => ({
  charger: null,
  vehicle: null,
  event: null,
  command: null,
  facts: null,
  ...about,
  at,
  kind,
  words: message,
});

/** Creates the change that stores an entry. */
export const auditRow = (
  ...row: Parameters<typeof auditEntry>
): { readonly kind: "audit"; readonly entry: AuditEntry } => ({ kind: "audit", entry: auditEntry(...row) });

/** A stored entry, with all that `chainHash` needs. */
export interface RecordRow extends AuditEntry {
  readonly seq: number;
  readonly hash: string;
  /** Hash of the previous row, hex. */
  readonly previous: string;
  /** The hashed text, byte for byte. */
  readonly text: string;
}

/** Reads one member of `facts`. Null: absent, or `facts` is no object. */
export const factOf = (facts: Json, name: string): Json =>
  typeof facts === "object" && facts !== null && !Array.isArray(facts)
    ? ((facts as Readonly<Record<string, Json>>)[name] ?? null)
    : null;

export const textOf = (facts: Json, name: string): string | null => {
  const value = factOf(facts, name);
  return typeof value === "string" ? value : null;
};

export const numberOf = (facts: Json, name: string): number | null => {
  const value = factOf(facts, name);
  return typeof value === "number" ? value : null;
};

/**
 * Severity of a row.
 * Error: a charger does not follow its command after all retries.
 * Warn: input was rejected or looks wrong, a window was missed, or a command failed, was refused or is not followed.
 */
export function severityOf({ kind, facts }: Pick<AuditEntry, "kind" | "facts">): "info" | "warn" | "error" {
  if (factOf(facts, "alarm") === true) return "error";
  return kind === "rejected" || kind === "missed" || isOdd(facts) ? "warn" : "info";
}

const ODD_PROGRESS: ReadonlySet<Json> = new Set(["refused", "notFollowed", "failed"]);

function isOdd(facts: Json): boolean {
  const odd = factOf(facts, "odd");
  return (
    factOf(facts, "warning") !== null ||
    (Array.isArray(odd) && odd.length > 0) ||
    ODD_PROGRESS.has(factOf(facts, "progress"))
  );
}

/** Hash of a row: SHA-256 (hex) of the previous row's hash, a newline, and the row's text. */
export const chainHash = (previous: string, text: string): string => hash("sha256", `${previous}\n${text}`);

/**
 * HMAC-SHA256 (hex) of the last row, keyed with the site key. Without it, removing the newest rows would not show.
 */
export const headSeal = (siteKey: Uint8Array, seq: number, headHash: string): string =>
  createHmac("sha256", siteKey).update(`audit head\n${seq}\n${headHash}`).digest("hex");

/** An audit entry with its place in the hash chain. `hash` is hex. */
export interface AuditRow extends AuditEntry {
  readonly seq: number;
  readonly hash: string;
  /** Entries of a shared row up to this one, where a page ends inside it. Absent: the page ends behind the row. */
  readonly part?: number;
}

/*
 * Acknowledgements of one commit may share a row of the record: a fan-out writes hundreds of them at once. Such
 * a row names its commands in `facts`. Readers get one entry per command.
 */

/** Commands of one row. */
const MOST_COMMANDS = 64;
/** Facts with `v: 2` and `commands` are a shared row. */
const SHARED_VERSION = 2;

/** The broker acknowledged the first publish of a command. `sentAt`: when that publish began. */
export const acknowledgement = (command: Command, sentAt: Instant, at: Instant): AuditEntry =>
  entryOf(command, commandId(command), at, at - command.decidedAt, sentAt);

const message = (charger: string, command: string, ms: number): string =>
  `${charger} ${command} acknowledged by the broker after ${ms} ms`;

const entryOf = (
  { charger, vehicle, event }: Pick<Command, "charger" | "vehicle" | "event">,
  command: string,
  at: Instant,
  ms: number,
  sentAt: Instant,
): AuditEntry =>
  auditEntry("outcome", at, message(charger, command, ms), {
    charger,
    vehicle,
    event,
    command,
    facts: { progress: "acknowledged", ms, sentAt: iso(sentAt) },
  });

/** A command in a shared row: charger, vehicle, seq, ms, and how long after the row's time it was acknowledged and sent. */
type SharedCommand = readonly [
  charger: string,
  vehicle: string | null,
  seq: number,
  ms: number,
  at: number,
  sent: number,
];

/** Acknowledgements in a row, in order, that could be stored as one. */
export class SharedRow {
  readonly entries: AuditEntry[] = [];
  #epoch: string | null = null;

  /** Adds an entry. False: it needs a row of its own, or the next one. */
  add(entry: AuditEntry): boolean {
    const first = this.entries[0];
    const epoch = epochOf(entry);
    if (first !== undefined && (epoch === null || epoch !== this.#epoch)) return false;
    if (first !== undefined && (first.event !== entry.event || this.entries.length >= MOST_COMMANDS))
      return false;
    this.#epoch = epoch;
    this.entries.push(entry);
    return true;
  }

  /** The entry to store: the only one, or one for all. Null: there is none. */
  get row(): AuditEntry | null {
    const [first] = this.entries;
    if (first === undefined || this.entries.length === 1) return first ?? null;
    const commands = this.entries.map((entry) => sharedCommand(entry, first.at));
    return auditEntry("outcome", first.at, `${commands.length} commands acknowledged by the broker`, {
      event: first.event,
      facts: { v: SHARED_VERSION, progress: "acknowledged", epoch: Number(this.#epoch), commands },
    });
  }
}

const sharedCommand = ({ charger, vehicle, command, at, facts }: AuditEntry, start: Instant): Json => [
  charger,
  vehicle,
  Number(String(command).split("-")[1]),
  numberOf(facts, "ms"),
  at - start,
  Date.parse(String(textOf(facts, "sentAt"))) - start,
];

/** The epoch of the command. Null: not an acknowledgement as `acknowledgement` makes it. */
function epochOf({ kind, charger, command, words, facts }: AuditEntry): string | null {
  if (kind !== "outcome" || charger === null || command === null) return null;
  const [ms, sentAt] = [numberOf(facts, "ms"), textOf(facts, "sentAt")];
  if (ms === null || sentAt === null || words !== message(charger, command, ms)) return null;
  const isPlain = factOf(facts, "progress") === "acknowledged" && Object.keys(Object(facts)).length === 3;
  const sent = Date.parse(sentAt);
  if (!isPlain || Number.isNaN(sent) || iso(instant(sent)) !== sentAt) return null;
  return /^(\d{1,15})-\d{1,15}$/.exec(command)?.[1] ?? null;
}

/** Chargers that a shared row names. Empty for other rows. */
export const chargersOfSharedRow = (entry: AuditEntry): readonly string[] =>
  sharedCommands(entry).map(([charger]) => charger);

/** The entries that share this row, or the row itself. */
export function entriesIn<Row extends AuditEntry>(row: Row): readonly Row[] {
  const commands = sharedCommands(row);
  if (commands.length === 0) return [row];
  const epoch = numberOf(row.facts, "epoch");
  return commands.map(([charger, vehicle, seq, ms, at, sent]) => ({
    ...row,
    ...entryOf(
      {
        charger: chargerId(charger),
        vehicle: vehicle === null ? null : vehicleId(vehicle),
        event: row.event,
      },
      `${epoch}-${seq}`,
      instant(row.at + at),
      ms,
      instant(row.at + sent),
    ),
  }));
}

/** The chain covers the facts, so their form is ours. */
function sharedCommands({ kind, charger, facts }: AuditEntry): readonly SharedCommand[] {
  if (kind !== "outcome" || charger !== null || factOf(facts, "v") !== SHARED_VERSION) return [];
  const commands = factOf(facts, "commands");
  return Array.isArray(commands) ? (commands as readonly SharedCommand[]) : [];
}
