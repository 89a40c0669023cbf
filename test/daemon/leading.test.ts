import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { pino } from "pino";
import { Subject } from "rxjs";
import { expect, onTestFinished, test, vi } from "vitest";

import { type ChangeRequest, reevaluationsOf } from "../../src/control/stage.ts";
import {
  followLease,
  InboxReader,
  ingestWhileLeading,
  requestWhileLeading,
  whileLeading,
} from "../../src/daemon/leading.ts";
import { notStored } from "../../src/operator/answer.ts";
import { StopSteps } from "../../src/daemon/stopSteps.ts";
import { type LeaseState, MOST_WAITING } from "../../src/domain/leadership.ts";
import type { Committed } from "../../src/domain/changes.ts";
import type { Delivery, IngestAnswer } from "../../src/domain/delivery.ts";
import { chargerId, instant, millis } from "../../src/domain/units.ts";
import { aPicture } from "../support/aPicture.ts";

const delivery = (stored: number): Delivery => ({
  source: "webhook",
  at: instant(0),
  askedAt: instant(0),
  notices: [],
  complete: false,
  stored,
});
const STORED: IngestAnswer = { ok: true, ingested: { accepted: 1, repeats: 0, rejected: 0 } };

/** `numbers` wait. `fails`: those that cannot be stored now; with them, nothing of the same commit is. */
function anInbox(...numbers: readonly number[]) {
  const waiting = new Set(numbers);
  const fails = new Set<number>();
  const aside: (readonly [number, string])[] = [];
  const lines: string[] = [];
  let together: number[] = [];
  let clock = 0;
  let isLost = false;
  let tries = 0;
  const leadership = {
    isNotified: true,
    waiting: vi.fn(async (after = 0) =>
      [...waiting]
        .filter((number) => number > after)
        .slice(0, MOST_WAITING)
        .map(delivery),
    ),
    setAside: async ({ stored = 0 }: Delivery, reason: string) => {
      waiting.delete(stored);
      if (isLost) return false;
      aside.push([stored, reason]);
      return true;
    },
  };
  const ingest = async ({ stored = 0 }: Delivery): Promise<IngestAnswer> => {
    together.push(stored);
    tries += 1;
    await Promise.resolve();
    const batch = together;
    await Promise.resolve();
    together = [];
    if (batch.some((number) => fails.has(number))) return { ok: false, reason: "cannot be stored" };
    waiting.delete(stored);
    return STORED;
  };
  const reader = new InboxReader({
    leadership,
    ingest,
    monotonic: () => millis(clock),
    log: pino({}, { write: (line) => void lines.push(line) }),
  });
  const passes = (ms: number) => (clock += ms);
  /** The next look of a running process, or a later one. */
  const look = (ms = 500): Promise<void> => {
    passes(ms);
    return reader.readIfDue();
  };
  /** Another process leads from now on. */
  const lose = () => (isLost = true);
  return { reader, leadership, waiting, fails, aside, lines, lose, passes, look, tries: () => tries };
}

test("a delivery that always fails delays no other, and is in the quarantine after its third failure", async () => {
  const { look, waiting, fails, aside } = anInbox(1, 2, 3);
  fails.add(2);
  await look(5_000);
  expect([...waiting]).toEqual([2]);
  for (const next of [4, 5]) {
    waiting.add(next);
    await look(5_000);
    expect(waiting.has(next)).toBe(false);
  }
  expect(aside).toEqual([[2, "cannot be stored"]]);
  waiting.add(6);
  await look(5_000);
  expect(waiting.size).toBe(0);
});

test("a delivery that the next leader has is not logged as one in the quarantine", async () => {
  const { look, waiting, fails, aside, lines, lose } = anInbox(1, 2);
  fails.add(2);
  lose();
  for (const next of [3, 4, 5]) {
    await look(5_000);
    waiting.add(next);
  }
  expect([waiting.has(2), aside]).toEqual([false, []]);
  expect(lines.join("")).not.toContain("quarantine");
});

test.each([2, 2 * MOST_WAITING])(
  "while none of %i can be stored, nothing goes to the quarantine",
  async (count) => {
    const { look, passes, waiting, fails, aside } = anInbox(
      ...Array.from({ length: count }, (_, n) => n + 1),
    );
    for (const number of waiting) fails.add(number);
    for (let times = 0; times < 10; times += 1) await look();
    expect([aside, waiting.size]).toEqual([[], count]);
    fails.clear();
    passes(60_000);
    // The first look may continue behind a page.
    await look();
    await look();
    expect([aside, waiting.size]).toEqual([[], 0]);
  },
);

test("a new leader ingests all that the stand-in stored before at once, page by page", async () => {
  const { reader, leadership, waiting } = anInbox(
    ...Array.from({ length: 2 * MOST_WAITING + 1 }, (_, n) => n + 1),
  );
  await reader.readIfDue();
  expect([waiting.size, leadership.waiting.mock.calls.length]).toEqual([0, 3]);
});

test("a page that cannot be stored is not read again at once", async () => {
  const { look, leadership, waiting, fails } = anInbox(
    ...Array.from({ length: MOST_WAITING }, (_, n) => n + 1),
  );
  for (const number of waiting) fails.add(number);
  await look();
  expect([waiting.size, leadership.waiting.mock.calls.length]).toEqual([MOST_WAITING, 1]);
});

test("a whole page that always fails delays no delivery behind it, and goes to the quarantine", async () => {
  const numbers = Array.from({ length: MOST_WAITING }, (_, n) => n + 1);
  const { look, waiting, fails, aside } = anInbox(...numbers);
  for (const number of numbers) fails.add(number);
  for (let next = 1_000; next < 1_003; next += 1) {
    waiting.add(next);
    // The page, then what waits behind it.
    await look();
    await look();
    expect(waiting.has(next)).toBe(false);
  }
  expect(aside).toEqual([]);
  await look();
  expect([waiting.size, aside.map(([number]) => number)]).toEqual([0, numbers]);
});

test("a page that always fails is tried less and less often while nothing else arrives, and one that arrives at once", async () => {
  const numbers = Array.from({ length: MOST_WAITING }, (_, n) => n + 1);
  const { reader, look, leadership, waiting, fails, tries } = anInbox(...numbers);
  for (const number of numbers) fails.add(number);
  const hourOfLooks = async (): Promise<number> => {
    const before = tries();
    for (let times = 0; times < 7_200; times += 1) await look();
    return (tries() - before) / MOST_WAITING;
  };
  expect(await hourOfLooks()).toBeLessThan(80);
  expect(await hourOfLooks()).toBeLessThanOrEqual(60);
  // Nothing but the page waits, and it is not due.
  leadership.waiting.mockClear();
  for (let times = 0; times < 20; times += 1) await look();
  expect(leadership.waiting.mock.calls.length).toBeLessThanOrEqual(8);
  waiting.add(1_000);
  await reader.read();
  expect(waiting.has(1_000)).toBe(false);
});

test("failures of deliveries that another process ingested are forgotten", async () => {
  const { look, leadership, waiting, fails } = anInbox(1);
  fails.add(1);
  await look();
  waiting.clear();
  await look();
  leadership.waiting.mockClear();
  await look();
  expect(leadership.waiting).not.toHaveBeenCalled();
});

test("an announcement is read at once, and without announcements every look reads", async () => {
  const { reader, leadership, waiting, passes } = anInbox();
  await reader.readIfDue();
  await reader.readIfDue();
  expect(leadership.waiting).toHaveBeenCalledTimes(1);
  waiting.add(1);
  await reader.read();
  expect(waiting.size).toBe(0);
  passes(5_000);
  await reader.readIfDue();
  expect(leadership.waiting).toHaveBeenCalledTimes(3);
  leadership.isNotified = false;
  await reader.readIfDue();
  expect(leadership.waiting).toHaveBeenCalledTimes(4);
});

test("after an inbox that cannot be read the next look reads again", async () => {
  const { reader, leadership, waiting } = anInbox(1);
  leadership.waiting.mockRejectedValueOnce(new Error("the database is away"));
  await reader.readIfDue();
  await reader.readIfDue();
  expect(waiting.size).toBe(0);
});

/** Requests of people while this process leads, with the stages of control that they wait for. */
function aLead() {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const lead: { state: LeaseState } = { state: "leading" };
  const sent: ChangeRequest[] = [];
  const request = requestWhileLeading(
    lead,
    (apply) => new Promise((settle) => void sent.push({ apply, settle })),
  );
  const change = { changes: [], reevaluations: reevaluationsOf([chargerId("bay-01")]) };
  const ask = (): Promise<Committed> => request(() => change);
  const applied = () =>
    sent.map(({ apply }) => apply(aPicture(), instant(0)).reevaluations.map(({ charger }) => charger));
  return { lead, sent, ask, applied };
}

test("a request of a person whose commit waits for the database is answered at the doubt, and later ones at once", async () => {
  const { lead, sent, ask } = aLead();
  const [stored, waiting] = [ask(), ask()];
  sent[0]?.settle({ ok: true });
  expect(await stored).toEqual({ ok: true });
  lead.state = "in doubt";
  await vi.advanceTimersByTimeAsync(1_000);
  const refused = { ok: false, reason: "the database cannot be reached", dropped: [], stored: null };
  expect([await waiting, await ask()]).toEqual([refused, refused]);
  expect(sent).toHaveLength(2);
  // Without a database no lease can be in doubt.
  expect(await whileLeading(null, async () => "done", String)).toBe("done");
});

test("a request that was on its way to the database at the doubt may be stored, and its answer says so", async () => {
  const { lead, ask, applied } = aLead();
  const waiting = ask();
  expect(applied()).toEqual([["bay-01"]]);
  lead.state = "in doubt";
  await vi.advanceTimersByTimeAsync(1_000);
  const answer = await waiting;
  expect(answer).toMatchObject({ ok: false, isUnsure: true, reason: "the database cannot be reached" });
  expect(!answer.ok && notStored(answer).problem).toMatchObject({
    status: 503,
    title: "it is not known whether this was stored",
    detail: "the database cannot be reached; look at the status and the holds before you repeat it",
  });
  // This one reached no stage.
  expect(await ask()).not.toHaveProperty("isUnsure");
});

test("after the site was taken, the reason of a refusal is the other process, not the database", async () => {
  const { lead, ask } = aLead();
  const waiting = ask();
  lead.state = "lost";
  await vi.advanceTimersByTimeAsync(1_000);
  for (const answer of [await waiting, await ask()])
    expect(answer).toMatchObject({ ok: false, reason: "another process leads this site now" });
});

test("a request that was refused in doubt changes nothing once the database is back", async () => {
  const { lead, ask, applied } = aLead();
  const waiting = ask();
  expect(applied()).toEqual([["bay-01"]]);
  lead.state = "in doubt";
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await waiting).toMatchObject({ ok: false });
  lead.state = "leading";
  expect(applied()).toEqual([[]]);
});

test("after a doubt about the lease, chargers are evaluated again at the brokers where a command was withheld", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  await using stop = new StopSteps();
  let lease: LeaseState = "leading";
  let ended = 0;
  const state = aPicture();
  const evaluated: string[] = [];
  const observes: boolean[] = [];
  const brokerUp$ = new Subject<string>();
  brokerUp$.subscribe((name) => evaluated.push(name));
  void followLease(stop, {
    leadership: {
      get state() {
        return lease;
      },
      get doubts() {
        return ended;
      },
      isNotified: true,
      waiting: async () => [],
      setAside: async () => true,
      begun: () => {},
      onWaiting: () => {},
      onHint: () => {},
      onLost: () => {},
    },
    site: { state, monotonic: () => millis(0) },
    inputs: { brokerUp$, hint$: new Subject() },
    events: { ingest: async () => STORED },
    chargers: { observe: (only) => void observes.push(only) },
    brokers: ["", "yard"],
    page: null,
    log: pino({ level: "silent" }),
  });
  const doubts = (): void => {
    for (const next of ["in doubt", "leading"] as const) {
      lease = next;
      if (next === "leading") ended += 1;
      vi.advanceTimersByTime(500);
    }
  };
  doubts();
  expect([evaluated, observes]).toEqual([[], [true, false]]);
  state.sendQueue.add("yard", chargerId("bay-01"));
  doubts();
  expect(evaluated).toEqual(["yard"]);
  // A busy process looks again once the doubt is over.
  ended += 1;
  vi.advanceTimersByTime(500);
  expect([evaluated, observes.length]).toEqual([["yard", "yard"], 6]);
});

/** Bytes in use after a garbage collection. */
function heapUsed(): number {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
  return process.memoryUsage().heapUsed;
}

test("a delivery leaves nothing in memory once it is answered", async () => {
  const ingest = ingestWhileLeading({ state: "leading" }, async () => STORED);
  const deliver = async (): Promise<void> => {
    for (let number = 0; number < 3_000; number += 1) await ingest(delivery(number));
    await nextTurn();
  };
  await deliver();
  const first = heapUsed();
  await deliver();
  expect(heapUsed() - first).toBeLessThan(500_000);
});
