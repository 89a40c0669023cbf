import { describe, expect, test } from "vitest";

import {
  ageOfMessage,
  lagsAlike,
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

describe("what a message of a charger is worth", () => {
  test("who is a minute late at most has taken its time on the way, who is ahead speaks of now", () => {
    expect(heard([0, 0], [10, 60], [20, -300])).toEqual(["live 0", "live -50", "live 20"]);
  });

  test("a clock that is behind is late alike each time, and is put right by that", () => {
    expect(heard([0, 300], [10, 301], [20, 301], [320, 299], [400, 310])).toEqual([
      "unsure -300",
      "live 10",
      "live 20",
      "live 320",
      "live 389",
    ]);
  });

  test("whole seconds that come close together tell nothing yet", () => {
    expect(heard([0, 180.9], [0.2, 180.1], [10.1, 180.1])).toEqual([
      "unsure -180.9",
      "unsure -179.9",
      "live 10.1",
    ]);
  });

  test("what was kept while a charger was cut off catches up, and is of when it says", () => {
    const kept = ["unsure 10", "kept 20.01", "kept 30"];
    expect(heard([0, 0], [600, 590], [600.01, 580], [602, 572], [610, 0])).toEqual([
      "live 0",
      ...kept,
      "live 610",
    ]);
  });

  test("kept words between live ones take nothing from a clock that is right", () => {
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

  test("a clock that is behind keeps words too, and one that is set right is believed at once", () => {
    expect(heard([0, 300], [10, 300], [700, 980], [700, 970], [710, 300], [720, 0])).toEqual([
      "unsure -300",
      "live 10",
      "unsure 20",
      "kept 30",
      "live 710",
      "live 720",
    ]);
  });

  test("a clock that stands still is found out, a message that comes twice is not taken for one", () => {
    expect(heard([0, 0], [600, 600], [610, 610], [661, 661], [671, 671])).toEqual([
      "live 0",
      "unsure 0",
      "kept 0",
      "live 661",
      "live 661",
    ]);
  });

  test("who names a time of a week ago has no idea of it", () => {
    expect(heard([0, WEEK + 1], [10, WEEK + 1])).toEqual(["live 0", "live 10"]);
    expect(heard([0, WEEK])).toEqual([`unsure ${-WEEK}`]);
  });
});

test("what waited at the broker is as old as it says, and worth nothing where that cannot be", () => {
  const ages = [stamped(0, 3600), stamped(0, -60), stamped(0, -61), stamped(0, WEEK), stamped(0, WEEK + 1)];
  expect(ages.map(waitingSince)).toEqual([NOON - 3_600_000, NOON, null, NOON - WEEK * 1000, null]);
});

test("two lags of half a second's difference are the same clock's", () => {
  expect(lagsAlike(stamped(0, 7), stamped(10, 7.5))).toBe(true);
  expect(lagsAlike(stamped(0, 7), stamped(10, 6.4))).toBe(false);
});
