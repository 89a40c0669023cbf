import type { TrackedEvent } from "../domain/event.ts";
import type { ReportRecord, PostAnswer } from "../domain/report.ts";
import { type Instant, after, instant, type Millis, millis, minutes, seconds } from "../domain/units.ts";
import { backoff } from "../platform/backoff.ts";

const FIRST_RETRY = seconds(2);
const LONGEST_RETRY = minutes(15);
/** Rights and credentials do not mend by asking often, and each try may cost the events their token (F34). */
const CREDENTIALS_WAIT = minutes(15);
/** The partner's own wish is cut to as much where its answer is read. */
const LONGEST_WAIT = minutes(15);
/** A path that is not there today may be there tomorrow. */
const DAILY = minutes(24 * 60);

/**
 * The record after one try (2xx done; 404, 409 and 410 done where the partner lists the report, else set aside;
 * 400, 413, 422 set aside with the partner's words; 404, 405 and 410 without a list flagged and tried daily; the rest
 * tried again with back-off) until it has been tried for `giveUpAfter` (F43).
 * `fraction` in [0, 1) spreads the retries.
 */
export function afterPost(
  record: ReportRecord,
  answer: PostAnswer,
  giveUpAfter: Millis,
  now: Instant,
  fraction: number,
): ReportRecord {
  const status = answer.kind === "silent" ? null : answer.status;
  const tried = { ...record, attempts: record.attempts + 1, status };
  if (answer.kind !== "silent" && isTaken(answer))
    return { ...tried, state: "sent", nextTry: null, reason: null, receipt: answer.words, sentAt: now };
  const reason = reasonOf(answer);
  if (answer.kind === "checked" || (status !== null && REFUSALS.includes(status)))
    return { ...tried, state: "flagged", nextTry: null, reason };
  const isUnknown = status !== null && NOWHERE.includes(status);
  const pause = isUnknown ? DAILY : pauseAfter(answer, record.attempts, fraction);
  const nextTry = after(now, pause);
  if (nextTry > after(record.since, giveUpAfter))
    return { ...tried, state: "flagged", nextTry: null, reason: `given up: ${reason}` };
  return { ...tried, state: isUnknown ? "flagged" : record.state, nextTry, reason };
}

const isTaken = (answer: Exclude<PostAnswer, { kind: "silent" }>): boolean =>
  answer.kind === "checked" ? answer.isListed : answer.status >= 200 && answer.status < 300;
/** A conflict with a report that is there already, or with anything else (openadr3 2): only a list tells. */
const CONFLICT = 409;
/** Of the report itself: the next try would be answered the same. */
const REFUSALS: readonly number[] = [400, 413, 422];
const NOWHERE: readonly number[] = [404, 405, 410];

const isWithdrawn = (known: TrackedEvent | undefined): boolean =>
  known?.kind === "withdrawn" || (known?.kind === "over" && known.was === "withdrawn");

/** Of an event that was deleted, a 404 or 410 says nothing of the endpoint. */
export const aboutEvent = (answer: PostAnswer, known: TrackedEvent | undefined): PostAnswer =>
  isWithdrawn(known) && answer.kind === "answered" && [404, 410].includes(answer.status)
    ? { ...answer, kind: "checked", isListed: false, retryAfter: null }
    : answer;

/** Whether the trouble is not of this report alone: then the others need not be tried now. */
export const isCommonTrouble = (answer: PostAnswer): boolean =>
  answer.kind === "silent" ||
  (answer.kind === "answered" &&
    !(isTaken(answer) || [CONFLICT, ...REFUSALS, ...NOWHERE].includes(answer.status)));

/** How long to wait after this many failures before this one. */
export function pauseAfter(answer: PostAnswer, failures: number, fraction: number): Millis {
  const refused = answer.kind === "answered" && (answer.status === 401 || answer.status === 403);
  const least = Math.max(answer.retryAfter ?? 0, refused ? CREDENTIALS_WAIT : 0);
  return millis(Math.max(least, backoff(failures, fraction, FIRST_RETRY, LONGEST_RETRY)));
}

function reasonOf(answer: PostAnswer): string {
  if (answer.kind === "silent") return answer.reason;
  const { status, words } = answer;
  const said = words === "" ? "" : `: ${words}`;
  if (answer.kind === "checked")
    return status === CONFLICT
      ? `HTTP ${status}${said}; the partner does not have this report`
      : `the partner does not know the event any more (HTTP ${status})${said}`;
  if (NOWHERE.includes(status)) return `endpoint unknown (HTTP ${status})${said}`;
  if (status === 401 || status === 403)
    return `the partner does not let us send reports (HTTP ${status})${said}`;
  return `HTTP ${status}${said}`;
}

/**
 * When it is tried next. A moment further ahead than the longest wait was set by a clock that has been set back since:
 * then it is due now.
 */
export function dueAt({ nextTry, state }: ReportRecord, now: Instant): Instant {
  if (nextTry === null) return instant(Infinity);
  return nextTry > after(now, state === "flagged" ? DAILY : LONGEST_WAIT) ? now : nextTry;
}

/** The same body once more, as if it had just been composed. */
export const resent = (record: ReportRecord, now: Instant): ReportRecord => ({
  ...record,
  state: "waiting",
  nextTry: now,
  since: now,
  attempts: 0,
  reason: null,
});

/** The record whose next try is the earliest, if that comes by `until`. */
export function firstBy(
  records: Iterable<ReportRecord>,
  now: Instant,
  until: Instant,
): ReportRecord | undefined {
  let first: { readonly record: ReportRecord; readonly at: Instant } | undefined;
  for (const record of records) {
    const at = dueAt(record, now);
    if (at <= until && (first === undefined || at < first.at)) first = { record, at };
  }
  return first?.record;
}
