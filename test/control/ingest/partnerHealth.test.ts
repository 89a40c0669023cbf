import { expect, test } from "vitest";
import {
  type Attempt,
  recordAttempt,
  freshHealth,
  type PartnerHealth,
} from "../../../src/control/ingest/partnerHealth.ts";
import { type Instant, iso, millis, minutes, seconds } from "../../../src/domain/units.ts";
import { at } from "../../support/anEvent.ts";

const limits = {
  staleAfter: minutes(10),
  maxSkew: minutes(5),
  wallClock: (moment: Instant) => `${iso(moment).slice(11, 16)} here`,
};
const failed = (reason: string): Attempt => ({ ok: false, asked: true, reason });
const heldBack = (reason: string): Attempt => ({ ok: false, asked: false, reason });
const answered = (skew: number | null = 0): Attempt => ({
  ok: true,
  skew: skew === null ? null : millis(skew),
});

/** What is said along the way, attempt by attempt. */
function said(...attempts: readonly (readonly [string, Attempt])[]) {
  let health: PartnerHealth = freshHealth(at("05:00"));
  return attempts.map(([time, attempt]) => {
    const next = recordAttempt(health, attempt, at(time), limits);
    health = next.health;
    return next.messages.map(({ level, message }) => `${level} ${message}`);
  });
}

test("the first answer is logged once, later ones are not", () => {
  expect(said(["05:00", answered()], ["05:01", answered(null)])).toEqual([["info the partner answers"], []]);
});

test("a clock that is set back does not delay the alarm for a long silence", () => {
  const steps = said(
    ["05:00", answered()],
    ["04:00", failed("HTTP 503")],
    ["04:10", failed("HTTP 503")],
    ["04:11", failed("HTTP 503")],
  );
  expect(steps.slice(2)).toEqual([
    [],
    ["error no answer from the partner since 04:00 here: what is known may be out of date"],
  ]);
});

test("F30: an outage is logged once for each reason, and so is its end", () => {
  const words = "warn the partner cannot be asked: HTTP 503; the stored plan goes on";
  expect(
    said(
      ["05:00", failed("HTTP 503")],
      ["05:01", failed("HTTP 503")],
      ["05:02", failed("time-out")],
      ["05:03", answered()],
    ),
  ).toEqual([
    [words],
    [],
    ["warn the partner cannot be asked: time-out; the stored plan goes on"],
    ["info the partner answers again"],
  ]);
});

test("F30: an outage with alternating reasons logs each once; the next outage logs them again", () => {
  const [cut, refused] = [failed("read ECONNRESET"), failed("connect ECONNRESET")];
  expect(
    said(
      ["05:00", cut],
      ["05:01", refused],
      ["05:02", cut],
      ["05:03", refused],
      ["05:04", answered()],
      ["05:05", cut],
    ).map((step) => step.length),
  ).toEqual([1, 1, 0, 0, 1, 1]);
});

test("F30: a partner that varies its error texts is logged sixteen times", () => {
  const refusals = Array.from({ length: 100 }, (_, n) => ["05:00", failed(`HTTP ${400 + n}`)] as const);
  expect(said(...refusals).flat()).toHaveLength(16);
});

test("F30: a partner that is silent for longer than staleAfter raises one alarm", () => {
  const steps = said(["05:10", failed("x")], ["05:10:01", failed("x")], ["05:20", failed("x")]);
  expect(steps.map((step) => step.filter((words) => words.startsWith("error")))).toEqual([
    [],
    ["error no answer from the partner since 05:00 here: what is known may be out of date"],
    [],
  ]);
});

test("a request that was not made is no failure and not logged, but the time without an answer passes", () => {
  const health = recordAttempt(freshHealth(at("05:00")), failed("HTTP 503"), at("05:01"), limits).health;
  const soon = recordAttempt(health, heldBack("our own limit"), at("05:02"), limits);
  expect(soon).toEqual({ health, messages: [] });
  const late = recordAttempt(health, heldBack("our own limit"), at("05:11"), limits);
  expect(late.health).toEqual({ ...health, stale: true });
  expect(late.messages).toMatchObject([{ level: "error" }]);
});

test("F22: clock skew is logged once, after two consecutive answers show it", () => {
  const off = seconds(400);
  const steps = said(
    ["05:00", answered(off)],
    ["05:01", answered(0)],
    ["05:02", answered(off)],
    ["05:03", answered(off)],
    ["05:04", answered(off)],
  );
  expect(steps.flat()).toEqual([
    "info the partner answers",
    "warn our clock is 400 s ahead of the partner's: check the time of this machine",
  ]);
  expect(steps[3]).toHaveLength(1);
});

test("F22: a clock that is behind is logged as behind", () => {
  const steps = said(["05:00", answered(seconds(-400))], ["05:01", answered(seconds(-400))]);
  expect(steps[1]).toEqual(["warn our clock is 400 s behind the partner's: check the time of this machine"]);
});
