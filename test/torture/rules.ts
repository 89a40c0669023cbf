import type { AuditRow } from "../../src/domain/audit.ts";
import { allowed, isSame, standingInWords, type Standing, type TrueEvent } from "../simulate/oracle.ts";
import { lostIn } from "./delays.ts";
import { Expected, momentIn, standingOf } from "./expected.ts";
import type { Span, Story, Told } from "./story.ts";

/** Whoever was ready for this long has done what there was to do (DESIGN 6.4), ms, beside what the machine had no time for. */
const PATIENCE = 1_000;
/** What holds is said again each minute, to renew its lease, ms. */
const REFRESH = 60_000;
/** A message may be heard this long after it was sent, ms. */
const ON_THE_WAY = 500;
/** So long at most a broker that is never disturbed keeps a connection, on average, ms: less is a client that flaps (F84). */
const LASTS = 10_000;

/** A story with what is worked out from it once. */
interface Case extends Story {
  readonly expected: Expected;
  readonly decisions: ReadonlyMap<string, AuditRow>;
}

type Rule = (story: Case) => readonly string[];

const each = (story: Case, rule: (charger: string, told: Told, before: readonly Told[]) => string | null) =>
  [...story.told].flatMap(([charger, all]) =>
    all.flatMap((told, index) => {
      const wrong = rule(charger, told, all.slice(0, index));
      return wrong === null ? [] : [`${spelled(charger, told)}: ${wrong}`];
    }),
  );

const spelled = (charger: string, { at, set }: Told): string =>
  `${clock(at)} ${charger} ${set.id} ${set.value ?? set.kind} of ${set.event}`;
const clock = (at: number): string => new Date(at).toISOString().slice(11, 23);

/** S1. */
const recorded: Rule = (story) =>
  each(story, (charger, { set }) => {
    const row = story.decisions.get(set.id);
    if (row === undefined) return "not in the record";
    return row.charger === charger && row.event === set.event ? null : "its row speaks of something else";
  });

/** Every revision has a level of its own: the number of the one that a command stands on; -1: none asked for that. */
function groundOf(story: Case, charger: string, { set }: Told): number {
  const planned = story.site.chargers.find(({ id }) => id === charger);
  const vehicle = story.site.vehicles.find(({ id }) => id === set.vehicle);
  if (planned === undefined || vehicle === undefined) return -1;
  const standing = standingOf({ ...set, until: null }, 0);
  const steps = story.history.get(set.event ?? "") ?? [];
  return steps.findLastIndex(
    (step) => step !== null && isSame(allowed(step.plan.ask, planned, vehicle), standing),
  );
}

/** S1, S2, S3, S9: it stands on what was known, from its own offset on, and not for longer. */
const inItsWindow: Rule = (story) =>
  each(story, (charger, told) => {
    const { set, at } = told;
    if (set.kind === "release") return null;
    const event = story.history.get(set.event ?? "")?.[groundOf(story, charger, told)];
    if (event === undefined || event === null) return "no revision of its event asked for that";
    const share = story.expected.share(event, set.vehicle ?? "");
    const row = story.decisions.get(set.id);
    const decidedAt = row?.at ?? at;
    if (share === null || Math.min(decidedAt, at) < share.from) return "before its start";
    const until = set.until === null ? share.until : Date.parse(set.until);
    if (at >= until + ON_THE_WAY + lostIn(story.delays, until, at))
      return `its window ended at ${clock(until)}`;
    const ends = endKnown(story, event, set.vehicle ?? "", row);
    if (ends === null) return "what it stands on was not known then";
    return set.until === null || until === ends ? null : `until ${clock(until)}, not ${clock(ends)}`;
  });

/** Until when a depot could stand on this revision, or on what was left of it, when it decided; null: it could not. */
function endKnown(
  { expected }: Case,
  event: TrueEvent,
  vehicle: string,
  decision: AuditRow | undefined,
): number | null {
  if (decision === undefined) return null;
  const { seq, at } = decision;
  const last = expected.learned.findLast((known) => known.event === event.plan.id && known.seq < seq);
  if (last?.now === event) return expected.share(event, vehicle)?.until ?? null;
  const tail = expected.tailOf(event.plan.id, vehicle, seq);
  return tail?.event === event && at < tail.until ? tail.until : null;
}

/** S5. */
const neverAnOlderRevision: Rule = (story) =>
  each(story, (charger, told, before) => {
    if (told.set.kind === "release") return null;
    const earlier = before.findLast(({ set }) => set.event === told.set.event && set.kind !== "release");
    if (earlier === undefined) return null;
    return groundOf(story, charger, told) < groundOf(story, charger, earlier)
      ? "older than what it heard before"
      : null;
  });

/** S6. */
const neverBack: Rule = (story) =>
  each(story, (_charger, { set }, before) => {
    const last = before.at(-1)?.set;
    if (last === undefined) return null;
    if (set.id === last.id)
      return JSON.stringify(set) === JSON.stringify(last) ? null : "the same id was another command";
    const isNewer = set.epoch > last.epoch || (set.epoch === last.epoch && set.seq > last.seq);
    return isNewer ? null : `after ${last.id}`;
  });

/** What comes a moment too late is refused as well: how late it may be is the rule of its window. */
const nothingOldArrived: Rule = ({ refusals }) =>
  refusals.flatMap(({ topic, text }) => (text.includes("older than") ? [`${topic}: ${text}`] : []));

const content = ({ set: { kind, value, until, vehicle, event } }: Told): string =>
  JSON.stringify([kind, value, until, vehicle, event]);

/** The re-assertion after a start, or a return of the broker, is one message for each charger; there is no other repetition. */
const oneExtraPerRestart: Rule = (story) =>
  [...story.told].flatMap(([charger, all]) => {
    const extra = all.filter((told, index) => isExtra(story, told, all[index - 1]));
    return story.lives.flatMap(({ startedAt, reconnects }, life) => {
      const its = extra.filter(({ at }) => lifeAt(story, at) === life);
      if (its.length <= Math.min(life, 1) + reconnects) return [];
      const times = its.map(({ at, set }) => `${set.id} after ${at - startedAt} ms`);
      return [`${charger} heard twice in run ${life}: ${times.join(", ")}`];
    });
  });

/** Who said what was heard at a moment: what a run sent last may be heard when the next one has begun, but not yet connected. */
const lifeAt = ({ lives }: Case, at: number): number =>
  lives.findLastIndex(({ connectedAt }) => connectedAt <= at);

/** A refresh is none. What says the same as the one before is news all the same where something else, that never went out, was decided between them. */
function isExtra(story: Case, told: Told, before: Told | undefined): boolean {
  if (before === undefined || content(told) !== content(before)) return false;
  if (told.set.id === before.set.id) {
    const late = lostIn(story.delays, before.at - PATIENCE, before.at);
    return told.at - before.at < REFRESH - ON_THE_WAY - late;
  }
  const own = [...story.decisions.values()].filter(
    ({ charger }) => charger === story.decisions.get(told.set.id)?.charger,
  );
  return own[own.findIndex(({ command }) => command === told.set.id) - 1]?.command === before.set.id;
}

/** L1: at any boundary, a while after it, and when a process ends, whoever had its patience to do it has done what held until then: starts, changes, releases. */
const whoHadTimeDidIt: Rule = (story) =>
  [...story.told].flatMap(([charger, all]) => {
    const boundaries = story.expected.boundaries(charger);
    const looks = [
      ...boundaries,
      ...boundaries.map((boundary) => patienceAfter(story, boundary)),
      ...story.lives.map(({ endedAt }) => endedAt),
    ];
    return looks.flatMap((boundary) => {
      const since = patienceBefore(story, boundary);
      if (!story.lives.some((life) => wasUp(life, since, boundary))) return [];
      const within = [since, ...boundaries.filter((other) => other > since && other < boundary)];
      const wanted = story.expected.at(charger, since);
      if (!within.every((moment) => isWanted(story, charger, moment, wanted))) return [];
      const last = all.findLast(({ at }) => at < boundary)?.set;
      const wrong = missing(last, wanted, boundary - 1);
      return wrong === null ? [] : [`${clock(boundary)} ${charger}: ${wrong}`];
    });
  });

/** By when what had to be so from a moment on has been done. */
const patienceAfter = ({ delays }: Case, moment: number): number =>
  moment + PATIENCE + lostIn(delays, moment, moment + 2 * PATIENCE);

/** Since when at the latest something had to be so, to have been done by then. */
const patienceBefore = ({ delays }: Case, moment: number): number =>
  moment - PATIENCE - lostIn(delays, moment - 2 * PATIENCE, moment);

const wasUp = ({ readyAt, endedAt }: Span, from: number, until: number): boolean =>
  readyAt <= from && until <= endedAt;

const isWanted = ({ expected }: Case, charger: string, moment: number, wanted: Standing): boolean =>
  isSame(expected.at(charger, moment), wanted);

function missing(last: Told["set"] | undefined, wanted: Standing, moment: number): string | null {
  const standing = standingOf(last, moment);
  if (!isSame(standing, wanted))
    return `stood at ${standingInWords(standing)} instead of ${standingInWords(wanted)}`;
  const wasLetGo = wanted.kind !== "free" || last === undefined || last.kind === "release";
  return wasLetGo ? null : "was never released";
}

/** S7: 2xx means that it is there, and was by then. */
const promisesKept: Rule = ({ promised, expected }) =>
  promised.flatMap(({ event, step, at }) => {
    const kept = expected.learned.some(
      (known) => known.event === event && known.at <= at && known.step !== undefined && known.step >= step,
    );
    return kept
      ? []
      : [`${clock(at)} word ${step} on ${event} was answered with 2xx and is not in the record`];
  });

const onlyWhatThePartnerSaid: Rule = ({ expected }) =>
  expected.learned.flatMap(({ at, event, step }) =>
    step === undefined ? [`${clock(at)} ${event}: the partner never said that`] : [],
  );

/** A window counts as missed only where nobody who knew of it was there for long enough to act in it (DESIGN 5.7). */
const missedOnlyWhenAway: Rule = ({ rows, lives, delays, expected }) =>
  rows.flatMap(({ kind, words, facts, event, vehicle }) => {
    if (kind !== "missed") return [];
    const [from, until] = [momentIn(facts, "from"), momentIn(facts, "until")];
    const learned = expected.learned.filter((known) => known.event === event);
    const asked = learned.findLastIndex(({ at, now }) => {
      const share = now === null ? null : expected.share(now, vehicle ?? "");
      // A revision that came after its start could be acted on from its receipt on, and is missed from there on.
      return share !== null && Math.max(share.from, at) === from && share.until === until;
    });
    const known = learned[asked];
    if (known === undefined) return [`${words} (nobody asked for that)`];
    const next = learned[asked + 1]?.at ?? Number.POSITIVE_INFINITY;
    const wasThere = lives.some(({ readyAt, endedAt }) => {
      const [since, end] = [Math.max(readyAt, from, known.at), Math.min(endedAt, until, next)];
      return end - since > PATIENCE + lostIn(delays, since, end);
    });
    return wasThere ? [words] : [];
  });

/** S1: what is decided follows from what was known by then. Before a run has asked the partner, it starts nothing new. */
const decidedByWhatWasKnown: Rule = (story) =>
  each(story, (charger, { set }) => {
    const row = story.decisions.get(set.id);
    const life = row === undefined ? undefined : story.lives.findLast(({ startedAt }) => startedAt <= row.at);
    if (row === undefined || life === undefined || row.at < life.readyAt) return null;
    const expected = story.expected.at(charger, row.at, row.seq);
    if (isSame(standingOf({ ...set, until: null }, 0), expected)) return null;
    return `it should have been ${standingInWords(expected)} by what was known`;
  });

/** DESIGN 5.7: after a start each charger that is held to something hears so, at once. */
const toldAgainAfterAStart: Rule = (story) =>
  [...story.told].flatMap(([charger, all]) =>
    story.lives.slice(1).flatMap(({ startedAt, readyAt, endedAt }) => {
      const by = patienceAfter(story, readyAt);
      const last = all.findLast(({ at }) => at < startedAt)?.set;
      if (by >= endedAt || last === undefined || last.kind === "release") return [];
      if (last.until !== null && Date.parse(last.until) <= by) return [];
      const isTold = all.some(({ at }) => at >= startedAt && at <= by);
      return isTold ? [] : [`${charger} stood at ${last.id}, and was told nothing by ${clock(by)}`];
    }),
  );

const steadyConnection: Rule = ({ lives }) =>
  lives.flatMap(({ readyAt, endedAt, reconnects }, life) =>
    reconnects > 1 && (endedAt - readyAt) / reconnects < LASTS
      ? [`run ${life} connected ${reconnects + 1} times`]
      : [],
  );

const plainAnswers: Rule = ({ oddAnswers }) => oddAnswers;

const whole: Rule = ({ damage }) => (damage === null ? [] : [damage]);
const nobodyFell: Rule = ({ lives }) => lives.flatMap(({ crashed }) => (crashed === null ? [] : [crashed]));

/** What must hold of a depot whatever it was done to, by the sentence that a violation is told with. */
const RULES: readonly (readonly [sentence: string, rule: Rule])[] = [
  ["a command is on record before it is sent", recorded],
  ["a command stands on what was asked and known, within its own window", inItsWindow],
  ["no charger hears an older revision after a newer", neverAnOlderRevision],
  ["epochs and numbers never go back", neverBack],
  ["no charger refuses anything because it took something newer", nothingOldArrived],
  ["at most one extra message for each charger and restart", oneExtraPerRestart],
  ["what could be done was done: starts, changes, releases", whoHadTimeDidIt],
  ["what is decided follows from what was known", decidedByWhatWasKnown],
  ["who is held to something is told so again after a start", toldAgainAfterAStart],
  ["a delivery is taken, or is to come again", plainAnswers],
  ["what was answered with 2xx is there", promisesKept],
  ["nothing is known that was never said", onlyWhatThePartnerSaid],
  ["missed is what nobody could act on", missedOnlyWhenAway],
  ["a connection to the broker lasts", steadyConnection],
  ["the record is whole", whole],
  ["no process ends by itself", nobodyFell],
];

/** What of a story breaks the rules, in words. */
export function violations(story: Story): readonly string[] {
  const decisions = new Map(
    story.rows.flatMap((row) =>
      row.kind === "decision" && row.command !== null ? [[row.command, row] as const] : [],
    ),
  );
  const seen: Case = { ...story, expected: new Expected(story), decisions };
  return RULES.flatMap(([sentence, rule]) => rule(seen).map((words) => `${sentence}: ${words}`));
}
