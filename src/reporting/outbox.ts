import type { Change } from "../domain/changes.ts";
import type { TrackedEvent } from "../domain/event.ts";
import type { ReportRecord, PostAnswer } from "../domain/report.ts";
import type { Store } from "../domain/store.ts";
import {
  type Instant,
  after,
  instant,
  type Millis,
  millis,
  minutes,
  seconds,
  hours,
} from "../domain/units.ts";
import { backoff } from "../platform/clock.ts";
import type { Composed } from "./compose.ts";
import type { Upcoming } from "./obligations.ts";

const FIRST_RETRY = seconds(2);
const LONGEST_RETRY = minutes(15);
/** Asking often does not restore rights or credentials. Each attempt may also cost the token that polling needs. */
const CREDENTIALS_WAIT = minutes(15);
/** Cap on the partner's Retry-After, applied where its answer is read. */
const LONGEST_WAIT = minutes(15);
/** A missing path may appear later. */
const DAILY = hours(24);

interface AttemptContext {
  readonly giveUpAfter: Millis;
  readonly now: Instant;
  /** In [0, 1). Spreads the retries. */
  readonly fraction: number;
}

/**
 * State of a report after one attempt.
 * 2xx: sent. 404, 409 and 410: sent if the partner lists the report, else set aside.
 * 400, 413 and 422: set aside with the partner's reason.
 * 404, 405 and 410 without a list: flagged and tried daily.
 * Others: tried again with back-off, until `giveUpAfter`.
 */
export function afterPost(
  record: ReportRecord,
  answer: PostAnswer,
  { giveUpAfter, now, fraction }: AttemptContext,
): ReportRecord {
  const status = answer.kind === "silent" ? null : answer.status;
  const tried = { ...record, attempts: record.attempts + 1, status };
  if (answer.kind !== "silent" && isAccepted(answer))
    return { ...tried, state: "sent", nextTry: null, reason: null, receipt: answer.text, sentAt: now };
  const reason = reasonOf(answer);
  if (answer.kind === "checked" || (status !== null && REFUSALS.includes(status)))
    return { ...tried, state: "flagged", nextTry: null, reason };
  const isUnknown = status !== null && ENDPOINT_UNKNOWN.includes(status);
  const pause = isUnknown ? DAILY : pauseAfter(answer, record.attempts, fraction);
  const nextTry = after(now, pause);
  if (nextTry > after(record.since, giveUpAfter))
    return { ...tried, state: "flagged", nextTry: null, reason: `given up: ${reason}` };
  return { ...tried, state: isUnknown ? "flagged" : record.state, nextTry, reason };
}

const isAccepted = (answer: Exclude<PostAnswer, { kind: "silent" }>): boolean =>
  answer.kind === "checked" ? answer.isListed : answer.status >= 200 && answer.status < 300;
/** A conflict with this report or with something else: only the list shows which. */
const CONFLICT = 409;
/** Refusals of the report itself: another attempt would get the same answer. */
const REFUSALS: readonly number[] = [400, 413, 422];
const ENDPOINT_UNKNOWN: readonly number[] = [404, 405, 410];

const isWithdrawn = (known: TrackedEvent | undefined): boolean =>
  known?.kind === "withdrawn" || (known?.kind === "over" && known.was === "withdrawn");

/** A 404 or 410 for a deleted event is no fault of the endpoint. */
export const aboutEvent = (answer: PostAnswer, known: TrackedEvent | undefined): PostAnswer =>
  isWithdrawn(known) && answer.kind === "answered" && [404, 410].includes(answer.status)
    ? { ...answer, kind: "checked", isListed: false, retryAfter: null }
    : answer;

/** The partner lets us in, but does not let us send this report, such as for another program. */
const FORBIDDEN = 403;
export const isForbidden = (answer: PostAnswer): boolean =>
  answer.kind === "answered" && answer.status === FORBIDDEN;

/** True if the failure concerns all reports: then the others are not tried now. */
export const isCommonTrouble = (answer: PostAnswer): boolean =>
  answer.kind === "silent" ||
  (answer.kind === "answered" &&
    !(isAccepted(answer) || [CONFLICT, FORBIDDEN, ...REFUSALS, ...ENDPOINT_UNKNOWN].includes(answer.status)));

/** Wait before the next attempt. `failures`: number of failures before this one. */
export function pauseAfter(answer: PostAnswer, failures: number, fraction: number): Millis {
  const refused = answer.kind === "answered" && (answer.status === 401 || answer.status === FORBIDDEN);
  const least = Math.max(answer.retryAfter ?? 0, refused ? CREDENTIALS_WAIT : 0);
  return millis(Math.max(least, backoff(failures, fraction, FIRST_RETRY, LONGEST_RETRY)));
}

function reasonOf(answer: PostAnswer): string {
  if (answer.kind === "silent") return answer.reason;
  const { status, text } = answer;
  const quoted = text === "" ? "" : `: ${text}`;
  if (answer.kind === "checked")
    return status === CONFLICT
      ? `HTTP ${status}${quoted}; the partner does not have this report`
      : `the partner does not know the event any more (HTTP ${status})${quoted}`;
  if (ENDPOINT_UNKNOWN.includes(status)) return `endpoint unknown (HTTP ${status})${quoted}`;
  if (status === 401) return `the partner does not let us send reports (HTTP ${status})${quoted}`;
  if (status === FORBIDDEN) return `the partner does not let us send this report (HTTP ${status})${quoted}`;
  return `HTTP ${status}${quoted}`;
}

/**
 * Time of the next attempt. A time beyond the longest wait was set by a clock that has since moved back: then it is due
 * now.
 */
export function dueAt({ nextTry, state }: ReportRecord, now: Instant): Instant {
  if (nextTry === null) return instant(Infinity);
  return nextTry > after(now, state === "flagged" ? DAILY : LONGEST_WAIT) ? now : nextTry;
}

/** Resets a report for sending, with the same body. */
export const resent = (record: ReportRecord, now: Instant): ReportRecord => ({
  ...record,
  state: "waiting",
  nextTry: now,
  since: now,
  attempts: 0,
  reason: null,
});

/** The report that is tried first, of those that are due until then. */
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

/** A composed report that waits for its first attempt. */
export function recordOf({ window }: Upcoming, { report, summary }: Composed, now: Instant): ReportRecord {
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

/** States of composed reports that outlive failed commits. A report that was sent would be sent again otherwise. */
export class Outbox {
  readonly #waiting: Map<string, ReportRecord>;
  readonly #ports: Pick<Store, "writeUntilStored">;
  /** The last state of each report, until it is stored. */
  readonly #unstored = new Map<string, ReportRecord>();

  constructor(waiting: Map<string, ReportRecord>, ports: Pick<Store, "writeUntilStored">) {
    this.#waiting = waiting;
    this.#ports = ports;
  }

  /** Reports with a next attempt. */
  waiting(): Iterable<ReportRecord> {
    return this.#waiting.values();
  }

  get(name: string): ReportRecord | undefined {
    return this.#waiting.get(name);
  }

  /** A report that is stored and may be sent. */
  add(record: ReportRecord): void {
    this.#put(record);
  }

  /** The new state of a report, with the rows about it. */
  update(record: ReportRecord, rows: readonly Change[]): void {
    const { name } = record;
    this.#put(record);
    this.#unstored.set(name, record);
    void this.#ports.writeUntilStored([{ kind: "report", record, body: null }, ...rows]).then(() => {
      if (this.#unstored.get(name) === record) this.#unstored.delete(name);
    });
  }

  /** After the reports were read from the store again. */
  restoreUnstored(): void {
    for (const record of this.#unstored.values()) this.#put(record);
  }

  #put(record: ReportRecord): void {
    if (record.nextTry === null) this.#waiting.delete(record.name);
    else this.#waiting.set(record.name, record);
  }
}
