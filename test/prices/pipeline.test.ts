import { interval, Subject } from "rxjs";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";

import type { Change } from "../../src/domain/changes.ts";
import type {
  PriceOutcome,
  PricesAsked,
  PriceKind,
  PriceQuery,
  PriceSeries,
} from "../../src/domain/prices.ts";
import { instant, iso, minutes, seconds } from "../../src/domain/units.ts";
import { priceBoard } from "../../src/prices/board.ts";
import { prices } from "../../src/prices/pipeline.ts";
import { advanceTo, startVirtualTime, virtualNow } from "../support/virtualTime.ts";

const HOUR = minutes(60);
const failed: PricesAsked = { kind: "failed", reason: "HTTP 500", retry: true, retryAfter: null };

beforeEach(() => startVirtualTime("2026-11-21T12:00:00Z"));
afterEach(() => {
  vi.useRealTimers();
});

const series = (region: string, value: number, kind: PriceKind = "actual"): PriceSeries => {
  const start = virtualNow();
  const units = { currency: "NOK", perUnit: "kWh", region, vat: null };
  const prices = [{ start, end: instant(start + HOUR), value, ...units }];
  return { region, kind, fetchedAt: start, prices, doubts: [], raw: "" };
};
const read = (series: PriceSeries): PricesAsked => ({ kind: "read", series });

/** The price pipeline with a scripted partner and broker; due every hour. */
class Prices {
  answer: (query: PriceQuery) => PricesAsked = ({ region, kind }) => read(series(region, 0.5, kind));
  brokerIsThere = true;
  /** `12:00:00 NO1` */
  readonly asked: string[] = [];
  /** `prices/NO1 0.5` */
  readonly published: string[] = [];
  readonly changes: Change[] = [];
  readonly counted: PriceOutcome[] = [];
  readonly alarms: string[] = [];
  readonly #broker$ = new Subject<string>();

  constructor(regions: readonly string[], stored: readonly PriceSeries[] = [], fraction = 0.5) {
    const queries = regions.map((region): PriceQuery => ({ region, kind: "actual" }));
    const running = prices(priceBoard(queries, stored), interval(HOUR), this.#broker$, {
      now: virtualNow,
      random: () => fraction,
      wallClock: iso,
      ask: async (query) => {
        this.asked.push(`${iso(virtualNow()).slice(11, 19)} ${query.region}`);
        return this.answer(query);
      },
      write: (changes) => this.changes.push(...changes),
      publish: async (path, payload) => {
        if (!this.brokerIsThere) return { ok: false, retry: true, reason: "broker not connected" };
        const [first] = JSON.parse(payload) as { value: number }[];
        this.published.push(`${path} ${first?.value}`);
        return { ok: true };
      },
      counted: (_query, outcome) => this.counted.push(outcome),
      alarm: (words) => this.alarms.push(words),
    }).subscribe();
    onTestFinished(() => running.unsubscribe());
  }

  until = (time: string): Promise<void> => advanceTo(instant(Date.parse(`2026-11-21T${time}Z`)));

  brokerUp(name = ""): void {
    this.brokerIsThere = true;
    this.#broker$.next(name);
  }

  get rows(): readonly string[] {
    return this.changes.flatMap((change) => (change.kind === "audit" ? [change.entry.words] : []));
  }
}

test("prices are fetched at the start and within half a minute of their due time, and published if changed", async () => {
  const running = new Prices(["NO1", "NO2"]);
  await running.until("14:30:00");
  expect(running.asked).toEqual([
    "12:00:00 NO1",
    "12:00:00 NO2",
    "13:00:15 NO1",
    "13:00:15 NO2",
    "14:00:15 NO1",
    "14:00:15 NO2",
  ]);
  expect(running.published).toHaveLength(6);
  expect(running.counted).toEqual(Array.from({ length: 6 }, () => "good"));
  expect(running.rows).toHaveLength(2);
});

test("unchanged prices are stored with their new time and not published again", async () => {
  const same = series("NO1", 0.4);
  const running = new Prices(["NO1"], [same]);
  running.answer = () => read({ ...same, fetchedAt: virtualNow() });
  await running.until("12:01:00");
  expect(running.published).toEqual([]);
  expect(running.changes[0]).toMatchObject({ kind: "prices" });
});

test("stored prices are published when the broker connects and whenever it reconnects (F85)", async () => {
  const running = new Prices(["NO1"], [series("NO1", 0.4)]);
  running.answer = () => failed;
  running.brokerIsThere = false;
  await running.until("12:00:30");
  running.brokerUp();
  await running.until("12:00:31");
  expect(running.published).toEqual(["prices/NO1 0.4"]);
  running.brokerUp("yard");
  await running.until("12:00:32");
  expect(running.published).toHaveLength(1);
  running.brokerUp();
  await running.until("12:00:33");
  expect(running.published).toEqual(["prices/NO1 0.4", "prices/NO1 0.4"]);
});

test("prices whose publish failed are published when the broker connects", async () => {
  const running = new Prices(["NO1"]);
  running.brokerIsThere = false;
  await running.until("12:30:00");
  expect(running.published).toEqual([]);
  running.brokerUp();
  await running.until("12:30:01");
  expect(running.published).toEqual(["prices/NO1 0.5"]);
});

test("a failed request is retried four times with growing pauses, raises one alarm, and is sent again when due (F32)", async () => {
  const running = new Prices(["NO1"], [], 0.999);
  running.answer = () => failed;
  await running.until("12:59:59");
  expect(running.asked.map((line) => line.slice(0, 8))).toEqual([
    "12:00:00",
    "12:00:09",
    "12:00:29",
    "12:01:09",
    "12:02:29",
  ]);
  await running.until("15:30:00");
  expect(running.asked).toHaveLength(20);
  expect(running.alarms).toEqual([
    "spot prices of NO1 cannot be fetched: HTTP 500; there are none yet; fetched again when they are due",
  ]);
  expect(running.rows).toHaveLength(1);
  running.answer = ({ region }) => read(series(region, 0.5));
  await running.until("16:30:00");
  expect(running.rows).toHaveLength(2);
});

test("a Retry-After is respected, and due times meanwhile are skipped (F33)", async () => {
  const running = new Prices(["NO1"]);
  running.answer = () => ({ ...failed, retryAfter: seconds(900) });
  await running.until("13:20:00");
  expect(running.asked.map((line) => line.slice(0, 5))).toEqual([
    "12:00",
    "12:15",
    "12:30",
    "12:45",
    "13:00",
  ]);
});

test("a permanent failure is not retried before the next due time; other regions continue", async () => {
  const running = new Prices(["NO1", "XX9"]);
  running.answer = ({ region }) =>
    region === "NO1" ? read(series(region, 0.5)) : { ...failed, retry: false, reason: "HTTP 404" };
  await running.until("12:59:00");
  expect(running.asked).toHaveLength(2);
  expect(running.published).toEqual(["prices/NO1 0.5"]);
  expect(running.alarms).toHaveLength(1);
});

test("an unreadable answer is quarantined, and the last prices are kept", async () => {
  const running = new Prices(["NO1"], [series("NO1", 0.4)]);
  running.answer = () => ({ kind: "unreadable", reason: "not JSON", raw: "<html>" });
  await running.until("12:59:00");
  expect(running.asked).toHaveLength(1);
  expect(running.changes).toMatchObject([{ kind: "quarantine" }, { kind: "audit" }]);
  running.brokerUp();
  await running.until("12:59:01");
  expect(running.published).toEqual(["prices/NO1 0.4"]);
});

test("without a region no request is sent", async () => {
  const running = new Prices([]);
  await running.until("15:00:00");
  expect(running.asked).toEqual([]);
  expect(vi.getTimerCount()).toBe(0);
});
