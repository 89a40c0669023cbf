import { describe, expect, test } from "vitest";

import {
  ageOfMessage,
  hasEqualLag,
  measuredAt,
  type OwnClock,
  type Stamped,
  NO_CLOCK_KNOWN,
  waitingSince,
} from "../../../src/control/observe/presence.ts";
import { instant } from "../../../src/domain/units.ts";

const NOON = Date.UTC(2026, 10, 22, 12);
const WEEK = 7 * 24 * 3600;

/** Received so many seconds after noon, measured so many seconds before that. */
const stamped = (receivedAt: number, lag: number): Stamped => ({
  at: instant(NOON + (receivedAt - lag) * 1000),
  receivedAt: instant(NOON + receivedAt * 1000),
});

/** What is made of each message of a charger, given as [received, lag] in seconds; the moment in seconds after noon. */
function heard(...messages: readonly (readonly [number, number])[]): readonly string[] {
  let clock: OwnClock = NO_CLOCK_KNOWN;
  return messages.map(([receivedAt, lag]) => {
    const word = stamped(receivedAt, lag);
    const { age, clock: next } = ageOfMessage(clock, word);
    clock = next;
    return `${age} ${(measuredAt(clock, word) - NOON) / 1000}`;
  });
}

describe("the age of a charger's message", () => {
  test("a message that is a minute late at most is live, and so is one from the future", () => {
    expect(heard([0, 0], [10, 60], [20, -300])).toEqual(["live 0", "live -50", "live 20"]);
  });

  test("a clock that is behind has equal lags, and is corrected by them", () => {
    expect(heard([0, 300], [10, 301], [20, 301], [320, 299], [400, 310])).toEqual([
      "unsure -300",
      "live 10",
      "live 20",
      "live 320",
      "live 389",
    ]);
  });

  test("messages with whole seconds that arrive close together decide nothing yet", () => {
    expect(heard([0, 180.9], [0.2, 180.1], [10.1, 180.1])).toEqual([
      "unsure -180.9",
      "unsure -179.9",
      "live 10.1",
    ]);
  });

  test("messages that were buffered while a charger was cut off keep their own time", () => {
    const kept = ["unsure 10", "kept 20.01", "kept 30"];
    expect(heard([0, 0], [600, 590], [600.01, 580], [602, 572], [610, 0])).toEqual([
      "live 0",
      ...kept,
      "live 610",
    ]);
  });

  test("buffered messages between live ones do not change a right clock", () => {
    const ages = heard(
      [0, 0],
      [600, 0],
      [600.1, 590],
      [600.2, 0],
      [600.3, 580],
      [610, 0],
      [620, 230],
      [630, 0],
    );
    expect(ages.map((words) => words.split(" ")[0])).toEqual([
      "live",
      "live",
      "unsure",
      "live",
      "unsure",
      "live",
      "unsure",
      "live",
    ]);
  });

  test("a charger with a slow clock may buffer too, and a corrected clock counts at once", () => {
    expect(heard([0, 300], [10, 300], [700, 980], [700, 970], [710, 300], [720, 0])).toEqual([
      "unsure -300",
      "live 10",
      "unsure 20",
      "kept 30",
      "live 710",
      "live 720",
    ]);
  });

  test("a clock that stands still is detected, a duplicate message is not mistaken for one", () => {
    expect(heard([0, 0], [600, 600], [610, 610], [661, 661], [671, 671])).toEqual([
      "live 0",
      "unsure 0",
      "kept 0",
      "live 661",
      "live 661",
    ]);
  });

  test("a lag of more than a week is a wrong clock", () => {
    expect(heard([0, WEEK + 1], [10, WEEK + 1])).toEqual(["live 0", "live 10"]);
    expect(heard([0, WEEK])).toEqual([`unsure ${-WEEK}`]);
  });
});

test("a retained message is as old as its time, and ignored where that is impossible", () => {
  const ages = [stamped(0, 3600), stamped(0, -60), stamped(0, -61), stamped(0, WEEK), stamped(0, WEEK + 1)];
  expect(ages.map(waitingSince)).toEqual([NOON - 3_600_000, NOON, null, NOON - WEEK * 1000, null]);
});

test("two lags within half a second come from the same clock", () => {
  expect(hasEqualLag(stamped(0, 7), stamped(10, 7.5))).toBe(true);
  expect(hasEqualLag(stamped(0, 7), stamped(10, 6.4))).toBe(false);
});
