import type { Alarm, Charger, Departure, EnergyEvent, Status, Vehicle } from "./apiAnswers.ts";
import { loadedPhase } from "./format.ts";
import { t } from "./texts.ts";

/** An event with all its members. */
type WholeEvent = Extract<EnergyEvent, { readonly start: string }>;

/** An event. Of one that was withdrawn or is no longer stored only the id and the state are left. */
export type SiteEvent = Pick<WholeEvent, "id"> &
  Partial<Omit<WholeEvent, "id" | "state">> & {
    readonly state: EnergyEvent["state"] | "forgotten";
    readonly withdrawnAt?: string;
  };

/** Weight of a state. Each has a colour; a shape and a word go with it. */
type Tone = "good" | "info" | "warn" | "bad" | "mute";
export type Shape = "dot" | "ring" | "down" | "triangle" | "cross" | "pause" | "hand" | "bolt";

/** A state as people see it: never by colour alone. */
export interface Shown {
  readonly word: string;
  readonly shape: Shape;
  readonly tone: Tone;
}

/** The usual shape of each tone. */
export const good = (word: string): Shown => ({ word, shape: "dot", tone: "good" });
export const warn = (word: string): Shown => ({ word, shape: "triangle", tone: "warn" });
export const bad = (word: string): Shown => ({ word, shape: "cross", tone: "bad" });
export const mute = (word: string): Shown => ({ word, shape: "ring", tone: "mute" });

/** Age of a last message above which a charger counts as stale, ms. */
const STALE = 120_000;

/** Names of the brokers that are not connected. */
export type BrokersAway = ReadonlySet<string>;

/** True: the values of this charger may be out of date. */
export const isStale = (charger: Charger, now: number, away: BrokersAway): boolean =>
  isUnheard(charger, away) || agoOf(charger.measured?.at ?? charger.heardAt, now) > STALE;

/** True: the charger, or the broker between it and the gateway, is away. */
export const isUnheard = ({ broker, online, reachable }: Charger, away: BrokersAway): boolean =>
  away.has(broker) || online === false || reachable === false;

/** Ms since a moment. Infinity: never. */
export const agoOf = (at: string | null | undefined, now: number): number =>
  at === null || at === undefined ? Infinity : Math.max(0, now - Date.parse(at));

/**
 * The state of a charger, the gravest first. Behind a lost broker it is not known: what was heard last, such as a last will
 * of that broker, says nothing about the charger now.
 */
export function chargerState(charger: Charger, away: BrokersAway): Shown {
  const { broker, online, reachable, verdict, measured } = charger;
  const words = t.charger;
  if (away.has(broker)) return warn(words.cutOff);
  if (online === false) return bad(words.offline);
  if (reachable === false) return bad(words.silent);
  if (charger.commissioning) return { word: words.trial, shape: "ring", tone: "info" };
  if (measured?.state === "error") return bad(words.fault);
  if (verdict === "refused") return { word: words.refused, shape: "triangle", tone: "bad" };
  if (verdict === "notFollowed") return { word: words.ignores, shape: "triangle", tone: "bad" };
  if (measured === null) return mute(words.neverHeard);
  if (isUnplugged(charger)) return mute(words.unplugged);
  if (isDrawing(charger)) return { word: words.charging, shape: "bolt", tone: "good" };
  if (charger.allowed?.kind === "pause" || measured.state === "paused")
    return { word: words.paused, shape: "pause", tone: "info" };
  if (measured.state === "finished") return { word: words.finished, shape: "dot", tone: "mute" };
  return { word: words.plugged, shape: "dot", tone: "mute" };
}

/** A vehicle is plugged in, and nothing says which one it is. */
export const isUnnamed = (charger: Charger): boolean =>
  charger.vehicle === null &&
  charger.reachable === true &&
  charger.measured !== null &&
  !isUnplugged(charger);

const isUnplugged = (charger: Charger): boolean =>
  charger.measured?.state === "unplugged" ||
  (charger.measured?.state === null && charger.occupant === "nobody" && !isDrawing(charger));

const isDrawing = ({ measured }: Charger): boolean =>
  (measured?.powerW ?? 0) > 200 ||
  (loadedPhase(measured?.currentsA) ?? 0) > 1 ||
  measured?.state === "charging";

/** Limiter of a charger now. Null: it decides by itself. */
export function limiterOf(charger: Charger): (Shown & { readonly event: string | null }) | null {
  if (charger.hold !== null) {
    const isExempt = charger.hold.kind === "exempt";
    return { word: isExempt ? t.limiter.exempt : t.limiter.hold, shape: "hand", tone: "info", event: null };
  }
  const { asked } = charger;
  if (asked === null) return null;
  return { word: asked.event, shape: "down", tone: "info", event: asked.event };
}

/** Verdict on the level that a charger was sent. Whether one that is not heard still follows is not known. */
export function followState(charger: Charger, away: BrokersAway): Shown {
  const { verdict, allowed } = charger;
  if (allowed === null || allowed.kind === "release") return mute(t.verdict.free);
  return verdict === "followed" && isUnheard(charger, away) ? mute(t.strip.unknown) : progressState(verdict);
}

/** Progress of a command. `progress`: its last step on record, also one that this page does not know. */
export function progressState(progress: string): Shown {
  const words = t.verdict;
  switch (progress) {
    case "followed":
      return good(words.followed);
    case "accepted":
    case "acknowledged":
    case "planned":
      return { word: words[progress], shape: "ring", tone: "info" };
    case "refused":
    case "notFollowed":
      return { word: words[progress], shape: "triangle", tone: "bad" };
    case "observed":
    case "failed":
    case "none":
      return mute(words[progress]);
    default:
      return mute(progress);
  }
}

/** The state of an event at a moment. The API computes it only when something else changes. */
export function eventState(event: SiteEvent, now: number): SiteEvent["state"] {
  if (event.state === "withdrawn" || event.state === "forgotten") return event.state;
  if (event.start === undefined || event.end === undefined) return event.state;
  if (now < Date.parse(event.start)) return "planned";
  // The last vehicle ends later than the event by its own start offset.
  if (now >= Date.parse(event.end) + (event.randomizeStartMs ?? 0)) return "ended";
  return event.state === "ended" ? "ended" : "active";
}

const startOf = (event: SiteEvent): number => Date.parse(event.start ?? "");

/**
 * Active events, that of most `chargers` first, then the strongest. So a short event of two vehicles does not take the
 * place of the one that the whole yard is under.
 */
export function eventsNow(all: readonly SiteEvent[], now: number, chargers: readonly Charger[] = []) {
  const under = new Map<string, number>();
  for (const { asked } of chargers)
    if (asked !== null) under.set(asked.event, (under.get(asked.event) ?? 0) + 1);
  const countOf = ({ id }: SiteEvent): number => under.get(id) ?? 0;
  return {
    active: all
      .filter((event) => eventState(event, now) === "active")
      .toSorted(
        (a, b) =>
          countOf(b) - countOf(a) ||
          (a.priority ?? Infinity) - (b.priority ?? Infinity) ||
          startOf(a) - startOf(b),
      ),
    next: all
      .filter((event) => eventState(event, now) === "planned")
      .toSorted((a, b) => startOf(a) - startOf(b)),
  };
}

/** Number of an event's chargers that are at its setpoint. Behind a lost broker it is the last known one. */
export function compliance(event: string, chargers: readonly Charger[], away: BrokersAway) {
  const under = chargers.filter(({ asked }) => asked?.event === event);
  const failing = under.filter(({ verdict }) => verdict === "notFollowed" || verdict === "refused");
  // A charger that has sent no message so far proves nothing either.
  const unseen = under.filter(({ broker, reachable }) => !away.has(broker) && reachable !== true);
  const bad = new Set([...failing, ...unseen]);
  return { total: under.length, good: under.length - bad.size, bad: [...bad] };
}

/**
 * Number of chargers at the setpoint of an event. A site that only observes has none there. Without the broker it is the
 * last known one.
 */
export function followOf(
  { good, total }: { readonly good: number; readonly total: number },
  status: Pick<Status, "mode" | "broker"> | null,
): Shown {
  if (status?.mode === "observe") return { word: t.now.onlyObserved, shape: "ring", tone: "info" };
  if (status?.broker.connected === false) return warn(t.now.lastFollow(good, total));
  const isWhole = good === total;
  return {
    word: t.now.follow(good, total),
    shape: isWhole ? "dot" : "triangle",
    tone: isWhole ? "good" : "warn",
  };
}

/** Number of chargers that are heard. A charger without a message so far is not, also before that is a problem. */
export function liveChargers({ chargers: { total, unreachable } }: Status, all: readonly Charger[]): number {
  const unheard = all.filter(({ reachable }) => reachable !== true).length;
  return total - Math.max(unreachable, unheard);
}

/** The site's mode as one word. */
export function siteMode(status: Status, activeEvents: number): Shown {
  if (status.mode === "observe") return { word: t.mode.observe, shape: "ring", tone: "info" };
  if (status.partner.stale) return warn(t.mode.failover);
  if (activeEvents > 0) return { word: t.mode.event, shape: "down", tone: "info" };
  return good(t.mode.normal);
}

/** Something that needs a person, with its remedy. */
export interface Trouble {
  readonly key: string;
  readonly tone: "bad" | "warn" | "info";
  readonly subject: string | null;
  readonly vehicle: string | null;
  readonly message: string;
  readonly action: string;
  readonly since: string | null;
  /** Null: no alarm, so nothing to acknowledge. */
  readonly alarm: Alarm | null;
}

const TONE = { critical: "bad", warning: "warn", info: "info" } as const;

/** Alarms that last, then problems without an alarm, then chargers that need a look. */
export function troubles(
  alarms: readonly Alarm[],
  status: Status | null,
  chargers: readonly Charger[],
  vehicles: readonly Vehicle[],
): readonly Trouble[] {
  const at = new Map(
    vehicles.flatMap(({ id, charger }) => (charger === null ? [] : [[charger, id] as const])),
  );
  const open = alarms.filter(({ state }) => state !== "cleared");
  const known = new Set(open.map(({ kind, subject }) => `${kind} ${subject}`));
  const named = new Set(open.map(({ subject }) => subject));
  const fromAlarms = open.map((alarm): Trouble => ({
    key: alarm.key,
    // The alarm stays open for its quiet time: nothing is wrong now.
    tone: alarm.goneSince === null ? TONE[alarm.severity] : "info",
    subject: alarm.subject,
    vehicle: at.get(alarm.subject ?? "") ?? null,
    message: alarm.message,
    action: alarm.action,
    since: alarm.since,
    alarm,
  }));
  const fromProblems = (status?.problems ?? [])
    .filter(({ kind, subject }) => !known.has(`${kind} ${subject}`))
    .map(({ kind, subject, message, action, since }): Trouble => {
      named.add(subject);
      const vehicle = at.get(subject ?? "") ?? null;
      const key = `${kind} ${subject}`;
      return { key, tone: "warn", subject, vehicle, message, action, since, alarm: null };
    });
  const fromChargers = chargers
    .filter(({ charger }) => !named.has(charger))
    .flatMap((charger): readonly Trouble[] => {
      const found = lookAt(charger);
      if (found === null) return [];
      const { charger: subject, vehicle, heardAt } = charger;
      return [
        { key: `look ${subject}`, tone: "info", subject, vehicle, since: heardAt, alarm: null, ...found },
      ];
    });
  const weight = { bad: 0, warn: 1, info: 2 };
  const silenced = ({ alarm }: Trouble): number => (alarm?.state === "acknowledged" ? 1 : 0);
  return [...fromAlarms, ...fromProblems, ...fromChargers].toSorted(
    (a, b) => silenced(a) - silenced(b) || weight[a.tone] - weight[b.tone] || a.key.localeCompare(b.key),
  );
}

/** Chargers that no alarm names, and that a person should look at all the same. */
function lookAt(shown: Charger): Pick<Trouble, "message" | "action"> | null {
  const { occupant, charger, measured, reason } = shown;
  if (occupant !== "unknown" || measured?.state === "unplugged") return null;
  const named = reason?.occupant?.kind === "unknown" ? reason.occupant.said : null;
  return { message: t.trouble.unknownVehicle(charger, named), action: t.trouble.unknownVehicleAction };
}

const slackOf = ({ slackS }: Departure): number => slackS ?? Infinity;

/** Departures that are ahead, the least slack first. Those without a known slack follow by time. */
export const leavingNext = (all: readonly Departure[], now: number): readonly Departure[] =>
  all
    .filter(({ at }) => Date.parse(at) > now - 15 * 60_000)
    .toSorted((a, b) => slackOf(a) - slackOf(b) || Date.parse(a.at) - Date.parse(b.at) || 0);

/** Outlook of a vehicle for its departure. */
export function slackState({ state, slackS }: Departure): Shown {
  if (state === "short") return bad(t.slack.short);
  if (state === "ready") return good(t.slack.ready);
  if (slackS === null) return mute(t.slack.unknown);
  if (slackS < 0) return bad(t.slack.short);
  if (slackS < 15 * 60) return warn(t.slack.tight);
  return good(t.slack.makesIt);
}
