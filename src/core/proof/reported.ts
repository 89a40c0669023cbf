import { hash } from "node:crypto";

import { type RecordRow, textOf } from "../audit.ts";
import type { ReportRecord } from "../reporting/outbox.ts";
import { iso } from "../units.ts";
import { type Fact, fact } from "./fact.ts";

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
