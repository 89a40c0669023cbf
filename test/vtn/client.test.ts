import { expect, test } from "vitest";
import { runToEnd } from "../../src/platform/cooperative.ts";
import { eventId, instant } from "../../src/domain/units.ts";
import type { Answered } from "../../src/vtn/http.ts";
import { eventFrom, failureOf, listFrom } from "../../src/vtn/client.ts";
import { aDialect } from "../support/aDialect.ts";

const answered = (over: Partial<Answered>): Answered => ({
  kind: "answered",
  status: 200,
  headers: {},
  body: Buffer.from("[]"),
  askedAt: instant(1),
  at: instant(2),
  ...over,
});

test("only a plain 200 in JSON is an answer; a missing content type is tolerated", () => {
  expect(failureOf(answered({}), [])).toBeNull();
  expect(failureOf(answered({ headers: { "content-type": "text/html" } }), [])).toMatchObject({
    status: 200,
  });
  expect(failureOf(answered({ status: 404 }), [])).toMatchObject({ status: 404 });
  expect(failureOf(answered({ status: 404 }), [404, 410])).toBeNull();
});

test("credentials that are refused are not tried again for a minute", () => {
  for (const status of [401, 403]) {
    expect(failureOf(answered({ status }), [])).toMatchObject({ status, retryAfter: 60_000 });
  }
});

test("a delivery carries when it was asked for and when it came", () => {
  expect(runToEnd(listFrom(aDialect(), answered({}), null))).toEqual({
    kind: "read",
    delivery: { source: "list", askedAt: 1, at: 2, notices: [], complete: true },
    skew: null,
    index: { body: Buffer.from("[]"), start: 1, ends: [], ids: [], rejected: [] },
  });
});

test("an event that cannot be read is a rejected notice, an empty body is a failure", () => {
  const broken = answered({ body: Buffer.from('{"ID":"EV-1","payload":{}}') });
  expect(eventFrom(aDialect(), eventId("EV-1"), broken, null)).toMatchObject({
    kind: "read",
    delivery: { source: "fetch", notices: [{ kind: "rejected", id: "EV-1" }] },
  });
  expect(eventFrom(aDialect(), eventId("EV-1"), answered({ body: Buffer.alloc(0) }), null).kind).toBe(
    "failed",
  );
});
