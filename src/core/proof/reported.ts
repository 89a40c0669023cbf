import { hash } from "node:crypto";

import type { ReportRecord } from "../reporting/outbox.ts";
import { iso } from "../units.ts";
import { type Fact, fact } from "./fact.ts";

/** A report as it is kept. */
export interface KeptReport {
  readonly record: ReportRecord;
  /** As it goes to the partner; null: not kept any more. */
  readonly body: string | null;
}

/** The reports on an event, oldest first: what each holds, what became of it, and a hash by which the partner knows it. */
export const reportFacts = (reports: readonly KeptReport[]): readonly Fact[] =>
  reports
    .toSorted((a, b) => a.record.composedAt - b.record.composedAt)
    .flatMap(({ record, body }) => {
      const { name, payloadType, span, summary, composedAt, sentAt, state, status, receipt, reason } = record;
      const window = { from: iso(span.from), until: iso(span.until) };
      return [
        fact("report", "report", { ...window, words: `${name} (${payloadType}): ${summary}` }),
        fact("report", "composed", {
          from: iso(composedAt),
          words: `SHA-256 of its body`,
          hash: bodyHash(body),
        }),
        fact("report", state, {
          from: sentAt === null ? null : iso(sentAt),
          value: status,
          unit: status === null ? null : "HTTP status",
          words: reason,
        }),
        ...(receipt === null ? [] : [fact("report", "receipt", { words: receipt })]),
      ];
    });

const bodyHash = (body: string | null): string | null => (body === null ? null : hash("sha256", body));
