import type { Logger } from "pino";

import type { AuditEntry, Json } from "./core/audit.ts";

/** The control-action log: every row of the record is a line, once it is committed. */
export function logRow(
  log: Logger,
  { kind, charger, vehicle, event, command, words, facts }: AuditEntry,
): void {
  const level = kind === "rejected" || kind === "missed" || isOdd(facts) ? "warn" : "info";
  const named = Object.entries({ charger, vehicle, event, command }).filter(([, value]) => value !== null);
  log[level]({ kind, ...Object.fromEntries(named) }, words);
}

/** An event that contradicts itself, or that looks wrong (flow/take.ts). */
const isOdd = (facts: Json): boolean =>
  typeof facts === "object" &&
  facts !== null &&
  (("warning" in facts && facts["warning"] !== null) ||
    ("odd" in facts && Array.isArray(facts["odd"]) && facts["odd"].length > 0));
