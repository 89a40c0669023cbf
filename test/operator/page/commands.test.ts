import { describe, expect, test } from "vitest";

import { brokerOutages, brokerTrialIn, commandsIn, figuresIn } from "../../../src/operator/page/commands.ts";
import { progressState } from "../../../src/operator/page/derive.ts";
import { aRow, at } from "../../support/aPageRow.ts";

const decision = (time: string, command: string, told: object) =>
  aRow(time, "decision", { command, facts: { told }, words: "because" });
const outcome = (time: string, command: string, facts: object) => aRow(time, "outcome", { command, facts });

const SIXTEEN = { kind: "current", value: 16, unit: "A" };

describe("the commands of a charger", () => {
  test("stand with the newest first, each with its level, its result and its delays", () => {
    const rows = [
      decision("05:00", "1-1", SIXTEEN),
      outcome("05:00:01", "1-1", { progress: "acknowledged", ms: 12 }),
      outcome("05:00:02", "1-1", { progress: "accepted" }),
      outcome("05:00:09", "1-1", { progress: "followed" }),
      decision("06:00", "1-2", { kind: "release", value: null, unit: null }),
    ];
    expect(commandsIn(rows.toReversed())).toEqual([
      expect.objectContaining({
        id: "1-2",
        value: "free",
        outcome: progressState("planned"),
        acknowledgedMs: null,
        acceptedMs: null,
      }),
      expect.objectContaining({
        id: "1-1",
        value: "16 A",
        because: "because",
        outcome: progressState("followed"),
        acknowledgedMs: 12,
        acceptedMs: 2000,
      }),
    ]);
  });

  test("a level in W is shown in kW, a pause as a pause, and a row without a level as nothing", () => {
    const rows = [
      decision("05:00", "1-1", { kind: "power", value: 7400, unit: "W" }),
      decision("05:01", "1-2", { kind: "pause", value: null, unit: null }),
      aRow("05:02", "decision", { command: "1-3" }),
    ];
    expect(commandsIn(rows).map(({ value }) => value)).toEqual(["", "pause", "7.4 kW"]);
  });

  test("a decision of a site that only observes is not sent", () => {
    const row = aRow("05:00", "decision", { command: "1-1", facts: { told: SIXTEEN, observed: true } });
    expect(commandsIn([row])).toMatchObject([
      { progress: "observed", outcome: { word: "not sent (observe)" } },
    ]);
  });

  test("an outcome without progress does not hide the one before it", () => {
    const rows = [
      decision("05:00", "1-1", SIXTEEN),
      outcome("05:00:01", "1-1", { progress: "notFollowed" }),
      outcome("05:00:02", "1-1", {}),
    ];
    expect(commandsIn(rows)[0]?.outcome).toEqual(progressState("notFollowed"));
  });

  test("a repeat that the broker did not get takes no result back", () => {
    const failed = outcome("05:00:03", "1-1", { progress: "failed" });
    const rows = [decision("05:00", "1-1", SIXTEEN), failed];
    expect(commandsIn(rows)[0]?.outcome).toEqual(progressState("failed"));
    rows.push(outcome("05:00:02", "1-1", { progress: "followed" }));
    expect(commandsIn(rows)[0]?.outcome).toEqual(progressState("followed"));
  });

  test("a decision without a command, and outcomes of nothing, are no commands", () => {
    expect(commandsIn([aRow("05:00", "decision"), aRow("05:00", "outcome")])).toEqual([]);
  });

  test("a delay is never negative after a step of the clock", () => {
    const rows = [
      decision("05:00:10", "1-1", SIXTEEN),
      outcome("05:00:01", "1-1", { progress: "acknowledged" }),
    ];
    expect(commandsIn(rows)[0]?.acknowledgedMs).toBe(0);
  });
});

const broker = (time: string, facts: object) =>
  aRow(time, "silence", { charger: null, facts: { outage: "broker", ...facts } });

describe("the figures of a charger", () => {
  const now = Date.parse(at("06:00"));
  const figures = (rows: Parameters<typeof figuresIn>[0]) => figuresIn(rows, now).get("bay-01");

  test("count its commands, their delays and results, and its outages", () => {
    const delays = [10, 20, 30, 400];
    const rows = delays.flatMap((ms, index) => [
      decision(index === 0 ? "04:30" : "05:30", `1-${index}`, SIXTEEN),
      outcome("05:31", `1-${index}`, { progress: "acknowledged", ms }),
      // The second follows late: its last result counts.
      ...(index === 1 ? [outcome("05:32", "1-1", { progress: "notFollowed" })] : []),
      outcome("05:33", `1-${index}`, { progress: index === 3 ? "notFollowed" : "followed" }),
    ]);
    const outage = { command: null, facts: { outage: "charger" } };
    expect(
      figures([
        ...rows,
        aRow("05:40", "silence", outage),
        aRow("05:41", "silence", { ...outage, facts: { outage: "charger", over: true } }),
        aRow("05:42", "operator", { charger: null }),
      ]),
    ).toEqual({
      commands: 4,
      inHour: 3,
      acknowledged: { median: 20, p95: 400 },
      accepted: null,
      followed: 3,
      judged: 4,
      outages: 1,
      trial: null,
    });
  });

  const step = { asked: "16 A", failure: null, confirmedAfterMs: 80, refusal: null, effect: "followed" };
  const trial = (facts: object, time = "05:10") =>
    aRow(time, "operator", {
      facts: { steps: [step], silence: null, cut: false, leftFailure: null, ...facts },
    });
  const tried = (facts: object) => figures([trial({}), trial(facts, "05:20")])?.trial;
  const silence = { promised: "own limits", afterMs: 30_000, seen: "own limits", seenAfterMs: 29_000 };

  test("show the newest trial, which is good if each level was and the prior state is back", () => {
    expect(tried({ silence })).toMatchObject({
      at: at("05:20"),
      isGood: true,
      levels: [{ asked: "16 A", isGood: true }],
      silence: { seen: "own limits", afterMs: 29_000, isGood: true },
    });
    expect(tried({ silence: { ...silence, seen: "holds", seenAfterMs: null } })?.silence).toEqual({
      seen: "holds",
      afterMs: 30_000,
      isGood: false,
    });
    expect(tried({ silence: { ...silence, seen: "unmeasured" } })?.silence?.isGood).toBe(null);
    for (const facts of [
      { cut: true },
      { leftFailure: "no answer" },
      { steps: [] },
      { steps: [step, { ...step, effect: "notFollowed" }] },
      { steps: [{ ...step, refusal: "no" }] },
      { steps: [{ ...step, confirmedAfterMs: null, effect: "unmeasured" }] },
    ])
      expect([facts, tried(facts)?.isGood]).toEqual([facts, false]);
  });

  test("the broker's outages are counted apart, with the end of the last", () => {
    const rows = [broker("05:00", {}), broker("05:01", { over: true }), broker("05:02", {})];
    expect(brokerOutages(rows)).toEqual({ count: 2, lastEnd: at("05:01") });
    expect(brokerOutages([aRow("05:00", "silence")])).toEqual({ count: 0, lastEnd: null });
    expect(figuresIn(rows, now).size).toBe(0);
  });
});

const brokerTrial = (time: string, passed: boolean) =>
  aRow(time, "operator", {
    charger: null,
    facts: { by: "kari", reason: "commissioning", passed, brokers: [] },
  });

test("the newest trial of the brokers is the one on record with brokers", () => {
  const rows = [
    brokerTrial("05:00", true),
    brokerTrial("06:00", false),
    aRow("07:00", "operator", { facts: { by: "x" } }),
  ];
  expect(brokerTrialIn(rows)).toEqual({
    at: at("06:00"),
    by: "kari",
    reason: "commissioning",
    passed: false,
    brokers: [],
  });
  expect(brokerTrialIn([aRow("05:00", "operator"), aRow("05:01", "decision")])).toBeNull();
});
