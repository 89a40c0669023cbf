import { expect, test } from "vitest";

import { alertmanagerForm, owedNotice, webhookForm } from "../../src/alarms/notices.ts";
import type { Alarm, Notified } from "../../src/domain/alarm.ts";
import { after, type Instant, minutes } from "../../src/domain/units.ts";
import { anAlarm } from "../support/anAlarm.ts";

const BROKER = anAlarm("broker");
const T0 = BROKER.since;
const at = (min: number): Instant => after(T0, minutes(min));
const WEBHOOK = webhookForm("depot", minutes(240));
const ALERTMANAGER = alertmanagerForm("depot");
const ACKNOWLEDGED: Partial<Alarm> = {
  state: "acknowledged",
  acknowledged: { at: at(1), by: "kari", note: "on my way" },
};
const CLEARED: Partial<Alarm> = { state: "cleared", clearedAt: at(3) };

const change = (
  alarm: Partial<Alarm>,
  last: Partial<Notified> | null | undefined,
  form = WEBHOOK,
  now = at(5),
): string | null => {
  const sent = last && ({ state: "open", severity: "critical", at: T0, ...last } as const);
  const notified: Alarm["notified"] = sent === undefined ? {} : { hook: sent };
  return owedNotice({ ...BROKER, ...alarm, notified }, "hook", form, now)?.change ?? null;
};

test.each([
  ["is new", {}, null, "opened"],
  ["was acknowledged before it was sent", ACKNOWLEDGED, null, "acknowledged"],
  ["cleared before it was sent", CLEARED, null, "cleared"],
  ["opened before the receiver was configured", {}, undefined, "opened"],
  ["cleared before the receiver was configured", CLEARED, undefined, null],
  ["is as it was sent", {}, {}, null],
  ["was acknowledged", ACKNOWLEDGED, {}, "acknowledged"],
  ["cleared", CLEARED, {}, "cleared"],
  ["is as it was sent, cleared", CLEARED, { state: "cleared" }, null],
  ["returned within its quiet time", {}, { state: "cleared" }, "opened"],
  ["got graver", {}, { severity: "warning" }, "changed"],
  ["got graver after its acknowledgement", {}, { state: "acknowledged", severity: "warning" }, "changed"],
] as const)("an alarm that %s: %j after %j is %s", (_, alarm, last, expected) => {
  expect(change(alarm, last)).toBe(expected);
});

test("a webhook repeats an open alarm after its time, and an acknowledged or cleared one not", () => {
  expect(change({}, {}, WEBHOOK, at(239))).toBeNull();
  expect(change({}, {}, WEBHOOK, at(240))).toBe("repeated");
  expect(change(ACKNOWLEDGED, { state: "acknowledged" }, WEBHOOK, at(1000))).toBeNull();
  expect(change(CLEARED, { state: "cleared" }, WEBHOOK, at(1000))).toBeNull();
});

test("an Alertmanager gets each alarm that lasts every two minutes, also after the clock was set back", () => {
  expect(change({}, {}, ALERTMANAGER, at(1))).toBeNull();
  expect(change({}, {}, ALERTMANAGER, at(2))).toBe("repeated");
  expect(change(ACKNOWLEDGED, { state: "acknowledged" }, ALERTMANAGER, at(2))).toBe("repeated");
  expect(change({}, {}, ALERTMANAGER, at(-2))).toBe("repeated");
});

test("a receiver that fails is not sent the alarm about itself, and the others are", () => {
  const alarm = { ...anAlarm("notify"), subject: "hook" };
  expect(owedNotice(alarm, "hook", WEBHOOK, T0)).toBeNull();
  expect(owedNotice(alarm, "other", WEBHOOK, T0)).toMatchObject({ change: "opened" });
});

const body = (alarm: Partial<Alarm>, last: Notified | null = null, now = at(5)) =>
  ALERTMANAGER.body([{ change: "changed", alarm: { ...BROKER, ...alarm }, last }], now);

test("an alert ends ten minutes ahead, so that it resolves if setpointd is gone", () => {
  expect(body({ subject: "north" })).toEqual([
    {
      labels: {
        alertname: "SetpointdAlarm",
        site: "depot",
        kind: "broker",
        severity: "critical",
        subject: "north",
      },
      annotations: { summary: "broker fails", action: "repair it" },
      startsAt: "2026-11-23T05:30:00.000Z",
      endsAt: "2026-11-23T05:45:00.000Z",
    },
  ]);
});

test("an alert of a cleared alarm ends when its fact ended, and never before it began", () => {
  expect(body(CLEARED)).toMatchObject([{ endsAt: "2026-11-23T05:33:00.000Z" }]);
  expect(body({ ...CLEARED, clearedAt: at(-3) })).toMatchObject([{ endsAt: "2026-11-23T05:30:00.000Z" }]);
});

test("an alert shows who acknowledged it", () => {
  expect(body(ACKNOWLEDGED)).toMatchObject([{ annotations: { acknowledged: "kari: on my way" } }]);
  const wordless = { ...ACKNOWLEDGED, acknowledged: { at: at(1), by: "kari", note: "" } };
  expect(body(wordless)).toMatchObject([{ annotations: { acknowledged: "kari" } }]);
});

test("an alert of another severity resolves the former one, which has other labels", () => {
  expect(body({}, { state: "open", severity: "warning", at: T0 })).toMatchObject([
    { labels: { severity: "warning" }, endsAt: "2026-11-23T05:35:00.000Z" },
    { labels: { severity: "critical" }, endsAt: "2026-11-23T05:45:00.000Z" },
  ]);
});

test("a webhook gets the alarms as the API lists them, with their change", () => {
  expect(WEBHOOK.body([{ change: "opened", alarm: BROKER, last: null }], at(5))).toMatchObject({
    version: 1,
    site: "depot",
    sentAt: "2026-11-23T05:35:00.000Z",
    alarms: [{ change: "opened", key: "broker", state: "open", since: "2026-11-23T05:30:00.000Z" }],
  });
});
