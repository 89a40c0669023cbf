import type { Logger } from "pino";

import { type AuditEntry, factOf, type Json } from "./core/audit.ts";

/** The control-action log: every row of the record is a line, once it is committed. */
export function logRow(
  log: Logger,
  { kind, charger, vehicle, event, command, words, facts }: AuditEntry,
): void {
  const level = isAlarm(facts)
    ? "error"
    : kind === "rejected" || kind === "missed" || isOdd(facts)
      ? "warn"
      : "info";
  const named = {
    kind,
    charger: said(charger),
    vehicle: said(vehicle),
    event: said(event),
    command: said(command),
  };
  log[level](named, words);
}

/** The log leaves out what is undefined. */
const said = (name: string | null): string | undefined => name ?? undefined;

/** A charger that does not do what it was told, however often it is told (flow/judge.ts). */
const isAlarm = (facts: Json): boolean => factOf(facts, "alarm") === true;

/** An event that contradicts itself or looks wrong (flow/take.ts), or a command that was refused or not followed. */
function isOdd(facts: Json): boolean {
  const odd = factOf(facts, "odd");
  const progress = factOf(facts, "progress");
  return (
    factOf(facts, "warning") !== null ||
    (Array.isArray(odd) && odd.length > 0) ||
    progress === "refused" ||
    progress === "notFollowed" ||
    progress === "failed"
  );
}
