import * as fc from "fast-check";
import { expect, test } from "vitest";

import { obligationKey, type PostAnswer, type ReportRecord } from "../../src/domain/report.ts";
import { after, between, eventId, millis, minutes, seconds } from "../../src/domain/units.ts";
import {
  aboutEvent,
  afterPost,
  dueAt,
  isCommonTrouble,
  pauseAfter,
  resent,
} from "../../src/reporting/outbox.ts";
import { anEvent, at, live, withdrawn } from "../support/anEvent.ts";

const NOON = at("12:00");
const DAY = minutes(24 * 60);
const WEEK = millis(7 * DAY);

const record: ReportRecord = {
  name: "EV-1/0/0",
  event: eventId("EV-1"),
  descriptor: 0,
  k: 0,
  payloadType: "USAGE",
  span: { from: at("11:00"), until: NOON },
  summary: "1 vehicle, 4.2 kWh",
  flags: [],
  composedAt: NOON,
  since: NOON,
  state: "waiting",
  nextTry: NOON,
  attempts: 0,
  status: null,
  reason: null,
  receipt: null,
  sentAt: null,
};

const answered = (status: number, text = "", retryAfter: number | null = null): PostAnswer => ({
  kind: "answered",
  status,
  text,
  retryAfter: retryAfter === null ? null : seconds(retryAfter),
});
const checked = (status: number, isListed: boolean): PostAnswer => ({
  kind: "checked",
  status,
  text: "no",
  isListed,
  retryAfter: null,
});
const silent: PostAnswer = { kind: "silent", reason: "ECONNREFUSED", retryAfter: null };

test.each<readonly [string, PostAnswer, object]>([
  ["200", answered(200, "R-1"), { state: "sent", nextTry: null, receipt: "R-1", sentAt: NOON, reason: null }],
  ["201", answered(201, "R-1"), { state: "sent", nextTry: null, status: 201 }],
  ["204", answered(204), { state: "sent", receipt: "" }],
  [
    "409 by a partner that has it",
    checked(409, true),
    { state: "sent", nextTry: null, receipt: "no", sentAt: NOON, reason: null },
  ],
  [
    "409 by a partner that has not got it",
    checked(409, false),
    { state: "flagged", nextTry: null, reason: "HTTP 409: no; the partner does not have this report" },
  ],
  [
    "409 by a partner that does not tell",
    answered(409),
    { state: "waiting", nextTry: after(NOON, seconds(1)), reason: "HTTP 409" },
  ],
  [
    "404 at an endpoint that is there",
    checked(404, false),
    {
      state: "flagged",
      nextTry: null,
      reason: "the partner does not know the event any more (HTTP 404): no",
    },
  ],
  ["400", answered(400, "no unit"), { state: "flagged", nextTry: null, reason: "HTTP 400: no unit" }],
  ["413", answered(413), { state: "flagged", nextTry: null, reason: "HTTP 413" }],
  ["422", answered(422), { state: "flagged", nextTry: null, reason: "HTTP 422" }],
  [
    "404",
    answered(404, "?"),
    { state: "flagged", nextTry: after(NOON, DAY), reason: "endpoint unknown (HTTP 404): ?" },
  ],
  ["405", answered(405), { state: "flagged", nextTry: after(NOON, DAY) }],
  ["410", answered(410), { state: "flagged", nextTry: after(NOON, DAY) }],
  [
    "401, which a new token did not mend",
    answered(401),
    {
      state: "waiting",
      nextTry: after(NOON, minutes(15)),
      reason: "the partner does not let us send reports (HTTP 401)",
    },
  ],
  [
    "403",
    answered(403),
    {
      state: "waiting",
      nextTry: after(NOON, minutes(15)),
      reason: "the partner does not let us send this report (HTTP 403)",
    },
  ],
  ["429", answered(429, "", 300), { state: "waiting", nextTry: after(NOON, seconds(300)) }],
  ["503", answered(503, "", 120), { state: "waiting", nextTry: after(NOON, seconds(120)) }],
  ["408", answered(408), { state: "waiting", nextTry: after(NOON, seconds(1)), reason: "HTTP 408" }],
  [
    "500",
    answered(500, "oops"),
    { state: "waiting", nextTry: after(NOON, seconds(1)), reason: "HTTP 500: oops" },
  ],
  ["302", answered(302), { state: "waiting", nextTry: after(NOON, seconds(1)) }],
  ["no answer", silent, { state: "waiting", nextTry: after(NOON, seconds(1)), reason: "ECONNREFUSED" }],
])("a report that is answered with %s", (_what, answer, then) => {
  expect(afterPost(record, answer, { giveUpAfter: WEEK, now: NOON, fraction: 0.5 })).toMatchObject({
    attempts: 1,
    ...then,
  });
});

test("a report flagged for an unknown endpoint is sent once that exists", () => {
  const flagged = afterPost(record, answered(404), { giveUpAfter: WEEK, now: NOON, fraction: 0.5 });
  expect(
    afterPost(flagged, answered(201), { giveUpAfter: WEEK, now: after(NOON, DAY), fraction: 0.5 }),
  ).toMatchObject({ state: "sent" });
  expect(
    afterPost(flagged, answered(500), { giveUpAfter: WEEK, now: after(NOON, DAY), fraction: 0.5 }),
  ).toMatchObject({ state: "flagged" });
});

test("a report is retried until its time is over, then given up with the last reason (F43)", () => {
  fc.assert(
    fc.property(
      fc.double({ min: 0, max: 0.999, noNaN: true }),
      fc.constantFrom(500, 404, 401),
      (fraction, status) => {
        let next = record;
        for (let tries = 0; next.nextTry !== null; tries += 1) {
          expect(next.nextTry).toBeLessThanOrEqual(NOON + WEEK);
          expect(tries).toBeLessThan(1_000_000);
          // What is due at once is tried a second later: something else takes the time.
          next = afterPost(next, answered(status), {
            giveUpAfter: WEEK,
            now: after(next.nextTry, minutes(1)),
            fraction,
          });
        }
        expect(next).toMatchObject({ state: "flagged", reason: expect.stringMatching(/^given up: /) });
      },
    ),
    { numRuns: 20 },
  );
});

test("pauses grow to a quarter of an hour and respect a Retry-After", () => {
  const pauses = [0, 1, 2, 5, 8, 20].map((failures) => pauseAfter(silent, failures, 1));
  expect(pauses).toEqual([2, 4, 8, 64, 512, 900].map(seconds));
  expect(pauseAfter(answered(429, "", 600), 0, 0)).toBe(seconds(600));
});

test("gateways whose reports failed together spread their retries", () => {
  expect([0, 0.25, 0.5].map((fraction) => pauseAfter(silent, 8, fraction))).toEqual(
    [0, 128, 256].map(seconds),
  );
  const nextTries = [0.25, 0.5].map((fraction) => {
    const { nextTry } = afterPost({ ...record, attempts: 8 }, silent, {
      giveUpAfter: WEEK,
      now: NOON,
      fraction,
    });
    return nextTry === null ? null : between(NOON, nextTry);
  });
  expect(nextTries).toEqual([128, 256].map(seconds));
});

const holdsUp = (status: number) => isCommonTrouble(answered(status));

test("a failure of one report delays no other; a failure of the endpoint delays all", () => {
  expect([200, 403, 409, 400, 422, 413, 404].some(holdsUp)).toBe(false);
  expect([401, 408, 429, 500, 503, 302].every(holdsUp)).toBe(true);
  expect(isCommonTrouble(silent)).toBe(true);
});

test("a report sent again by an operator has its full time again", () => {
  const refused = afterPost(record, answered(400), { giveUpAfter: WEEK, now: NOON, fraction: 0.5 });
  const later = after(NOON, DAY);
  expect(resent(refused, later)).toEqual({
    ...refused,
    state: "waiting",
    nextTry: later,
    since: later,
    attempts: 0,
    reason: null,
  });
});

test("a next attempt beyond the longest wait is due now: it was set by a clock that was ahead", () => {
  const tried = (nextTry: typeof NOON | null, state: ReportRecord["state"] = "waiting") =>
    dueAt({ ...record, nextTry, state }, NOON);
  expect(tried(after(NOON, minutes(15)))).toBe(after(NOON, minutes(15)));
  expect(tried(after(NOON, minutes(120)))).toBe(NOON);
  expect(tried(after(NOON, minutes(120)), "flagged")).toBe(after(NOON, minutes(120)));
  expect(tried(after(NOON, millis(DAY + 1)), "flagged")).toBe(NOON);
  expect(tried(null)).toBe(Infinity);
});

test("an obligation is identified by its event and descriptor index", () => {
  expect(obligationKey({ event: eventId("EV/1"), descriptor: 3 })).toBe("EV/1/3");
});

test("a conflict settled by the partner's list delays no other report", () => {
  expect([answered(409), checked(409, false), checked(404, true)].map(isCommonTrouble)).toEqual([
    false,
    false,
    false,
  ]);
});

test("a 404 for a deleted event is not an unknown endpoint", () => {
  const deleted = withdrawn(anEvent(), NOON);
  for (const status of [404, 410]) {
    const then = afterPost(record, aboutEvent(answered(status), deleted), {
      giveUpAfter: WEEK,
      now: NOON,
      fraction: 0.5,
    });
    expect(then).toMatchObject({ state: "flagged", nextTry: null });
    expect(then.reason).toContain("does not know the event any more");
  }
  for (const other of [answered(500), silent, checked(404, true)])
    expect(aboutEvent(other, deleted)).toBe(other);
  for (const known of [live(anEvent()), undefined])
    expect(aboutEvent(answered(404), known)).toEqual(answered(404));
});
