import type { AuditEntry, Json } from "../domain/audit.ts";

/**
 * The stored facts of a decision leave out what the row has already, and what is usual. A fan-out writes one
 * such row per vehicle. The hash covers the stored form. Readers get every member.
 */

type Members = Readonly<Record<string, Json>>;
/** JSON leaves undefined members out. */
type Short = Readonly<Record<string, unknown>>;
type About = Pick<AuditEntry, "kind" | "words" | "vehicle" | "event" | "facts">;

/** Facts with `v: 2` are in the short form. Others are shown as they are. */
const SHORT = 2;

/** Members in the order in which they are shown. */
const REASON = [
  "words",
  "cause",
  "until",
  "held",
  "winner",
  "overruled",
  "overruledCount",
  "limits",
  "occupant",
  "hold",
  "told",
] as const;
const CLAIM = ["event", "priority", "asked", "from", "until", "offsetMs", "spreadMs", "cutAt"] as const;

type Outcome = Pick<AuditEntry, "kind" | "charger" | "command" | "words">;

/** Start of the sentence of an outcome. Null: the row names no charger or no command. */
const beginningOf = ({ kind, charger, command }: Outcome): string | null =>
  kind === "outcome" && charger !== null && command !== null ? `${charger} ${command}` : null;

/**
 * The sentence to store. An outcome leaves out charger and command, which the row has already: the rest begins with a
 * space. No other sentence does.
 */
export function storedWords(row: Outcome): string {
  const beginning = beginningOf(row);
  return beginning !== null && row.words.startsWith(`${beginning} `)
    ? row.words.slice(beginning.length)
    : row.words;
}

/** The sentence before `storedWords`. */
export const shownWords = (row: Outcome): string =>
  row.words.startsWith(" ") ? `${beginningOf(row) ?? ""}${row.words}` : row.words;

/** The facts to store. Members are listed one by one: a loop over their names takes longer than the insert. */
export function storedFacts(row: About): unknown {
  const { kind, facts } = row;
  if (kind !== "decision" || !isMembers(facts)) return facts;
  const {
    words,
    cause,
    until,
    held,
    winner,
    overruled,
    overruledCount,
    limits,
    occupant,
    hold,
    told: desired,
  } = facts;
  const hasAll =
    words !== undefined &&
    cause !== undefined &&
    until !== undefined &&
    held !== undefined &&
    overruledCount !== undefined &&
    hold !== undefined;
  if (!hasAll || !isMembers(occupant) || !isMembers(desired) || "v" in facts) return facts;
  if (!isList(limits) || !isList(overruled) || !overruled.every(isClaim)) return facts;
  if (winner !== null && !isClaim(winner)) return facts;
  const short: Short = {
    v: SHORT,
    words: words === row.words ? undefined : words,
    cause,
    until: until === (winner?.["until"] ?? null) ? undefined : until,
    held: held ?? undefined,
    winner: winner === null ? undefined : shortClaim(winner, row.event),
    overruled: overruled.length === 0 ? undefined : overruled.map((claim) => shortClaim(claim, null)),
    overruledCount: overruledCount === overruled.length ? undefined : overruledCount,
    limits: limits.length === 0 ? undefined : limits,
    occupant: shortOccupant(occupant, row),
    hold: hold ?? undefined,
    told: shortLevel(desired),
  };
  return sizeOf(facts) === REASON.length ? short : { ...facts, ...short };
}

/** `event`: the event of the row. Null: the claim names its event, because a search reads the stored text. */
function shortClaim(claim: Members, event: string | null): Short {
  const { priority, asked, from, until, offsetMs, spreadMs, cutAt } = claim;
  const short: Short = {
    event: claim["event"] === event ? undefined : claim["event"],
    priority,
    asked,
    from,
    until,
    offsetMs: offsetMs === 0 ? undefined : offsetMs,
    spreadMs: spreadMs === 0 ? undefined : spreadMs,
    cutAt: cutAt ?? undefined,
  };
  return sizeOf(claim) === CLAIM.length ? short : { ...claim, ...short };
}

/** The source alone where the occupant is the vehicle of the row. */
function shortOccupant(occupant: Members, { vehicle }: About): unknown {
  const { kind, source } = occupant;
  const isOfRow = kind === "vehicle" && occupant["vehicle"] === vehicle && sizeOf(occupant) === 3;
  return isOfRow && typeof source === "string" ? source : occupant;
}

/** The kind alone where there is no value. */
function shortLevel(desired: Members): unknown {
  const { kind, value, unit } = desired;
  const hasNone = value === null && unit === null && sizeOf(desired) === 3;
  return hasNone && typeof kind === "string" ? kind : desired;
}

/** The facts before `storedFacts`. */
export function shownFacts(row: About): Json {
  const { kind, facts, words, event, vehicle } = row;
  if (kind !== "decision" || !isMembers(facts) || facts["v"] !== SHORT) return facts;
  const { v: _form, ...short } = facts;
  const { occupant, told: desired, overruled } = short;
  const winner = isMembers(short["winner"]) ? shownClaim(short["winner"], event) : null;
  const claims = isList(overruled) ? overruled : [];
  return inOrder(REASON, {
    words,
    until: winner?.["until"] ?? null,
    held: null,
    overruledCount: claims.length,
    limits: [],
    hold: null,
    ...short,
    winner,
    overruled: claims.map((claim) => (isMembers(claim) ? shownClaim(claim, null) : claim)),
    occupant:
      typeof occupant === "string" ? { kind: "vehicle", vehicle, source: occupant } : (occupant ?? null),
    told: typeof desired === "string" ? { kind: desired, value: null, unit: null } : (desired ?? null),
  });
}

const shownClaim = (claim: Members, event: string | null): Members =>
  inOrder(CLAIM, { event, offsetMs: 0, spreadMs: 0, cutAt: null, ...claim });

/** Members in order: these first, then the others. */
const inOrder = (names: readonly string[], members: Members): Members => ({
  ...Object.fromEntries(names.map((name) => [name, members[name] ?? null])),
  ...members,
});

const sizeOf = (members: Members): number => Object.keys(members).length;
const isList = (value: Json | undefined): value is readonly Json[] => Array.isArray(value);
const isMembers = (value: Json | undefined): value is Members =>
  typeof value === "object" && value !== null && !isList(value);
const isClaim = (value: Json | undefined): value is Members =>
  isMembers(value) &&
  value["event"] !== undefined &&
  value["priority"] !== undefined &&
  value["asked"] !== undefined &&
  value["from"] !== undefined &&
  value["until"] !== undefined &&
  value["offsetMs"] !== undefined &&
  value["spreadMs"] !== undefined &&
  value["cutAt"] !== undefined;
