import { targeting } from "../control/schedule/targeting.ts";
import type { ControlState } from "../control/state.ts";
import type { Change } from "../domain/changes.ts";
import type { PostAnswer, ReportObligation, ReportRecord } from "../domain/report.ts";
import {
  after,
  type Instant,
  instant,
  later,
  type Millis,
  millis,
  minutes,
  seconds,
} from "../domain/units.ts";
import { composedRow, obligationRows, resentRow, triedRow } from "./auditRows.ts";
import { compose, type Composed } from "./compose.ts";
import type { ReportSchedule, Upcoming } from "./obligations.ts";
import { firstBy, aboutEvent, afterPost, dueAt, isCommonTrouble, pauseAfter, resent } from "./outbox.ts";
import type { ReportOutcome, ReportPorts, ReportRules } from "./ports.ts";
import {
  type ScheduleContext,
  edgesWithin,
  issue,
  scheduleChangedEvents,
  restoreSchedule,
  takeDue,
} from "./reportSchedule.ts";

/** Chargers may tell a little late; and what is near is found anew each minute at least. */
const EDGES_BACK = minutes(10);
const EDGES_AHEAD = minutes(2);
const EDGES_HOLD = minutes(1);
/** After a failed commit it is tried again so much later. */
const COMMIT_RETRY = seconds(5);
/** New starts, and with them reports, are held no longer than this after the start of the process. */
const SETTLING = minutes(5);
/**
 * So long a clock that is ahead may be put right: a report made before its time is made for good. As for new starts
 * (DESIGN 5.7), ours is believed after that, and the partner's may well be the wrong one.
 */
const LONGEST_AHEAD = minutes(5);
/** What is held is looked at so often. */
const HELD_LOOK = seconds(1);
const TOO_LATE = "a report was due, and nothing ran, for longer than reports are tried";
const LONG_AGO = millis(-Infinity);

/** The stages of reporting, bound to the desk that they change: each does its part and writes it down. */
export function reportStages(
  desk: ReportSchedule,
  depot: ControlState,
  rules: ReportRules,
  ports: ReportPorts,
) {
  const { settings, giveUpAfter, enabled } = rules;
  // Both on the clock that never jumps: one that is ahead and is set back must not stop reports for as long.
  /** Nothing is composed before it: a commit has failed. Null: none has. */
  let pausedUntil: Millis | null = null;
  /** What is stored could not be read after that: until it is, nobody knows what is owed. */
  let isAstray = false;
  const settledBy = millis(ports.monotonic() + SETTLING);
  /** Since when our clock is ahead of the partner's without a break; null: it is not. */
  let aheadSince: Millis | null = null;
  /** Nothing is sent before it: the endpoint is in trouble, or asked us to wait. */
  let closedUntil = LONG_AGO;
  let failures = 0;
  /** Of the reports to come as they were then. */
  let edges: { readonly at: Instant; readonly near: readonly Instant[] } | null = null;

  const context: ScheduleContext = {
    settings,
    enabled,
    concernsUs: ({ event }) => targeting(event, depot.expansion).vehicles.size > 0,
    whole: (id) => depot.known.whole(id) ?? null,
  };

  /** A moment of the clock that never jumps, by the wall clock as it is now. */
  const onWall = (tick: Millis): Instant => after(ports.now(), millis(Math.ceil(tick - ports.monotonic())));

  /** How far our clock is ahead, as long as that may be about to end. */
  const ahead = (): Millis => {
    const by = ports.ahead();
    aheadSince = by > 0 ? (aheadSince ?? ports.monotonic()) : null;
    return aheadSince === null || ports.monotonic() - aheadSince > LONGEST_AHEAD ? millis(0) : by;
  };

  /** By then what is to be made falls due. */
  const dueBy = (): Instant => instant(ports.now() - ahead());

  const remember = (duties: readonly ReportObligation[], now: Instant): readonly Change[] =>
    duties.flatMap((duty) => {
      if (duty.state === "flagged") ports.counted("flagged");
      return [{ kind: "duty", duty } as const, ...obligationRows(duty, now)];
    });

  /** As with new starts, the partner is asked first: its answer tells what our clock is worth. */
  const mayCompose = (): boolean => ports.monotonic() >= settledBy || depot.startsAllowed;

  /** Events as they are now. */
  const takeIn = (): void => {
    const changed = depot.known.takeChanged();
    if (changed.length === 0) return;
    ports.write(remember(scheduleChangedEvents(desk, depot.known, changed, context), ports.now()));
    edges = null;
  };

  const edgesNear = (now: Instant): readonly Instant[] => {
    const isFresh = edges !== null && edges.at <= now && now < after(edges.at, EDGES_HOLD);
    if (edges !== null && isFresh) return edges.near;
    const near = edgesWithin(desk, { from: instant(now - EDGES_BACK), until: after(now, EDGES_AHEAD) });
    edges = { at: now, near };
    return near;
  };

  const fill = async (upcoming: Upcoming): Promise<Filled | string> => {
    try {
      const composed = await compose(depot, upcoming, settings, ports);
      return { ...composed, body: ports.spell(composed.report) };
    } catch (error) {
      // A bug, or a disk that cannot be read: it costs this report, not those that follow.
      return `it could not be composed: ${wordsOf(error)}`;
    }
  };

  /** A commit has failed. */
  const startOver = (): void => {
    pausedUntil = millis(ports.monotonic() + COMMIT_RETRY);
    try {
      restoreSchedule(desk, ports.owed(), enabled);
      isAstray = false;
    } catch {
      isAstray = true;
    }
    depot.known.allChanged();
  };

  /** False: it could not be stored, and everything starts over. */
  const composeOne = async (key: string): Promise<boolean> => {
    const upcoming = desk.upcoming.get(key);
    if (upcoming === undefined) return true;
    if (upcoming.window.due > dueBy()) {
      // The clock was set back while another was composed.
      desk.due.push(upcoming.window.due, key);
      return true;
    }
    const isTooLate = after(upcoming.window.due, millis(giveUpAfter + ports.ahead())) < ports.now();
    const composed = isTooLate ? TOO_LATE : await fill(upcoming);
    takeIn();
    // A newer revision, or a withdrawal, came in the meantime.
    if (desk.upcoming.get(key) !== upcoming) return true;
    const now = ports.now();
    const failed = typeof composed === "string" ? composed : null;
    const record = typeof composed === "string" ? null : recordOf(upcoming, composed, now);
    const duty = issue(desk, key, upcoming, failed, settings);
    edges = null;
    if (typeof composed !== "string" && record !== null) {
      const { body } = composed;
      ports.write([{ kind: "report", record, body }, composedRow(record, now, ports.wallClock)]);
    }
    ports.write(remember(duty === null ? [] : [duty], now));
    const { ok } = await ports.durable();
    if (!ok) {
      startOver();
      return false;
    }
    if (record === null) return true;
    desk.outbox.set(record.name, record);
    ports.counted("composed");
    return true;
  };

  const nextToSend = (): ReportRecord | undefined => {
    if (!enabled || ports.monotonic() < closedUntil) return undefined;
    const now = ports.now();
    return firstBy(desk.outbox.values(), now, now);
  };

  const bodyOf = (name: string): PostAnswer | { readonly kind: "read"; readonly text: string } => {
    try {
      const text = ports.body(name);
      return text === null ? LOST : { kind: "read", text };
    } catch (error) {
      // It is there, and may be read the next time.
      return { kind: "silent", reason: `its body could not be read: ${wordsOf(error)}`, retryAfter: null };
    }
  };

  const settle = (name: string, given: PostAnswer): void => {
    const record = desk.outbox.get(name);
    if (record === undefined) return;
    const answer = aboutEvent(given, depot.known.get(record.event));
    const [now, longest] = [ports.now(), millis(giveUpAfter + ports.ahead())];
    const next = afterPost(record, answer, longest, now, ports.random());
    if (next.nextTry === null) desk.outbox.delete(name);
    else desk.outbox.set(name, next);
    failures = isCommonTrouble(answer) ? failures + 1 : 0;
    closedUntil =
      failures > 0 ? millis(ports.monotonic() + pauseAfter(answer, failures, ports.random())) : LONG_AGO;
    ports.write([{ kind: "report", record: next, body: null }, ...triedRow(record, next, now)]);
    ports.counted(outcomeOf(next));
  };

  return {
    /** Of the intervals to be reported, those near now. */
    edges: (): readonly Instant[] => edgesNear(ports.now()),

    /** When there is something to compose. */
    nextReport: (): Instant | undefined => {
      // Of a desk that starts over nothing is due yet.
      if (pausedUntil !== null) return onWall(pausedUntil);
      const due = desk.due.next();
      if (due === undefined) return undefined;
      return mayCompose() && dueBy() >= ports.now() ? due : later(due, after(ports.now(), HELD_LOOK));
    },

    /** When there is something to send. */
    nextTry: (): Instant | undefined => {
      if (!enabled) return undefined;
      const now = ports.now();
      const first = firstBy(desk.outbox.values(), now, instant(Infinity));
      return first === undefined ? undefined : later(dueAt(first, now), onWall(closedUntil));
    },

    /** Composes one report after another whose time has come, each committed before it may be sent. */
    async compose(): Promise<void> {
      if (pausedUntil !== null && ports.monotonic() < pausedUntil) return;
      pausedUntil = null;
      if (isAstray) startOver();
      if (isAstray) return;
      takeIn();
      if (!mayCompose()) return;
      for (let due = takeDue(desk, dueBy()); due.length > 0; due = takeDue(desk, dueBy()))
        for (const key of due) if (!(await composeOne(key))) return;
    },

    /** Sends one report after another, until none is due or the endpoint is in trouble. */
    async send(): Promise<void> {
      for (let record = nextToSend(); record !== undefined; record = nextToSend()) {
        const body = bodyOf(record.name);
        settle(record.name, body.kind === "read" ? await ports.post(body.text) : body);
      }
    },

    /** A person wants this one sent, now. */
    resend(record: ReportRecord): void {
      const now = ports.now();
      const again = resent(record, now);
      desk.outbox.set(again.name, again);
      [closedUntil, failures] = [LONG_AGO, 0];
      ports.write([{ kind: "report", record: again, body: null }, resentRow(again, now)]);
    },
  };
}

/** With its body as it goes to the partner. */
interface Filled extends Composed {
  readonly body: string;
}

const wordsOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const LOST: PostAnswer = {
  kind: "answered",
  status: 400,
  words: "the stored body is gone, or was changed on the disk",
  retryAfter: null,
};

function outcomeOf({ state, nextTry }: ReportRecord): ReportOutcome {
  if (state === "sent") return "sent";
  return nextTry === null ? "flagged" : "retried";
}

function recordOf({ window }: Upcoming, { report, summary }: Composed, now: Instant): ReportRecord {
  const { name, event, descriptor, k, span, flags } = report;
  return {
    name,
    event,
    descriptor,
    k,
    payloadType: window.wanted.payloadType,
    span,
    summary,
    flags,
    composedAt: now,
    since: now,
    state: "waiting",
    nextTry: now,
    attempts: 0,
    status: null,
    reason: null,
    receipt: null,
    sentAt: null,
  };
}
