import { createHmac, hash } from "node:crypto";

import type { ChargerId, EventId, Instant, VehicleId } from "./units.ts";

/** Any value that JSON can carry. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

export type AuditKind =
  /** The program itself: started, stopped, state set aside, clock jumped. */
  | "daemon"
  /** An event was new, changed or withdrawn, or two copies of one revision differed. */
  | "event"
  /** Input that cannot be parsed. */
  | "rejected"
  /** A decision for one charger, committed before it is published. */
  | "decision"
  /** A decision was sent, acknowledged, accepted, refused, or failed. */
  | "outcome"
  /** A window passed without action, or its vehicle was at no charger. */
  | "missed"
  /** A commanded charger, a broker or the partner fell silent, or returned. */
  | "silence"
  /** Prices arrived, or stopped arriving. */
  | "prices"
  /** A report was composed, sent or given up. */
  | "report"
  /** A person did something. */
  | "operator"
  /** Written by pruning. It continues the hash chain. */
  | "checkpoint";

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
