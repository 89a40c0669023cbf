import { firstValueFrom, Subject } from "rxjs";
import { expect, test, vi } from "vitest";

import { type Hint, polling } from "../../../src/control/ingest/pipeline.ts";
import type { Fetched } from "../../../src/domain/delivery.ts";
import { eventId, millis } from "../../../src/domain/units.ts";
import { failed } from "../../../src/vtn/http.ts";
import { aDepot } from "../../support/aDepot.ts";

/** When the list was asked for, as seconds of the day. */
const seconds = (asked: readonly string[]): readonly number[] =>
  asked
    .filter((line) => line.endsWith("list"))
    .map((line) => Date.parse(`1970-01-01T${line.slice(0, 12)}Z`) / 1000);

const gaps = (times: readonly number[]): readonly number[] =>
  times.slice(1).map((time, index) => Math.round((time - (times[index] ?? 0)) * 10) / 10);

test("the list is polled at the start and then every minute", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  await depot.until("00:05:30");
  expect(depot.partner.asked[0]).toBe("00:00:00.000 list");
  expect(seconds(depot.partner.asked)).toHaveLength(6);
  for (const gap of gaps(seconds(depot.partner.asked))) expect(gap).toBeCloseTo(60, 0);
});

test.each([
  [0, 54],
  [0.999, 66],
])("gateways that started together do not poll together: with chance %s each %s s", async (fraction, gap) => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withChance(() => fraction)
    .running();
  await depot.until("00:10");
  for (const found of gaps(seconds(depot.partner.asked))) expect(found).toBeCloseTo(gap, 0);
});

test("a slow partner gets one request at a time", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  depot.partner.takesMs = 300_000;
  await depot.until("00:30");
  for (const gap of gaps(seconds(depot.partner.asked)).slice(1)) expect(gap).toBeGreaterThanOrEqual(360);
});

test("hints bring the next list forward, but at most once in ten seconds", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").pollingEvery("1h").running();
  await depot.until("00:10");
  depot.forget();
  for (let hint = 0; hint < 30; hint += 1) {
    await depot.post([]);
    await depot.passes(1000);
  }
  const times = seconds(depot.partner.asked);
  expect(times[0]).toBeCloseTo(600, 1);
  expect(times.length).toBeLessThanOrEqual(4);
  for (const gap of gaps(times)) expect(gap).toBeGreaterThanOrEqual(10);
});

test("a hint right after the start is answered with a list at once", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").pollingEvery("1h").running();
  await depot.until("00:00:02");
  depot.forget();
  await depot.post([]);
  await depot.passes(1000);
  expect(seconds(depot.partner.asked)).toEqual([expect.closeTo(2, 0)]);
});

test("a clock that is set back delays no hint", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").pollingEvery("1h").running();
  await depot.until("00:10");
  await depot.post([]);
  await depot.passes(1000);
  vi.setSystemTime(Date.parse("2026-11-20T22:00:00Z"));
  depot.forget();
  await depot.post([]);
  await depot.passes(11_000);
  expect(seconds(depot.partner.asked)).toHaveLength(1);
});

test("a hint during a list request causes another one", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").pollingEvery("1h").running();
  depot.partner.takesMs = 5000;
  await depot.until("00:10");
  depot.forget();
  await depot.post([]);
  await depot.passes(2000);
  await depot.post([]);
  await depot.until("00:11");
  expect(seconds(depot.partner.asked)).toHaveLength(2);
});

test("hints do not shorten the back-off of a failing partner; it grows to five minutes with full jitter (F32)", async () => {
  const fractions = [0.1, 0.9];
  let turn = 0;
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withChance(() => fractions[(turn += 1) % 2] ?? 0)
    .whosePartnerAnswers({ status: 502 })
    .running();
  depot.partner.takesMs = 0;
  for (let minute = 0; minute < 180; minute += 1) {
    await depot.passes(60_000);
    await depot.post([]);
  }
  const pauses = gaps(seconds(depot.partner.asked));
  expect(Math.max(...pauses)).toBeLessThanOrEqual(300);
  expect(Math.min(...pauses.slice(10))).toBeCloseTo(30, 0);
  expect(Math.max(...pauses.slice(10))).toBeCloseTo(270, 0);
});

test("a Retry-After is obeyed, whatever hints arrive (F33)", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .whosePartnerAnswers({ status: 429, retryAfter: "120" })
    .running();
  for (let second = 0; second < 100; second += 10) {
    await depot.passes(10_000);
    await depot.post([]);
  }
  await depot.until("00:03");
  const [first = 0, second = 0] = seconds(depot.partner.asked);
  expect(second - first).toBeGreaterThanOrEqual(120);
});

test("after a failure the first answer restores the normal interval", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").whosePartnerAnswers({ status: 500 }).running();
  await depot.until("00:10");
  depot.partner.answers = "well";
  await depot.until("00:20");
  depot.forget();
  await depot.until("00:23:30");
  for (const gap of gaps(seconds(depot.partner.asked))) expect(gap).toBeCloseTo(60, 0);
});

test("an event that a webhook only names is fetched by its id", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").pollingEvery("1h").running();
  depot.forget();
  depot.has({ id: "EV-9", start: "08:00", amperes: 10 });
  await depot.post({ eventId: "EV-9" });
  await depot.until("08:01");
  expect(depot.partner.asked[0]).toMatch(/EV-9$/);
  expect(depot.commands()).toEqual(["bay-01 10 A"]);
});

test("an event that cannot be fetched by id causes one early list", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").pollingEvery("1h").running();
  await depot.until("00:10");
  depot.has({ id: "EV-9", start: "08:00", amperes: 10 });
  depot.forget();
  depot.partner.answers = { status: 500 };
  await depot.post({ eventId: "EV-9" });
  depot.partner.answers = "well";
  await depot.until("00:20");
  expect(depot.partner.asked.map((what) => what.split(" ")[1])).toEqual(["EV-9", "list"]);
  depot.forget();
  depot.partner.event = async () => failed("HTTP 500", 500, null);
  for (const minute of [21, 22, 23]) {
    await depot.until(`00:${minute}`);
    await depot.post({ eventId: "EV-8" });
  }
  await depot.until("00:40");
  expect(depot.partner.asked.map((what) => what.split(" ")[1])).toEqual(["list"]);
});

test("where the list waits for the next one, an event that cannot be fetched by id requests it", async () => {
  const hint$ = new Subject<Hint>();
  let wanted = 0;
  const ports = {
    monotonic: () => millis(0),
    random: () => 0.5,
    list: () => new Promise<Fetched>(() => {}),
    event: async () => failed("HTTP 500", 500, null),
    wantList: () => (wanted += 1),
  };
  const answers$ = polling(ports, hint$, millis(0));
  const answer = firstValueFrom(answers$);
  hint$.next([eventId("EV-9")]);
  expect(await answer).toMatchObject({ kind: "failed" });
  expect(wanted).toBe(1);
});

test("an event that the list lacks twice is fetched by its id, also where the second list is the same as the first (F41)", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "00:30", amperes: 10 })
    .running();
  depot.partner.events.clear();
  depot.forget();
  await depot.until("00:05:30");
  expect(depot.partner.asked.map((line) => line.slice(13))).toEqual([
    "list",
    "list",
    "EV-1",
    "list",
    "list",
    "list",
  ]);
  await depot.until("00:31");
  expect(depot.commands()).toEqual([]);
});
