import { expect, test } from "vitest";

import { lanesOf, limitedSteps } from "../../../src/operator/page/overview.ts";

const at = (time: string): string => `2026-11-21T${time}:00Z`;
const planned = (from: string, until: string) => ({
  event: "EV-1",
  from: at(from),
  until: at(until),
  offsetMs: 0,
  asked: { kind: "current" as const, amperes: 16 },
});

test("spans that overlap get lanes of their own, and a lane is used again", () => {
  const [first, second, third] = [
    { from: 0, until: 10 },
    { from: 5, until: 8 },
    { from: 10, until: 12 },
  ];
  expect(lanesOf([first, second, third])).toEqual([[first, third], [second]]);
  expect(lanesOf([])).toEqual([]);
});

test("vehicles under a limit are counted over time, each once however many events it has", () => {
  const steps = limitedSteps([
    { planned: [planned("05:00", "06:00"), planned("05:30", "05:45")] },
    { planned: [planned("05:30", "07:00")] },
    { planned: [] },
  ]);
  expect(steps.map(({ at: moment, count }) => [new Date(moment).toISOString().slice(11, 16), count])).toEqual(
    [
      ["05:00", 1],
      ["05:30", 2],
      ["06:00", 1],
      ["07:00", 0],
    ],
  );
});
