import { expect, test } from "vitest";

import { RetentionAlarms } from "../../src/retention/rules.ts";
import { at } from "../support/anEvent.ts";

test("an alarm opens at 80 % of a cap, is reported once, and closes when there is room again", () => {
  const alarms = new RetentionAlarms();
  expect(alarms.measured("record", 0.79, false, at("04:00"))).toBeNull();
  expect(alarms.measured("record", 0.8, false, at("05:00"))?.message).toBe(
    "rows of the record use 80 % of their disk space: beyond it the oldest are pruned before their age (retention.audit)",
  );
  expect(alarms.measured("record", 0.81, false, at("05:10"))).toBeNull();
  expect(alarms.measured("record", 0.76, false, at("05:20"))).toBeNull();
  expect(alarms.open).toMatchObject([{ kind: "record", since: at("05:00"), used: 0.76 }]);
  expect(alarms.measured("record", 0.74, false, at("05:30"))).toBeNull();
  expect(alarms.open).toEqual([]);
});

test("early pruning is reported once more, and the alarm stays while the cap is near", () => {
  const alarms = new RetentionAlarms();
  alarms.measured("readings", 0.9, false, at("05:00"));
  expect(alarms.measured("readings", 1, true, at("05:10"))?.message).toBe(
    "readings are pruned before their age (report.keepReadings): their disk space is used up",
  );
  expect(alarms.measured("readings", 0.99, false, at("05:11"))).toBeNull();
  expect(alarms.open).toMatchObject([{ since: at("05:00"), leftEarly: true }]);
  expect(alarms.open[0]?.action).toContain("raise retention.bytes, or shorten report.keepReadings");
});

test("early pruning without an earlier warning raises an alarm at once", () => {
  const alarms = new RetentionAlarms();
  expect(alarms.measured("events", 0.5, true, at("05:00"))?.leftEarly).toBe(true);
});
