import * as fc from "fast-check";
import { DateTime } from "luxon";
import { expect, test } from "vitest";

import { type Instant, instant } from "../../src/domain/units.ts";
import { wallClock } from "../../src/platform/clock.ts";
import { messageOf } from "../../src/platform/text.ts";

const at = (text: string): Instant => instant(Date.parse(text));

test("a moment of today is a time of day, any other has its date", () => {
  const clock = wallClock("Europe/Oslo", () => at("2026-11-21T05:00:00Z"));
  expect(clock(at("2026-11-21T05:00:41Z"))).toBe("06:00:41");
  expect(clock(at("2026-11-21T23:30:00Z"))).toBe("2026-11-22 00:30:00");
});

test("the hour that a DST change repeats is shown with its offset, and the one it skips never (F24)", () => {
  const clock = wallClock("Europe/Oslo", () => at("2026-10-25T12:00:00Z"));
  expect([clock(at("2026-10-25T00:30:00Z")), clock(at("2026-10-25T01:30:00Z"))]).toEqual([
    "02:30:00 GMT+2",
    "02:30:00 GMT+1",
  ]);
  expect([clock(at("2026-10-24T23:59:59Z")), clock(at("2026-10-25T02:00:00Z"))]).toEqual([
    "01:59:59",
    "03:00:00",
  ]);
  const spring = wallClock("Europe/Oslo", () => at("2026-03-29T12:00:00Z"));
  expect([spring(at("2026-03-29T00:59:59Z")), spring(at("2026-03-29T01:00:00Z"))]).toEqual([
    "01:59:59",
    "03:00:00",
  ]);
});

test("local time is formatted as luxon does, in any zone at any time since 1970", () => {
  const zones = [
    "UTC",
    "Europe/Oslo",
    "Asia/Kathmandu",
    "Pacific/Apia",
    "America/St_Johns",
    "Australia/Lord_Howe",
  ];
  const moments = fc.integer({ min: at("1990-01-01T00:00:00Z"), max: at("2060-01-01T00:00:00Z") });
  fc.assert(
    fc.property(fc.constantFrom(...zones), moments, (zone, moment) => {
      const clock = wallClock(zone, () => instant(moment));
      const [time] = clock(instant(moment)).split(" ");
      expect(time).toBe(DateTime.fromMillis(moment, { zone }).toFormat("HH:mm:ss"));
      const [half, hour] = [instant(moment + 1_800_000), instant(moment + 3_600_000)];
      expect(new Set([instant(moment), half, hour].map(clock)).size).toBe(3);
    }),
  );
});

test("a caught value has a text, also where a library throws no Error", () => {
  expect(messageOf(new TypeError("no such file"))).toBe("no such file");
  expect(messageOf("closed")).toBe("closed");
  expect(messageOf(null)).toBe("null");
  expect(messageOf({ toString: () => "code 5" })).toBe("code 5");
});

test("a failure of TLS is told in the words of OpenSSL, without the thread and the source file around them", () => {
  const raw =
    "4093B9B8667F0000:error:0A00045C:SSL routines:ssl3_read_bytes:tlsv13 alert certificate required:../deps/openssl/openssl/ssl/record/rec_layer_s3.c:918:SSL alert number 116\n";
  expect(messageOf(new Error(raw))).toBe("TLS: tlsv13 alert certificate required");
  expect(messageOf(new Error(`write EPROTO ${raw}`))).toBe("TLS: tlsv13 alert certificate required");
  expect(messageOf(new Error("connect ECONNREFUSED"))).toBe("connect ECONNREFUSED");
});
