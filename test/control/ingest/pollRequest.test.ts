import { filter, Subject, take } from "rxjs";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";

import type { Delivery, Fetched } from "../../../src/domain/delivery.ts";
import { eventId, instant, millis, minutes } from "../../../src/domain/units.ts";
import { type Hint, polling } from "../../../src/control/ingest/pipeline.ts";
import { pollMessage, RequestedPolls } from "../../../src/control/ingest/pollRequest.ts";
import { failed, unasked } from "../../../src/vtn/http.ts";

beforeEach(() => {
  vi.useFakeTimers();
});

const aDelivery = (): Delivery => ({
  source: "list",
  at: instant(0),
  askedAt: instant(0),
  notices: [],
  complete: true,
});
const outage = failed("the partner answered 502", 502, null);

/** A list that is polled every five minutes unless told, with requests for it; `random` is that of the back-off. */
function aPoll(random = 0.99, every = minutes(5)) {
  const hint$ = new Subject<Hint>();
  const partner = { answer: outage as Fetched, takesMs: 0 };
  const asked: { readonly atMs: number; readonly isRequested: boolean }[] = [];
  const polls = new RequestedPolls((request) => hint$.next(request));
  const began = Date.now();
  const list = async (isRequested: boolean): Promise<Fetched> => {
    asked.push({ atMs: Date.now() - began, isRequested });
    const { answer } = partner;
    if (partner.takesMs > 0) await new Promise((resolve) => void setTimeout(resolve, partner.takesMs));
    return answer;
  };
  const ports = {
    monotonic: () => millis(Date.now()),
    random: () => random,
    list,
    event: async () => outage,
  };
  const subscription = polling(ports, hint$, every).subscribe();
  onTestFinished(() => subscription.unsubscribe());
  return { partner, asked, polls, end: () => subscription.unsubscribe() };
}

const passes = (ms: number) => vi.advanceTimersByTimeAsync(ms);

test("a requested poll is sent at once, although after many failures the next try is minutes away", async () => {
  const { partner, asked, polls } = aPoll();
  await passes(30 * 60_000);
  const before = asked.length;
  await passes(1000);
  expect(asked).toHaveLength(before);
  const delivery = aDelivery();
  partner.answer = { kind: "read", delivery, skew: null };
  const result = polls.request();
  await passes(0);
  expect(asked.slice(before)).toMatchObject([{ isRequested: true }]);
  polls.settled(delivery, { ok: true, ingested: { accepted: 2, repeats: 1, rejected: 0 } });
  expect(await result).toEqual({ kind: "read", ingested: { accepted: 2, repeats: 1, rejected: 0 } });
  // The ordinary pace is back.
  await passes(6 * 60_000);
  expect(asked).toHaveLength(before + 2);
});

test("requested polls that fail do not lengthen our own back-off", async () => {
  const { asked, polls } = aPoll();
  await passes(0);
  for (let request = 0; request < 20; request += 1) {
    const result = polls.request();
    await passes(0);
    expect(await result).toMatchObject({ kind: "failed", reason: "the partner answered 502" });
  }
  const before = asked.length;
  await passes(2000);
  expect(asked).toHaveLength(before + 1);
});

test("a list request in flight is not the answer: it may be older than the poll request", async () => {
  const { partner, asked, polls } = aPoll();
  partner.takesMs = 5000;
  partner.answer = { kind: "unchanged", at: instant(0), skew: null };
  // The first one failed; the second one is on its way.
  await passes(2000);
  expect(asked).toHaveLength(2);
  const early = [polls.request(), polls.request()];
  await passes(5000);
  expect(asked).toHaveLength(3);
  const late = polls.request();
  await passes(5000);
  expect(await Promise.all(early)).toEqual([partner.answer, partner.answer]);
  expect(asked).toHaveLength(4);
  await passes(5000);
  expect(await late).toEqual(partner.answer);
  expect(asked.map(({ isRequested }) => isRequested)).toEqual([false, false, true, true]);
});

test("a list that could not be stored is no success", async () => {
  const { partner, polls } = aPoll();
  const delivery = aDelivery();
  partner.answer = { kind: "read", delivery, skew: null };
  const result = polls.request();
  await passes(0);
  polls.settled(delivery, { ok: false, reason: "the disk is full" });
  polls.settled(aDelivery(), { ok: true, ingested: { accepted: 0, repeats: 0, rejected: 0 } });
  expect(await result).toEqual({ kind: "notStored", reason: "the disk is full" });
});

test("the operator reads counts, or the reason and when to try again", () => {
  expect(pollMessage({ kind: "read", ingested: { accepted: 2, repeats: 5, rejected: 1 } })).toBe(
    "the list was read: 2 accepted, 5 repeats, 1 rejected",
  );
  expect(pollMessage({ kind: "unchanged" })).toBe("the list was read: it is the same as last time");
  expect(pollMessage({ kind: "notStored", reason: "disk full" })).toContain("could not be stored: disk full");
  expect(pollMessage(outage)).toBe("the list could not be read: the partner answered 502");
  expect(pollMessage(unasked("the partner answered 429", millis(117_001)))).toBe(
    "the list was not asked for: the partner answered 429; it can be asked for in 118 s",
  );
});

test("a list that is answered once there is a new one is requested again at once, also after a failure", async () => {
  const { partner, asked } = aPoll(0.99, millis(0));
  // Each answer but the first takes as long as the next list.
  partner.takesMs = 10_000;
  await passes(35_000);
  partner.answer = { kind: "read", delivery: aDelivery(), skew: null };
  await passes(35_000);
  expect(asked.map(({ atMs }) => Math.floor(atMs / 1_000))).toEqual([0, 0, 10, 20, 30, 40, 50, 60]);
});

test("a list that is answered after the end of the polling answers no request, and none follows", async () => {
  const { partner, asked, polls, end } = aPoll();
  partner.answer = { kind: "unchanged", at: instant(0), skew: null };
  await passes(0);
  partner.takesMs = 1_000;
  const answers: unknown[] = [];
  void polls.request().then((answer) => answers.push(answer));
  await passes(500);
  end();
  await passes(60 * 60_000);
  expect([asked.length, answers]).toEqual([2, []]);
  expect(vi.getTimerCount()).toBe(0);
});

test("an answer that ends the polling is the last request, of the list and of single events", async () => {
  const hint$ = new Subject<Hint>();
  const asked: string[] = [];
  const unchanged: Fetched = { kind: "unchanged", at: instant(0), skew: null };
  const ports = {
    monotonic: () => millis(Date.now()),
    random: () => 0.5,
    list: async () => {
      asked.push("list");
      return unchanged;
    },
    event: async (id: string) => {
      asked.push(id);
      return outage;
    },
  };
  const polling$ = polling(ports, hint$, minutes(5));
  const byList = polling$.pipe(take(1)).subscribe();
  await passes(60 * 60_000);
  expect([byList.closed, asked, vi.getTimerCount()]).toEqual([true, ["list"], 0]);
  const byEvent = polling$
    .pipe(
      filter(({ kind }) => kind === "failed"),
      take(1),
    )
    .subscribe();
  hint$.next([eventId("EV-1"), eventId("EV-2")]);
  await passes(60 * 60_000);
  expect([byEvent.closed, asked, vi.getTimerCount()]).toEqual([true, ["list", "list", "EV-1"], 0]);
});
