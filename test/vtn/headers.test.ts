import * as fc from "fast-check";
import { expect, test } from "vitest";
import { instant } from "../../src/domain/units.ts";
import { headerText, isPlain, readsAsJson, retryAfterOf, clockSkew } from "../../src/vtn/http.ts";

const at = instant(Date.UTC(2026, 10, 21, 12, 0, 0));

test("a field that was sent twice counts as absent, so no sender can add a second signature", () => {
  expect(headerText({ "x-signature": "a" }, "X-Signature")).toBe("a");
  expect(headerText({ "x-signature": ["a", "b"] }, "X-Signature")).toBeNull();
  expect(headerText({}, "X-Signature")).toBeNull();
});

test("JSON is read under any of its types, but only in UTF-8", () => {
  for (const type of [
    "application/json",
    "Application/JSON; charset=UTF-8",
    'application/json;charset="utf-8"',
    "application/cloudevents+json; profile=x",
    "application/vnd.partner.v1+json",
  ]) {
    expect(readsAsJson(type), type).toBe(true);
  }
  for (const type of [
    "text/html",
    "application/jsonp",
    "application/json; charset=utf-16",
    "text/json",
    "",
  ]) {
    expect(readsAsJson(type), type).toBe(false);
  }
});

test("F38: a compressed body is never unpacked", () => {
  expect(isPlain({})).toBe(true);
  expect(isPlain({ "content-encoding": "identity" })).toBe(true);
  expect(isPlain({ "content-encoding": "gzip" })).toBe(false);
  expect(isPlain({ "transfer-encoding": "Chunked" })).toBe(true);
  expect(isPlain({ "transfer-encoding": "gzip, chunked" })).toBe(false);
});

test("the partner's Date shows how far our clock is ahead", () => {
  expect(clockSkew({ date: "Sat, 21 Nov 2026 11:59:30 GMT" }, at)).toBe(30_000);
  expect(clockSkew({ date: "Sat, 21 Nov 2026 12:10:00 GMT" }, at)).toBe(-600_000);
  expect(clockSkew({ date: "yesterday" }, at)).toBeNull();
  expect(clockSkew({}, at)).toBeNull();
});

test("F32: Retry-After is honoured as seconds or as a date, up to 15 minutes, and ignored when absurd", () => {
  const wait = (text: string, date?: string) =>
    retryAfterOf({ "retry-after": text, ...(date === undefined ? {} : { date }) }, at);
  expect(wait("0")).toBe(0);
  expect(wait("7")).toBe(7000);
  expect(wait("3600")).toBe(900_000);
  expect(wait("999999999")).toBeNull();
  expect(wait("-1")).toBeNull();
  expect(wait("soon")).toBeNull();
  expect(wait("Sat, 21 Nov 2026 12:01:00 GMT")).toBe(60_000);
  expect(wait("Sat, 21 Nov 2026 11:00:00 GMT")).toBe(0);
  // Their clock is an hour behind ours: a minute for them is a minute for us.
  expect(wait("Sat, 21 Nov 2026 11:01:00 GMT", "Sat, 21 Nov 2026 11:00:00 GMT")).toBe(60_000);
  expect(retryAfterOf({}, at)).toBeNull();
});

test("the wait is between nothing and 15 minutes, whatever stands in Retry-After", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.integer().map(String)), (text) => {
      const wait = retryAfterOf({ "retry-after": text }, at);
      expect(wait === null || (wait >= 0 && wait <= 900_000)).toBe(true);
    }),
  );
});
