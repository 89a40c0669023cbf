import type { ControlState } from "../control/state.ts";
import { type Alarm, alarmView } from "../domain/alarm.ts";
import { type Json, textOf } from "../domain/audit.ts";
import { endOf, formatScope, type Hold, periodEnd } from "../domain/hold.ts";
import type { Store } from "../domain/store.ts";
import { after, hours, type Instant, instant, iso, parseDuration, fromIso } from "../domain/units.ts";
import type { TimeOfDay } from "../platform/clock.ts";
import { byWeight } from "./alarms.ts";
import { type Answer, invalid, momentIn } from "./answer.ts";
import { endOfEvent, eventRows, withdrawnSince } from "./handoverEvents.ts";
import { holdRow } from "./holdView.ts";
import { pagesSince } from "./recordPages.ts";
import type { Problem } from "./siteProblems.ts";
import { counted } from "../platform/text.ts";

/** A shift with its neighbours. */
const SHIFT = hours(12);
/** Holds and alarms that are over are known for a day. */
const LONGEST = hours(24);
const MOST_DUE = 100;

/** Facts of a handover beside the control state and the record. */
interface HandoverFacts {
  readonly site: string;
  readonly mode: { readonly [member: string]: Json };
  /** Open alarms, and those that cleared within a day. */
  readonly alarms: readonly Alarm[];
  /** Rows of the list of departures. */
  readonly departures: readonly Json[];
  readonly problems: readonly Problem[];
}

/** The beginning of the shift: ISO, a time of day at the site, or a duration before `now`. An answer: a mistake. */
export function shiftStart(
  given: unknown,
  timeOfDay: TimeOfDay,
  now: Instant,
): Answer<Json> | { readonly since: Instant } {
  if (given === undefined) return { since: instant(now - SHIFT) };
  const since = typeof given === "string" ? beginningIn(given.trim(), timeOfDay, now) : null;
  if (since !== null && since <= now && since >= now - LONGEST) return { since };
  return invalid({
    path: "since",
    found: typeof given === "string" ? given : null,
    expected: `22:00, 8h, or an ISO moment; at most 24 h back: from ${iso(instant(now - LONGEST))}`,
  });
}

function beginningIn(text: string, timeOfDay: TimeOfDay, now: Instant): Instant | null {
  const [, hour, minute] = /^([01]?\d|2[0-3]):([0-5]\d)$/.exec(text) ?? [];
  if (hour !== undefined) {
    const [today, yesterday] = [0, -1].map((days) => timeOfDay(now, days, Number(hour), Number(minute)).at);
    return today !== undefined && today <= now ? today : (yesterday ?? null);
  }
  const ago = parseDuration(text);
  if (ago !== null) return instant(now - ago);
  return momentIn(text);
}

/** Sources of a handover. */
interface HandoverParts {
  readonly state: ControlState;
  readonly store: Pick<Store, "audit" | "head">;
  readonly site: string;
  readonly timeOfDay: TimeOfDay;
  readonly now: () => Instant;
  readonly mode: () => { readonly [member: string]: Json };
  readonly alarms: () => Iterable<Alarm>;
  readonly departures: () => Answer<Json>;
  readonly problems: () => Promise<readonly Problem[]>;
}

/** Answers `GET handover`. */
export const handoverApi =
  ({ state, store, site, timeOfDay, now, mode, alarms, departures, problems }: HandoverParts) =>
  async ({ since: given }: Readonly<Record<string, unknown>>): Promise<Answer<Json>> => {
    const start = shiftStart(given, timeOfDay, now());
    if ("ok" in start) return start;
    const list = departures();
    const facts = {
      site,
      mode: mode(),
      alarms: [...alarms()],
      departures: list.ok ? (list.value as readonly Json[]) : [],
      problems: await problems(),
    };
    return { ok: true, value: await handover(state, store, start.since, facts, now()) };
  };

/** Facts for the next shift: events, holds, alarms, departures, faults, and what is due next. */
async function handover(
  state: ControlState,
  store: Pick<Store, "audit" | "head">,
  since: Instant,
  facts: HandoverFacts,
  now: Instant,
): Promise<{ readonly [member: string]: Json }> {
  const events = await eventRows(state, store, since, now);
  const holds = state.holds
    .all()
    .filter(({ since: from, ended }) => ended === null || ended.at >= since || from >= since)
    .map((hold) => holdRow(state, hold, now));
  const alarms = facts.alarms
    .filter(({ clearedAt }) => clearedAt === null || clearedAt >= since)
    .toSorted(byWeight);
  const short = facts.departures.filter((each) => textOf(each, "state") === "short");
  const unreachable = facts.problems.filter(({ kind }) => UNREACHABLE.has(kind));
  return {
    site: facts.site,
    since: iso(since),
    now: iso(now),
    sentence: sentenceOf({ events, holds, alarms, short, unreachable, mode: facts.mode }),
    mode: { ...facts.mode, changes: await modeChanges(store, since) },
    events,
    withdrawn: withdrawnSince(state, since),
    holds,
    alarms: alarms.map(alarmView),
    short,
    unreachable: unreachable.map((problem) => ({ ...problem })),
    due: dueNext(state, facts.departures, now),
  };
}

function sentenceOf(of: {
  readonly events: readonly Json[];
  readonly holds: readonly Json[];
  readonly alarms: readonly Alarm[];
  readonly short: readonly Json[];
  readonly unreachable: readonly Problem[];
  readonly mode: HandoverFacts["mode"];
}): string {
  const active = of.events.filter((event) => textOf(event, "state") === "active").length;
  const open = of.holds.filter((hold) => textOf(hold, "state") === "open").length;
  const alarms = of.alarms.filter(({ clearedAt }) => clearedAt === null).length;
  return [
    textOf(of.mode, "sentence") ?? "",
    `${counted(of.events.length, "event")}, ${active} active`,
    `${counted(of.holds.length, "override")}, ${open} open`,
    `${counted(of.alarms.length, "alarm")}, ${alarms} open`,
    `${counted(of.short.length, "vehicle")} leaving short`,
    `${of.unreachable.length} unreachable`,
  ].join("; ");
}

/** Periods of observe that a person began or ended. */
async function modeChanges(store: Pick<Store, "audit" | "head">, since: Instant): Promise<readonly Json[]> {
  const changes: Json[] = [];
  for await (const rows of pagesSince(store, "operator", since))
    for (const { at, words, facts } of rows)
      if (textOf(facts, "mode") !== null) changes.push({ at: iso(at), message: words });
  return changes;
}

/** Beginnings, ends and departures of the next shift, the next first. */
function dueNext(state: ControlState, departures: readonly Json[], now: Instant): readonly Json[] {
  const until = after(now, SHIFT);
  const due: {
    readonly at: Instant;
    readonly kind: string;
    readonly subject: string;
    readonly message: string;
  }[] = [];
  for (const known of state.known.values()) {
    if (known.kind !== "live") continue;
    const { id, name } = known.revision.event;
    const title = name === "" ? id : `${id} "${name}"`;
    due.push({
      at: known.revision.start,
      kind: "eventStarts",
      subject: id,
      message: `event ${title} starts`,
    });
    due.push({ at: endOfEvent(known), kind: "eventEnds", subject: id, message: `event ${title} ends` });
  }
  for (const hold of state.holds.open()) {
    const at = endOf(hold);
    if (at !== null) due.push({ at, kind: "holdEnds", subject: hold.id, message: holdEnds(hold, state) });
  }
  const { period } = state.mode;
  if (period !== null)
    due.push({
      at: periodEnd(period),
      kind: "observeEnds",
      subject: "mode",
      message: `mode observe of ${period.by} ends; mode ${state.mode.configured} again`,
    });
  for (const departure of departures) {
    const at = fromIso(textOf(departure, "at") ?? "");
    const [id, name] = [textOf(departure, "vehicle") ?? "", textOf(departure, "name") ?? ""];
    const state = STATES[textOf(departure, "state") ?? ""] ?? "";
    due.push({ at, kind: "departure", subject: id, message: `${name} leaves${state}` });
  }
  return due
    .filter(({ at }) => at > now && at <= until)
    .toSorted((a, b) => a.at - b.at)
    .slice(0, MOST_DUE)
    .map(({ at, ...rest }) => ({ at: iso(at), ...rest }));
}

/** The state of a departure in a sentence. */
const STATES: Readonly<Record<string, string>> = {
  ready: ", ready",
  onTime: ", in time",
  short: ", short",
  unknown: ", not known whether in time",
};

/** The id is left out: the row has it as its subject. */
function holdEnds({ scope, by, end }: Hold, { vehicles }: ControlState): string {
  const named = scope.kind === "vehicle" ? vehicles.get(scope.vehicle)?.name : undefined;
  const latest = end.kind === "at" || end.kind === "events" ? "" : " at the latest";
  return `the override of ${by} on ${named ?? formatScope(scope)} ends${latest}`;
}

const UNREACHABLE: ReadonlySet<Problem["kind"]> = new Set(["offline", "silent", "neverHeard", "broker"]);
