import { expect, test } from "vitest";

import { capsOf, formatBytes } from "../../src/retention/rules.ts";

test("readings, record and events share the disk space", () => {
  const caps = capsOf({ bytes: 13e9, maxAuditRows: 1e8, readingBytes: 130 });
  expect(caps).toEqual({ readings: 60_000_000, record: 3_900_000, events: 1_300_000_000 });
  expect(caps.readings * 130 + caps.record * 1000 + caps.events).toBe(13e9);
});

test("a configured number of rows may be the lower cap", () => {
  expect(capsOf({ bytes: 13e9, maxAuditRows: 10_000, readingBytes: 130 }).record).toBe(10_000);
});

test("of larger readings fewer fit in the same disk space", () => {
  expect(capsOf({ bytes: 13e9, maxAuditRows: 1e8, readingBytes: 260 })).toMatchObject({
    readings: 30_000_000,
    record: 3_900_000,
  });
});

test("sizes are shown in MB or GB", () => {
  expect([formatBytes(123_400_000), formatBytes(4_120_000_000)]).toEqual(["123.4 MB", "4.1 GB"]);
});
