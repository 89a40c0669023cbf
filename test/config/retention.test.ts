import { expect, test } from "vitest";

import { minutes } from "../../src/core/units.ts";
import { configured, mistakesIn } from "../support/aConfiguration.ts";

const days = (count: number) => minutes(count * 24 * 60);

test("without a word about it, what is over is kept as documented", () => {
  expect(configured({}).retention).toEqual({
    events: days(90),
    maxEvents: 20_000,
    withdrawn: days(400),
    reports: days(400),
    audit: days(400),
    maxAuditRows: 3_000_000,
  });
});

test.for([
  ["events", "7d"],
  ["withdrawn", "0s"],
  ["reports", "4000d"],
  ["audit", "1h"],
  ["maxEvents", 1],
  ["maxAuditRows", 10.5],
] as const)("retention.%s: %s would lose what is needed, or is no such value", ([key, value]) => {
  expect(mistakesIn({ retention: { [key]: value } })).toEqual([expect.stringContaining(`retention.${key}`)]);
});
