import * as z from "zod";

import { sentence, findings, pathText } from "../../config/explain.ts";
import { AUDIT_KINDS } from "../../domain/audit.ts";
import type { AuditQuery } from "../../domain/store.ts";

const MAX_ROWS = 10_000;

export const wholeNumber = z
  .string()
  .regex(/^\d{1,15}$/, { error: "a whole number, e.g. 50" })
  .transform(Number);

export const auditQuery = z.strictObject({
  event: z
    .string()
    .transform((id) => id.normalize("NFC").toWellFormed())
    .exactOptional()
    .describe("Rows about this event only."),
  charger: z.string().exactOptional().describe("Rows about this charger only."),
  kind: z.enum(AUDIT_KINDS).exactOptional().describe("Rows of this kind only."),
  after: z
    .string()
    .regex(/^\d{1,15}(\.\d{1,3})?$/, { error: "the seq of a row, e.g. 50; or seq.part, e.g. 50.16" })
    .transform((text) => text.split(".").map(Number))
    .exactOptional()
    .describe("The seq of the last row seen; seq.part if it has a member part."),
  before: wholeNumber.exactOptional().describe("Rows with a smaller seq only: the next page with newest."),
  limit: wholeNumber
    .prefault("1000")
    .transform((limit) => Math.min(limit, MAX_ROWS))
    .describe(`At most so many rows, and at most ${MAX_ROWS}.`),
  newest: z
    .string()
    .regex(/^(true|false|1|0)$/, { error: "true or false" })
    .prefault("false")
    .transform((text) => text === "true" || text === "1")
    .describe("true or 1: the newest first."),
});

/** Parses query parameters into a query of the record. A string is an error text. */
export function auditParameters(query: Readonly<Record<string, unknown>>): AuditQuery | string {
  const result = auditQuery.safeParse(query, { error: sentence });
  if (result.success) return auditQueryOf(result.data);
  return findings(result.error, query)
    .map(({ path, found, expected }) => `${pathText(path)}: ${found}; expected ${expected}`)
    .join("; ");
}

export const auditQueryOf = ({
  after: [after, part] = [],
  ...rest
}: z.output<typeof auditQuery>): AuditQuery =>
  Object.assign(rest, after === undefined ? {} : { after }, part === undefined ? {} : { part });
