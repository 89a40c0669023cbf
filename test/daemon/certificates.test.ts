import * as fc from "fast-check";
import { expect, test } from "vitest";

import {
  type Certificate,
  formatExpiry,
  isUrgent,
  newlyExpiring,
  type Stage,
  formatStage,
  stageOf,
  type WarnedStages,
} from "../../src/daemon/certificates.ts";
import { instant } from "../../src/domain/units.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const notAfter = instant(Date.UTC(2026, 11, 21));
const before = (span: number) => instant(notAfter - span);
const certificate: Certificate = { name: "mqtt.tls.ca", subject: "CN=depot", notAfter };

test.each([
  [31 * DAY, null],
  [30 * DAY + 1, null],
  [30 * DAY, 30],
  [14 * DAY, 14],
  [3 * DAY + 1, 14],
  [3 * DAY, 3],
  [1, 3],
  [0, 0],
  [-DAY, 0],
])("F72: %i ms before its end a certificate is at stage %s", (span, stage) => {
  expect(stageOf(notAfter, before(span))).toBe(stage);
});

test("warnings become errors three days before the end", () => {
  const stages: readonly Stage[] = [30, 14, 3, 0];
  expect(stages.map(isUrgent)).toEqual([false, false, true, true]);
  expect(stages.map(formatStage)).toEqual(["within 30 days", "within 14 days", "within 3 days", "expired"]);
});

const words = (span: number) => formatExpiry(certificate, before(span));

test("the end is given in days, in hours when it is near, and in minutes within the hour", () => {
  expect(words(12.7 * DAY)).toBe(
    "certificate mqtt.tls.ca (CN=depot) expires in 12 days, on 2026-12-21T00:00:00.000Z",
  );
  expect(words(30 * HOUR)).toContain("expires in 30 h, on");
  expect(words(-5 * DAY)).toContain("expired 5 days ago, on");
  expect(words(HOUR - 1)).toContain("expires in 59 min, on");
  expect(words(-12 * MINUTE)).toContain("expired 12 min ago, on");
});

test("each stage is reported once; a renewed certificate starts over, and a clock set back repeats nothing", () => {
  let told: WarnedStages = new Map();
  const heard = (certificates: readonly Certificate[], now: number) => {
    const expiring = newlyExpiring(told, certificates, instant(now));
    told = expiring.warned;
    return expiring.due.map(({ stage }) => stage);
  };
  expect(heard([certificate], before(40 * DAY))).toEqual([]);
  expect(heard([certificate], before(29 * DAY))).toEqual([30]);
  expect(heard([certificate], before(28 * DAY))).toEqual([]);
  expect(heard([certificate], before(2 * DAY))).toEqual([3]);
  expect(heard([certificate], before(10 * DAY))).toEqual([]);
  expect(heard([certificate], before(DAY))).toEqual([]);
  expect(heard([certificate], before(-DAY))).toEqual([0]);
  const renewed = { ...certificate, notAfter: instant(notAfter + 10 * DAY) };
  expect(heard([renewed], before(-DAY))).toEqual([14]);
});

test("a certificate is reported at most four times, ever nearer its end, however often and whenever it is checked", () => {
  const moments = fc.array(fc.integer({ min: -50, max: 60 }), { maxLength: 100 });
  fc.assert(
    fc.property(moments, (days) => {
      let told: WarnedStages = new Map();
      const stages: Stage[] = [];
      for (const left of days.toSorted((a, b) => b - a)) {
        const expiring = newlyExpiring(told, [certificate], before(left * DAY));
        told = expiring.warned;
        stages.push(...expiring.due.map(({ stage }) => stage));
      }
      expect(stages).toEqual([...new Set(stages)].toSorted((a, b) => b - a));
    }),
  );
});
