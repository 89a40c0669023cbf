import type { Delivery, Notice } from "../core/delivery.ts";
import type { Steps } from "../core/steps.ts";
import { type EventId, type Instant, type Millis, seconds } from "../core/units.ts";
import type { Answered } from "./exchange.ts";
import { type Failed, failed } from "./failed.ts";
import { headerText, isPlain, readsAsJson, retryAfterOf } from "./headers.ts";
import { readEventBody, readingList } from "./wire/envelope.ts";

/** What came of asking the partner. `skew`: how far our clock is ahead of its `Date`, null where it sent none. */
export type Fetched =
  | { readonly kind: "read"; readonly delivery: Delivery; readonly skew: Millis | null }
  /** The list that is already taken in, byte for byte. As a witness of absence it is a complete list. */
  | { readonly kind: "unchanged"; readonly at: Instant; readonly skew: Millis | null }
  | { readonly kind: "gone"; readonly delivery: Delivery; readonly skew: Millis | null }
  | Failed;

/** Credentials do not mend by asking often (F34). */
const CREDENTIALS_WAIT = seconds(60);

/** Why an answer cannot be read as what was asked for; null where it can. Nothing but 200 and `alsoFine` is an answer. */
export function failureOf(answer: Answered, alsoFine: readonly number[], what = "events"): Failed | null {
  const { status, headers, at } = answer;
  if (alsoFine.includes(status)) return null;
  if (status === 401) return failed("the partner refuses our token", status, CREDENTIALS_WAIT);
  if (status === 403) return failed(`the partner does not let us read ${what}`, status, CREDENTIALS_WAIT);
  if (status === 429 || status === 503) {
    return failed(`the partner answered ${status}`, status, retryAfterOf(headers, at));
  }
  if (status !== 200) return failed(`the partner answered ${status}`, status, null);
  if (!isPlain(headers)) return failed("the answer is compressed, which we did not ask for", status, null);
  const type = headerText(headers, "content-type");
  if (type !== null && !readsAsJson(type)) return failed("the answer is not JSON in UTF-8", status, null);
  return null;
}

/** A list of events as a delivery. There may be 100,000 of them: it can be left after each. */
export function* listFrom(answer: Answered, skew: Millis | null): Steps<Fetched> {
  const body = yield* readingList(answer.body);
  if (body.kind === "unparsable") return failed(body.reason, answer.status, null);
  const { notices, complete } = body;
  const { at, askedAt } = answer;
  return { kind: "read", delivery: { source: "list", at, askedAt, notices, complete }, skew };
}

/** One event as a delivery, or that there is none by this id. */
export function eventFrom(id: EventId, answer: Answered, skew: Millis | null): Fetched {
  const fetch = (notices: readonly Notice[]): Delivery => ({
    source: "fetch",
    at: answer.at,
    askedAt: answer.askedAt,
    notices,
    complete: false,
  });
  if (answer.status !== 200) return { kind: "gone", delivery: fetch([{ kind: "gone", id }]), skew };
  const body = readEventBody(answer.body);
  if (body.kind === "unparsable") return failed(body.reason, answer.status, null);
  if (body.notices.some((notice) => notice.kind === "event" && notice.event.id !== id)) {
    return failed("the partner answered with another event", answer.status, null);
  }
  return { kind: "read", delivery: fetch(body.notices), skew };
}
