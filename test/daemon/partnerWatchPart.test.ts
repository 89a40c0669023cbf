import { beforeEach, expect, test } from "vitest";

import { instant, type Millis, millis, minutes, seconds } from "../../src/domain/units.ts";
import { PartnerWatch } from "../../src/daemon/partnerWatch.ts";
import { failed, unasked } from "../../src/vtn/http.ts";
import { at } from "../support/anEvent.ts";

const START = at("05:00");

let now = START;
let wall = START;
let isClockDoubted = false;
let told: string[] = [];
let watch: PartnerWatch;

const say = (words: unknown) => void told.push(String(words));

beforeEach(() => {
  now = wall = START;
  isClockDoubted = false;
  told = [];
  watch = new PartnerWatch({
    now: () => now,
    wall: () => wall,
    monotonic: () => now - START,
    isClockDoubted: () => isClockDoubted,
    staleAfter: minutes(15),
    maxSkew: seconds(30),
    wallClock: String,
    away: {
      gone: (who, since) => say(`${who} gone since ${since - START}`),
      back: (who) => say(`${who} back`),
    },
    log: { info: say, warn: say, error: say },
    onClockAgrees: () => say("the clocks agree"),
  });
});

/** An unchanged list, with how far our clock is ahead of the partner's. */
const answered = (skew: Millis | null) => watch.onAnswer({ kind: "unchanged", at: now, skew });

test("a single failure is no outage, two are one since the last answer", () => {
  answered(millis(0));
  expect(watch.isUp).toBe(true);
  now = instant(START + 30_000);
  told = [];
  watch.onAnswer(failed("timeout", null, null));
  expect(watch.isUp).toBe(false);
  expect(told).toEqual(["the partner cannot be asked: timeout; the stored plan goes on"]);
  watch.onAnswer(failed("timeout", null, null));
  answered(millis(0));
  expect(told.slice(1)).toEqual([
    "partner gone since 0",
    "partner back",
    "the partner answers again",
    "the clocks agree",
  ]);
});

test("the last webhook and the last answered poll are known apart", () => {
  expect(watch.contact).toEqual({ webhookAt: null, polledAt: null });
  watch.onDelivery({ source: "webhook", at: START });
  now = instant(START + 30_000);
  answered(null);
  const polledAt = now;
  now = instant(START + 60_000);
  // Neither a single event that was asked for nor a failure is a poll of the list.
  const delivery = { source: "fetch", at: now, askedAt: now, notices: [], complete: false } as const;
  watch.onAnswer({ kind: "read", delivery, skew: null });
  watch.onAnswer(failed("timeout", null, null));
  watch.onDelivery(delivery);
  expect(watch.contact).toEqual({ webhookAt: START, polledAt });
});

test("requests that were not sent show nothing about the partner", () => {
  answered(millis(0));
  watch.onAnswer(unasked("a limit of ours", null));
  watch.onAnswer(unasked("a limit of ours", null));
  expect(watch.isUp).toBe(true);
});

test("the clock is confirmed only by an answer that shows our time", () => {
  expect(watch.clockAgrees).toBe(false);
  answered(null);
  expect(watch.clockAgrees).toBe(false);
  answered(millis(30_001));
  expect(watch.clockAgrees).toBe(false);
  expect(told).not.toContain("the clocks agree");
  answered(millis(-30_000));
  expect(watch.clockAgrees).toBe(true);
  expect(told).toContain("the clocks agree");
  isClockDoubted = true;
  expect(watch.clockAgrees).toBe(false);
});

test("while time is carried on, it is the clock of this machine that agrees or not", () => {
  // An hour behind what is on record, as the partner's clock is, too.
  wall = instant(now - 3_600_000);
  answered(millis(3_600_000));
  expect(watch.health.skew).toBe(0);
  expect(watch.ahead()).toBe(3_600_000);
});

test("a clock ahead is reported only where it is more than is tolerated", () => {
  expect(watch.ahead()).toBe(0);
  answered(millis(20_000));
  expect(watch.ahead()).toBe(0);
  answered(millis(40_000));
  expect(watch.ahead()).toBe(40_000);
});
