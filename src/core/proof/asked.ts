import { factOf, type Json, numberOf, type RecordRow, textOf } from "../audit.ts";
import { after, instant, iso, millis } from "../units.ts";
import { type Fact, fact } from "./fact.ts";

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
