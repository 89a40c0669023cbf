import { expect, test } from "vitest";

import { type Bar, barTo, type GatedStep, type GateFacts } from "../../../src/control/decide/gate.ts";

const OPEN: GateFacts = { leads: true, mode: "drive", startsBlockedBy: null, online: true, isLocked: false };

const CLOSED: Readonly<Record<Bar, Partial<GateFacts>>> = {
  "not leading": { leads: false },
  observing: { mode: "observe" },
  offline: { online: false },
  commissioning: { isLocked: true },
  "starting up": { startsBlockedBy: "starting up" },
  "clock doubted": { startsBlockedBy: "clock doubted" },
};

const STEPS = [
  "start",
  "plan",
  "queue",
  "queueRelease",
  "stop",
  "publish",
  "publishRelease",
  "judge",
] as const;

const stepsStoppedBy = (bar: Bar): readonly GatedStep[] =>
  STEPS.filter((step) => barTo(step, { ...OPEN, ...CLOSED[bar] }) === bar);

test("an online charger that nothing holds back may be commanded, and so may one that never reported itself", () => {
  for (const online of [true, null])
    expect(STEPS.map((step) => barTo(step, { ...OPEN, online }))).toEqual(STEPS.map(() => null));
});

test("observe mode plans and sends nothing but the one release, and publishes that", () => {
  expect(stepsStoppedBy("observing")).toEqual(["plan", "queue", "stop", "publish"]);
});

test("a process whose lease is in doubt publishes nothing, not even at its stop", () => {
  expect(stepsStoppedBy("not leading")).toEqual(["stop", "publish", "publishRelease"]);
});

test("an offline charger is decided for and not put in line", () => {
  expect(stepsStoppedBy("offline")).toEqual(["queue", "queueRelease", "stop"]);
});

test("a charger at commissioning is sent nothing and not judged", () => {
  expect(stepsStoppedBy("commissioning")).toEqual([
    "queue",
    "queueRelease",
    "publish",
    "publishRelease",
    "judge",
  ]);
});

test("before the partner was asked, and while the clock is doubted, only new starts wait", () => {
  expect(stepsStoppedBy("starting up")).toEqual(["start"]);
  expect(stepsStoppedBy("clock doubted")).toEqual(["start"]);
});

test("the first of several bars is the answer: the mode, then the charger itself, then commissioning", () => {
  expect(barTo("queue", { ...OPEN, mode: "observe", online: false, isLocked: true })).toBe("observing");
  expect(barTo("queue", { ...OPEN, online: false, isLocked: true })).toBe("offline");
});
