import { assert, array, boolean, constantFrom, property, record, integer } from "fast-check";
import { describe, expect, test } from "vitest";

import { AlarmRegistry, isStoredChange, quietOf } from "../../src/alarms/registry.ts";
import { type Alarm, type AlarmFact, alarmKey, alarmView } from "../../src/domain/alarm.ts";
import { after, instant, type Instant, millis, minutes, seconds } from "../../src/domain/units.ts";

const T0 = instant(Date.parse("2026-11-23T05:30:00Z"));
const at = (passed: number): Instant => instant(T0 + passed);

const fact = (more: Partial<AlarmFact> = {}): AlarmFact => ({
  kind: "broker",
  subject: null,
  severity: "critical",
  since: null,
  message: "the broker cannot be reached",
  action: "check that the broker runs",
  ...more,
});

const aRegistry = (stored: readonly Alarm[] = [], startedAt: Instant = T0): AlarmRegistry =>
  new AlarmRegistry(stored, startedAt);

/** An acknowledged alarm of an earlier run. */
const stored = (): readonly Alarm[] => {
  const registry = aRegistry();
  registry.observe([fact()], at(0));
  registry.acknowledge("broker", { by: "kari", note: "", at: at(1) });
  return registry.all();
};

const isUndecided = ({ kind }: Alarm): boolean => kind === "neverHeard";

const keyOf = (subject: string): string => alarmKey({ kind: "offline", subject });

describe("keys", () => {
  test("a key is the kind, and the subject as one segment of a URL and a topic", () => {
    expect(alarmKey({ kind: "disk", subject: null })).toBe("disk");
    expect(alarmKey({ kind: "offline", subject: "bay-01" })).toBe("offline:bay-01");
    expect(alarmKey({ kind: "offline", subject: "a/b +#" })).toBe("offline:a~2f~b~20~~2b~~23~");
  });

  test("two subjects never share a key", () => {
    expect(new Set(["a/b", "a~2f~b", "a~b", "a:b", "å"].map(keyOf)).size).toBe(5);
  });
});

describe("an alarm", () => {
  test("opens with its fact, stays while it lasts, and clears with it", () => {
    const registry = aRegistry();
    const { opened } = registry.observe([fact({ since: at(-5000) })], at(0));
    expect(opened).toMatchObject([{ key: "broker", state: "open", since: at(-5000), count: 1 }]);
    const nothing = { opened: [], updated: [], cleared: [], toStore: [] };
    expect(registry.observe([fact()], at(2000))).toEqual(nothing);
    expect(registry.get("broker")).toMatchObject({ lastSeen: at(2000), since: at(-5000) });
    const { cleared } = registry.observe([], at(4000));
    expect(cleared).toMatchObject([{ state: "cleared", clearedAt: at(4000), lastSeen: at(2000) }]);
    expect(registry.observe([], at(6000))).toEqual(nothing);
    expect(registry.all()).toHaveLength(1);
  });

  test("stays as it is while nothing shows whether its fact holds, and counts no return afterwards", () => {
    const registry = aRegistry();
    registry.observe([fact({ kind: "neverHeard", subject: "bay-01" })], at(0));
    const before = registry.get("neverHeard:bay-01");
    const unchanged = { opened: [], updated: [], cleared: [], toStore: [] };
    expect(registry.observe([], at(2000), isUndecided)).toEqual(unchanged);
    expect(registry.get("neverHeard:bay-01")).toEqual(before);
    expect(registry.observe([], at(4000), () => false).cleared).toHaveLength(1);
    // A cleared one is forgotten in its time.
    expect(registry.observe([], after(at(4000), minutes(24 * 60)), isUndecided).toStore).toHaveLength(1);
  });

  test("begins when it is first observed if its fact has no known beginning", () => {
    const registry = aRegistry();
    registry.observe([fact()], at(7));
    expect(registry.get("broker")?.since).toBe(at(7));
  });

  test("is updated when the sentence, the remedy or the severity of its fact changes", () => {
    const registry = aRegistry();
    registry.observe([fact()], at(0));
    const steps = [{ message: "refused" }, { action: "restart it" }, { severity: "info" }] as const;
    for (const step of steps) expect(registry.observe([fact(step)], at(1)).updated).toMatchObject([step]);
  });

  test("counts the more severe of two facts with one key, or the first at equal severity", () => {
    const registry = aRegistry();
    const facts = [
      fact({ severity: "info", message: "one" }),
      fact({ severity: "warning", message: "two" }),
      fact({ severity: "warning", message: "three" }),
    ];
    expect(registry.observe(facts, at(0)).opened).toMatchObject([{ severity: "warning", message: "two" }]);
  });

  test("is forgotten a day after it cleared", () => {
    const registry = aRegistry();
    registry.observe([fact()], at(0));
    registry.observe([], at(1));
    expect(registry.observe([], at(minutes(1440))).toStore).toEqual([]);
    expect(registry.observe([], at(minutes(1440) + 1)).toStore).toEqual(["broker"]);
    expect(registry.all()).toEqual([]);
  });

  test("is shown with ISO times", () => {
    const registry = aRegistry();
    registry.observe([fact()], at(0));
    registry.acknowledge("broker", { by: "kari", note: "on my way", at: at(1000) });
    registry.observe([], at(2000));
    expect(registry.all().map(alarmView)).toEqual([
      {
        key: "broker",
        kind: "broker",
        severity: "critical",
        state: "cleared",
        since: "2026-11-23T05:30:00.000Z",
        lastSeen: "2026-11-23T05:30:00.000Z",
        goneSince: "2026-11-23T05:30:02.000Z",
        clearedAt: "2026-11-23T05:30:02.000Z",
        count: 1,
        subject: null,
        message: "the broker cannot be reached",
        action: "check that the broker runs",
        acknowledged: { at: "2026-11-23T05:30:01.000Z", by: "kari", note: "on my way" },
      },
    ]);
    registry.observe([fact()], at(minutes(10)));
    expect(registry.all().map(alarmView)).toMatchObject([{ clearedAt: null, acknowledged: null }]);
  });
});

describe("a fact that returns", () => {
  test("within the quiet time continues its alarm, which then clears after the quiet time only", () => {
    const registry = aRegistry();
    registry.observe([fact()], at(0));
    registry.observe([], at(1000));
    const { opened, updated } = registry.observe([fact()], at(2000));
    expect(opened).toEqual([]);
    expect(updated).toMatchObject([{ state: "open", since: at(0), count: 2, clearedAt: null }]);
    expect(registry.observe([], at(3000))).toMatchObject({ cleared: [], updated: [{ goneSince: at(3000) }] });
    expect(registry.observe([], at(4000)).updated).toEqual([]);
    expect(registry.get("broker")).toMatchObject({ state: "open", goneSince: at(3000) });
    const end = at(3000 + quietOf("broker"));
    expect(registry.observe([], end).cleared).toMatchObject([{ clearedAt: at(3000) }]);
    expect(registry.observe([fact()], end).opened).toMatchObject([{ count: 1, since: end }]);
  });

  test("is over for now, and its alarm says so until it returns or clears", () => {
    const registry = aRegistry();
    for (const [second, facts] of [[fact()], [], [fact()], []].entries())
      registry.observe(facts, at(second * 1000));
    expect(registry.all().map(alarmView)).toMatchObject([
      {
        state: "open",
        goneSince: "2026-11-23T05:30:03.000Z",
        message: "over for now, clears unless it returns: the broker cannot be reached",
        action: "nothing now; if it returns: check that the broker runs",
      },
    ]);
    registry.observe([fact()], at(4000));
    expect(registry.all().map(alarmView)).toMatchObject([
      { goneSince: null, message: "the broker cannot be reached", action: "check that the broker runs" },
    ]);
  });

  test("after the quiet time opens a new alarm, acknowledged by no one", () => {
    const registry = aRegistry();
    registry.observe([fact()], at(0));
    registry.acknowledge("broker", { by: "kari", note: "", at: at(1) });
    registry.observe([], at(1000));
    const later = at(1000 + quietOf("broker"));
    expect(registry.observe([fact()], later).opened).toMatchObject([
      { state: "open", since: later, count: 1, acknowledged: null },
    ]);
  });

  test("chargers have a longer quiet time than the broker", () => {
    expect(quietOf("offline")).toBe(minutes(15));
    expect(quietOf("broker")).toBe(minutes(5));
  });

  test("a clock that is set back keeps no alarm for as long as the clock was ahead", () => {
    const registry = aRegistry();
    registry.observe([fact()], at(0));
    registry.observe([], at(1));
    registry.observe([fact()], at(2));
    registry.observe([], at(3));
    expect(registry.observe([], at(-3_600_000)).cleared).toHaveLength(1);
  });
});

describe("an acknowledgement", () => {
  test("silences and never clears; it lasts through a short absence of the fact", () => {
    const registry = aRegistry();
    registry.observe([fact()], at(0));
    expect(registry.acknowledge("broker", { by: "kari", note: "on my way", at: at(1) })).toMatchObject({
      alarm: { state: "acknowledged", clearedAt: null, acknowledged: { by: "kari", at: at(1) } },
    });
    registry.observe([fact()], at(2));
    expect(registry.get("broker")?.state).toBe("acknowledged");
    registry.observe([], at(3));
    registry.observe([fact()], at(4));
    expect(registry.get("broker")).toMatchObject({ state: "acknowledged", count: 2 });
  });

  test("ends when the fact becomes graver", () => {
    const registry = aRegistry();
    registry.observe([fact({ severity: "warning" })], at(0));
    registry.acknowledge("broker", { by: "kari", note: "", at: at(1) });
    registry.observe([fact({ severity: "critical" })], at(2));
    expect(registry.get("broker")).toMatchObject({ state: "open", acknowledged: null });
  });

  test("is refused for an unknown, a cleared or an acknowledged alarm", () => {
    const registry = aRegistry();
    expect(registry.acknowledge("broker", { by: "kari", note: "", at: at(0) })).toEqual({
      refused: "unknown",
      alarm: null,
    });
    registry.observe([fact()], at(0));
    registry.acknowledge("broker", { by: "kari", note: "", at: at(1) });
    expect(registry.acknowledge("broker", { by: "ben", note: "", at: at(2) })).toMatchObject({
      refused: "acknowledged",
      alarm: { acknowledged: { by: "kari" } },
    });
    registry.observe([], at(3));
    expect(registry.acknowledge("broker", { by: "ben", note: "", at: at(4) })).toMatchObject({
      refused: "cleared",
    });
  });
});

describe("after a restart", () => {
  test("an alarm of the last run stays until its fact can be known again", () => {
    const registry = aRegistry(stored(), at(60_000));
    expect(registry.observe([], at(60_000)).cleared).toEqual([]);
    expect(registry.observe([], at(60_000 + seconds(119))).cleared).toEqual([]);
    expect(registry.observe([], at(60_000 + minutes(2))).cleared).toHaveLength(1);
  });

  test("a fact that still holds continues its alarm and its acknowledgement", () => {
    const registry = aRegistry(stored(), at(60_000));
    expect(registry.observe([fact()], at(61_000)).opened).toEqual([]);
    expect(registry.get("broker")).toMatchObject({ state: "acknowledged", since: at(0), count: 1 });
    expect(registry.observe([], at(62_000)).cleared).toHaveLength(1);
  });
});

test("a change of state, beginning or severity is stored; a sentence is not", () => {
  const registry = aRegistry();
  registry.observe([fact()], at(0));
  const alarm = registry.all()[0] as Alarm;
  expect(isStoredChange(undefined, alarm)).toBe(true);
  expect(isStoredChange(alarm, { ...alarm, message: "other", count: 2 })).toBe(false);
  expect(isStoredChange(alarm, { ...alarm, state: "cleared" })).toBe(true);
  expect(isStoredChange(alarm, { ...alarm, since: at(1) })).toBe(true);
  expect(isStoredChange(alarm, { ...alarm, severity: "info" })).toBe(true);
});

describe("for any course of facts", () => {
  const step = record({
    waits: integer({ min: 1, max: minutes(20) }),
    facts: array(
      record({ kind: constantFrom("broker", "offline"), severity: constantFrom("info", "critical") }),
      { maxLength: 3 },
    ),
    acknowledges: boolean(),
  });

  test("an alarm that is not cleared has a fact now, or had one within the quiet time", () => {
    assert(
      property(array(step), (steps) => {
        const registry = aRegistry();
        let now = T0;
        const held = new Map<string, Instant>();
        for (const { waits, facts, acknowledges } of steps) {
          now = after(now, millis(waits));
          const before = new Map(registry.all().map((alarm) => [alarm.key, alarm]));
          const { opened, cleared } = registry.observe(
            facts.map(({ kind, severity }) => fact({ kind, severity })),
            now,
          );
          for (const { kind } of facts) held.set(kind, now);
          for (const { kind } of facts) expect(registry.get(kind)?.state).not.toBe("cleared");
          for (const { key, state, goneSince } of registry.all())
            if (state !== "cleared" && held.get(key) !== now)
              expect(now - (goneSince ?? 0)).toBeLessThan(quietOf(key));
          // Each opening follows a cleared alarm or none, and each clearing one that was not.
          for (const { key } of opened) expect(before.get(key)?.state ?? "cleared").toBe("cleared");
          for (const { key } of cleared) expect(before.get(key)?.state).not.toBe("cleared");
          if (acknowledges)
            for (const { key, state } of registry.all()) {
              registry.acknowledge(key, { by: "kari", note: "", at: now });
              expect(registry.get(key)?.state === "cleared").toBe(state === "cleared");
            }
        }
      }),
    );
  });

  test("a fact that flaps faster than the quiet time opens once, and clears at most twice", () => {
    assert(
      property(array(integer({ min: 1, max: minutes(5) - 1 }), { minLength: 2 }), (waits) => {
        const registry = aRegistry();
        let now = T0;
        let [opened, cleared] = [0, 0];
        for (const [index, wait] of waits.entries()) {
          now = after(now, millis(wait));
          const changes = registry.observe(index % 2 === 0 ? [fact()] : [], now);
          opened += changes.opened.length;
          cleared += changes.cleared.length;
        }
        cleared += registry.observe([], after(now, minutes(5))).cleared.length;
        cleared += registry.observe([], after(now, minutes(10))).cleared.length;
        expect(opened).toBe(1);
        expect(cleared).toBeLessThanOrEqual(2);
      }),
    );
  });
});
