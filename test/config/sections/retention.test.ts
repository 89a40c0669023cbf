import { expect, test } from "vitest";

import { minutes } from "../../../src/domain/units.ts";
import { configured, mistakesIn } from "../../support/aConfiguration.ts";

const days = (count: number) => minutes(count * 24 * 60);

test("without a section retention, the defaults are as documented", () => {
  expect(configured({}).retention).toEqual({
    events: days(90),
    maxEvents: 20_000,
    withdrawn: days(400),
    reports: days(400),
    audit: days(400),
    maxAuditRows: 100_000_000,
    bytes: 4_010_000_000,
    readingBytes: 130,
  });
});

test("the default disk space grows with the site", () => {
  const chargers = Array.from({ length: 600 }, (_, index) => ({ id: `bay-${index}`, current: { max: 32 } }));
  expect(configured({ chargers }).retention.bytes).toBe(10_000_000_000);
  // A section without a database is a folder.
  expect(configured({ chargers, state: { folder: "./state" } }).retention).toMatchObject({
    bytes: 10_000_000_000,
    readingBytes: 130,
  });
  const state = { postgres: { url: { env: "DATABASE_URL" } } };
  const url = "postgres://setpointd@127.0.0.1/setpointd";
  // A reading takes twice as much there.
  expect(configured({ chargers, state }, { DATABASE_URL: url }).retention).toMatchObject({
    bytes: 20_000_000_000,
    readingBytes: 270,
  });
  const named = ["500MB", "8GB", "1TB"].map((bytes) => configured({ chargers, retention: { bytes } }));
  expect(named.map(({ retention }) => retention.bytes)).toEqual([5e8, 8e9, 1e12]);
});

test.for([
  ["events", "7d"],
  ["withdrawn", "0s"],
  ["reports", "4000d"],
  ["audit", "1h"],
  ["maxEvents", 1],
  ["maxAuditRows", 10.5],
  ["bytes", "90MB"],
  ["bytes", "2TB"],
  ["bytes", "4 GB"],
  ["bytes", 4_000_000_000],
] as const)(
  "retention.%s: %s is too short to keep required data, or is not a valid value",
  ([key, value]) => {
    expect(mistakesIn({ retention: { [key]: value } })).toEqual([
      expect.stringContaining(`retention.${key}`),
    ]);
  },
);
