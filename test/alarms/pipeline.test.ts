import { Subject } from "rxjs";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";

import { Alarms } from "../../src/alarms/pipeline.ts";
import { AlarmRegistry } from "../../src/alarms/registry.ts";
import type { Alarm, AlarmFact } from "../../src/domain/alarm.ts";
import type { Change, Committed } from "../../src/domain/changes.ts";
import { instant } from "../../src/domain/units.ts";
import { runToEnd } from "../../src/platform/cooperative.ts";
import { advanceTo, settled, startVirtualTime, virtualNow } from "../support/virtualTime.ts";

beforeEach(() => startVirtualTime("2026-11-23T05:30:00Z"));
afterEach(() => {
  vi.useRealTimers();
});

const BROKER: AlarmFact = {
  kind: "broker",
  subject: null,
  severity: "critical",
  since: null,
  message: "the broker cannot be reached",
  action: "check that the broker runs",
};

/** The alarms of a site with scripted facts and a scripted broker. */
class Running {
  facts: readonly AlarmFact[] = [];
  brokerIsThere = true;
  /** The access list of the broker has no such topic. */
  isRefused = false;
  attempts = 0;
  /** Changes of the site. */
  count = 0;
  observed = 0;
  /** Answer to the next acknowledgement. */
  commit: Promise<Committed> = Promise.resolve({ ok: true });
  /** Key of an alarm of whose fact nothing is known. "": none. */
  undecided = "";
  readonly changes: Change[] = [];
  readonly announced: string[] = [];
  /** `alarms/broker open`, `alarms/broker -` for an empty payload. */
  readonly published: string[] = [];
  readonly brokerUp$ = new Subject<string>();
  readonly alarms: Alarms;

  constructor(stored: readonly Alarm[] = []) {
    this.alarms = new Alarms(new AlarmRegistry(stored, virtualNow()), {
      now: virtualNow,
      changes: () => this.count,
      facts: async () => {
        this.observed += 1;
        return this.facts;
      },
      isUndecided: ({ key }) => key === this.undecided,
      runInSteps: async (steps) => runToEnd(steps),
      write: (changes) => this.changes.push(...changes),
      commit: (changes) => {
        this.changes.push(...changes);
        return this.commit;
      },
      announce: (key) => this.announced.push(key),
      publish: async (path, payload) => {
        this.attempts += 1;
        if (this.isRefused) return { ok: false, retry: false, reason: "not authorized" };
        if (!this.brokerIsThere) return { ok: false, retry: true, reason: "broker not connected" };
        this.published.push(`${path} ${payload === "" ? "-" : (JSON.parse(payload) as Alarm).state}`);
        return { ok: true };
      },
    });
    const running = this.alarms.follow(this.brokerUp$).subscribe();
    onTestFinished(() => running.unsubscribe());
  }

  /** The next round, with these facts. */
  async round(...facts: readonly AlarmFact[]): Promise<void> {
    this.facts = facts;
    this.count += 1;
    await advanceTo(instant(virtualNow() + 2000));
  }

  get stored(): readonly Alarm[] {
    return this.changes.flatMap((change) => (change.kind === "alarm" ? [change.alarm] : []));
  }
}

test("an alarm is stored, announced and published when it opens, is acknowledged and clears", async () => {
  const running = new Running();
  await running.round(BROKER);
  await running.round(BROKER);
  expect(running.published).toEqual(["alarms/broker open"]);
  expect(await running.alarms.acknowledge("broker", "kari", "")).toHaveProperty("alarm");
  await running.round(BROKER);
  await running.round();
  expect(running.published).toEqual(["alarms/broker open", "alarms/broker acknowledged", "alarms/broker -"]);
  expect(running.stored.map(({ state }) => state)).toEqual(["open", "acknowledged", "cleared"]);
  expect(running.announced).toEqual(["broker", "broker", "broker"]);
});

test("an alarm of whose fact nothing is known is neither stored, announced nor published again", async () => {
  const running = new Running();
  await running.round(BROKER);
  running.undecided = "broker";
  await running.round();
  await running.round(BROKER);
  expect(running.published).toEqual(["alarms/broker open"]);
  expect(running.stored.map(({ state, count }) => [state, count])).toEqual([["open", 1]]);
});

test("a site without changes is walked every ten seconds, and every two while it changes", async () => {
  const running = new Running();
  await settled();
  expect(running.observed).toBe(1);
  for (let second = 0; second < 60; second += 2) await advanceTo(instant(virtualNow() + 2000));
  expect(running.observed).toBe(7);
  for (let second = 0; second < 10; second += 2) await running.round();
  expect(running.observed).toBe(12);
});

test("a refused acknowledgement stores nothing", async () => {
  const running = new Running();
  expect(await running.alarms.acknowledge("disk", "kari", "")).toHaveProperty("refused");
  expect(running.changes).toEqual([]);
});

test("an acknowledgement is shown after its commit, and of two people at once the second is refused", async () => {
  const running = new Running();
  await running.round(BROKER);
  const commit = Promise.withResolvers<Committed>();
  running.commit = commit.promise;
  const [kari, ben] = [
    running.alarms.acknowledge("broker", "kari", ""),
    running.alarms.acknowledge("broker", "ben", ""),
  ];
  await running.round(BROKER);
  expect(running.alarms.registry.get("broker")?.state).toBe("open");
  expect(running.published).toEqual(["alarms/broker open"]);
  commit.resolve({ ok: true });
  expect(await kari).toMatchObject({ alarm: { state: "acknowledged", acknowledged: { by: "kari" } } });
  expect(await ben).toMatchObject({ refused: "acknowledged", alarm: { acknowledged: { by: "kari" } } });
});

test.each([
  [true, "acknowledged"],
  [false, "open"],
])(
  "an acknowledgement that is known late to be stored (%s) leaves the alarm as it is stored",
  async (isStored, state) => {
    const running = new Running();
    await running.round(BROKER);
    const known = Promise.withResolvers<boolean>();
    const unsure = { ok: false, reason: "no answer", isUnsure: true, isStored: known.promise } as const;
    running.commit = Promise.resolve({ ...unsure, dropped: [], stored: null });
    expect(await running.alarms.acknowledge("broker", "kari", "")).toMatchObject({ isUnsure: true });
    expect(running.alarms.registry.get("broker")?.state).toBe("open");
    known.resolve(isStored);
    await running.round(BROKER);
    expect(running.alarms.registry.get("broker")?.state).toBe(state);
  },
);

test.each([
  ["cleared", [], "cleared"],
  ["got graver", [{ ...BROKER, severity: "critical" as const }], "open"],
])("an alarm that %s while its acknowledgement was stored stays so", async (_, facts, state) => {
  const running = new Running();
  await running.round({ ...BROKER, severity: "warning" });
  const commit = Promise.withResolvers<Committed>();
  running.commit = commit.promise;
  const done = running.alarms.acknowledge("broker", "kari", "");
  await running.round(...facts);
  commit.resolve({ ok: true });
  expect(await done).toMatchObject({ alarm: { state } });
  expect(running.alarms.registry.get("broker")?.state).toBe(state);
  expect(running.stored.at(-1)?.state).toBe(state);
});

test("a sentence that changes is published and not stored", async () => {
  const running = new Running();
  await running.round(BROKER);
  await running.round({ ...BROKER, message: "connection refused" });
  expect(running.stored).toHaveLength(1);
  expect(running.published).toHaveLength(2);
});

test("a publish that fails is tried again in the next round", async () => {
  const running = new Running();
  running.brokerIsThere = false;
  await running.round(BROKER);
  expect(running.published).toEqual([]);
  running.brokerIsThere = true;
  await running.round(BROKER);
  expect(running.published).toEqual(["alarms/broker open"]);
});

test("a publish that the broker refuses is not repeated before the alarm changes", async () => {
  const running = new Running();
  running.isRefused = true;
  await running.round(BROKER, { ...BROKER, kind: "disk" });
  await running.round(BROKER, { ...BROKER, kind: "disk" });
  expect(running.attempts).toBe(2);
  await running.round(BROKER);
  expect(running.attempts).toBe(3);
});

test("the site's broker is sent all alarms again when it returns, because it may have lost them", async () => {
  const running = new Running();
  await running.round(BROKER);
  running.brokerUp$.next("north");
  await running.round(BROKER);
  expect(running.published).toHaveLength(1);
  running.brokerUp$.next("");
  await running.round(BROKER);
  expect(running.published).toHaveLength(2);
});

test("alarms of the last run are published at the start, the cleared ones as empty", async () => {
  const before = new Running();
  await before.round(BROKER, { ...BROKER, kind: "offline", subject: "bay-01" });
  await before.round(BROKER);
  const again = new Running(before.alarms.registry.all());
  await settled();
  expect(again.published).toEqual(["alarms/broker open", "alarms/offline:bay-01 -"]);
});

test("an alarm that cleared a day ago is deleted from the store", async () => {
  const running = new Running();
  await running.round(BROKER);
  await running.round();
  await advanceTo(instant(virtualNow() + 86_402_000));
  expect(running.changes.at(-1)).toEqual({ kind: "alarmForgotten", key: "broker" });
});
