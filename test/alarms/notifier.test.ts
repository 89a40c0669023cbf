import { expect, test } from "vitest";

import { Notifier, type NoticeAnswer } from "../../src/alarms/notifier.ts";
import { alertmanagerForm, type NoticeForm, webhookForm } from "../../src/alarms/notices.ts";
import { AlarmRegistry } from "../../src/alarms/registry.ts";
import type { Alarm, AlarmFact } from "../../src/domain/alarm.ts";
import { after, instant, millis, minutes, seconds } from "../../src/domain/units.ts";

const T0 = instant(Date.parse("2026-11-23T05:30:00Z"));
const OK: NoticeAnswer = { ok: true };
const AWAY: NoticeAnswer = { ok: false, reason: "ECONNREFUSED", isRefused: false, retryAfter: null };
const REFUSED: NoticeAnswer = { ok: false, reason: "HTTP 400", isRefused: true, retryAfter: null };

const fact = (kind: string, severity: AlarmFact["severity"] = "warning"): AlarmFact => ({
  kind,
  subject: null,
  severity,
  since: null,
  message: `${kind} fails`,
  action: "repair it",
});

interface Body {
  readonly alarms: readonly { readonly change: string; readonly key: string }[];
}

/** A receiver of scripted answers, at a clock that stands still. */
class Receiving {
  now = T0;
  answer: (body: Body) => NoticeAnswer | Promise<NoticeAnswer> = () => OK;
  readonly form: NoticeForm;
  /** `opened broker`: what was accepted. */
  readonly accepted: string[] = [];
  requests = 0;
  readonly counts: string[] = [];
  readonly logged: string[] = [];
  readonly stored = new Map<string, Alarm>();
  registry!: AlarmRegistry;
  notifier!: Notifier;

  constructor(form: NoticeForm = webhookForm("depot", minutes(240))) {
    this.form = form;
    this.start();
  }

  /** Also again, from what is stored. */
  start(): void {
    this.registry = new AlarmRegistry(this.stored.values(), this.now, ["hook"]);
    this.notifier = new Notifier(
      {
        name: "hook",
        form: this.form,
        post: async (text) => {
          this.requests += 1;
          const body = JSON.parse(text) as Body;
          const answer = await this.answer(body);
          if (answer.ok)
            this.accepted.push(...(body.alarms ?? []).map(({ change, key }) => `${change} ${key}`));
          return answer;
        },
      },
      this.registry,
      {
        now: () => this.now,
        monotonic: () => millis(this.now),
        random: () => 1,
        write: (alarms) => alarms.forEach((alarm) => this.stored.set(alarm.key, alarm)),
        counted: (_, outcome, notices) => this.counts.push(`${outcome} ${notices}`),
        log: { info: (text) => this.logged.push(text), warn: (text) => this.logged.push(text) },
      },
    );
  }

  observe(...facts: readonly AlarmFact[]): void {
    const { opened, updated, cleared } = this.registry.observe(facts, this.now);
    for (const alarm of [...opened, ...updated, ...cleared]) this.stored.set(alarm.key, alarm);
  }

  pass(ms: number): void {
    this.now = after(this.now, millis(ms));
  }
}

test("an alarm is sent when it opens and when it clears, each once, the gravest first", async () => {
  const receiving = new Receiving();
  receiving.observe(fact("skew"), fact("disk", "critical"));
  await receiving.notifier.send();
  await receiving.notifier.send();
  receiving.observe(fact("skew"));
  await receiving.notifier.send();
  expect(receiving.accepted).toEqual(["opened disk", "opened skew", "cleared disk"]);
  expect(receiving.counts).toEqual(["sent 2", "sent 1"]);
  expect(receiving.notifier.waiting).toBe(0);
});

test("the oldest of several alarms of one severity is sent first", async () => {
  const receiving = new Receiving();
  receiving.observe({ ...fact("skew"), since: T0 }, { ...fact("partner"), since: after(T0, seconds(-9)) });
  await receiving.notifier.send();
  expect(receiving.accepted).toEqual(["opened partner", "opened skew"]);
});

test("a receiver that is away is tried again with back-off, and gets the newest state of each alarm", async () => {
  const receiving = new Receiving();
  receiving.answer = () => AWAY;
  receiving.observe(fact("disk"), fact("skew"));
  for (let second = 0; second < 60; second += 1) {
    await receiving.notifier.send();
    receiving.pass(1000);
  }
  // At 0, 2, 6, 14 and 30 s.
  expect(receiving.requests).toBe(5);
  expect(receiving.notifier.waiting).toBe(2);
  expect(receiving.notifier.failing).toEqual({ name: "hook", since: T0, reason: "ECONNREFUSED" });
  receiving.observe(fact("skew"));
  receiving.answer = () => OK;
  receiving.pass(60_000);
  await receiving.notifier.send();
  expect(receiving.accepted).toEqual(["cleared disk", "opened skew"]);
  expect(receiving.notifier.failing).toBeNull();
  expect(receiving.logged).toEqual([
    "alarms cannot be sent to hook: ECONNREFUSED",
    "alarms reach hook again",
  ]);
});

test("the longest wait is five minutes, and Retry-After counts", async () => {
  const receiving = new Receiving();
  receiving.answer = () => AWAY;
  receiving.observe(fact("disk"));
  for (let second = 0; second < 3600; second += 1) {
    await receiving.notifier.send();
    receiving.pass(1000);
  }
  expect(receiving.requests).toBeGreaterThan(15);
  const busy = new Receiving();
  busy.answer = () => ({ ...AWAY, reason: "HTTP 503", retryAfter: minutes(2) });
  busy.observe(fact("disk"));
  await busy.notifier.send();
  busy.pass(119_000);
  await busy.notifier.send();
  expect(busy.requests).toBe(1);
  busy.pass(1000);
  await busy.notifier.send();
  expect(busy.requests).toBe(2);
});

test("undelivered notices are sent after a restart, and delivered ones are not repeated", async () => {
  const receiving = new Receiving();
  receiving.observe(fact("disk"));
  await receiving.notifier.send();
  receiving.answer = () => AWAY;
  receiving.observe(fact("skew"));
  await receiving.notifier.send();
  receiving.answer = () => OK;
  receiving.start();
  await receiving.notifier.send();
  expect(receiving.accepted).toEqual(["opened disk", "cleared disk", "opened skew"]);
});

test("a repetition of a webhook survives a restart, one of an Alertmanager is sent again at once", async () => {
  const receiving = new Receiving();
  receiving.observe(fact("disk"));
  await receiving.notifier.send();
  receiving.pass(minutes(240));
  await receiving.notifier.send();
  receiving.start();
  await receiving.notifier.send();
  expect(receiving.accepted).toEqual(["opened disk", "repeated disk"]);

  const alertmanager = new Receiving(alertmanagerForm("depot"));
  alertmanager.observe(fact("disk"));
  for (let minute = 0; minute < 5; minute += 1) {
    await alertmanager.notifier.send();
    alertmanager.pass(60_000);
  }
  expect(alertmanager.requests).toBe(3);
  alertmanager.start();
  await alertmanager.notifier.send();
  expect(alertmanager.requests).toBe(4);
});

test("a notice that the receiver refuses is not sent again, and keeps back no other", async () => {
  const receiving = new Receiving();
  receiving.answer = ({ alarms }) => (alarms.some(({ key }) => key === "skew") ? REFUSED : OK);
  receiving.observe(fact("disk"), fact("skew"), fact("clock"));
  await receiving.notifier.send();
  expect(receiving.accepted.toSorted()).toEqual(["opened clock", "opened disk"]);
  expect(receiving.counts).toContain("refused 1");
  const { requests } = receiving;
  await receiving.notifier.send();
  expect(receiving.requests).toBe(requests);
  receiving.answer = () => OK;
  receiving.observe(fact("disk"), fact("clock"));
  await receiving.notifier.send();
  expect(receiving.accepted.at(-1)).toBe("cleared skew");
});

test("an alarm that clears while its notice is on its way is sent as cleared afterwards", async () => {
  const receiving = new Receiving();
  const answer = Promise.withResolvers<NoticeAnswer>();
  receiving.answer = () => answer.promise;
  receiving.observe(fact("disk"));
  const sent = receiving.notifier.send();
  receiving.observe();
  answer.resolve(OK);
  await sent;
  expect(receiving.accepted).toEqual(["opened disk", "cleared disk"]);
});

test("an alarm that is forgotten, or begins anew, while its notice is on its way gets no state of the former one", async () => {
  for (const later of [[], [fact("disk")]]) {
    const receiving = new Receiving();
    receiving.observe(fact("disk"));
    receiving.observe();
    const answer = Promise.withResolvers<NoticeAnswer>();
    receiving.answer = () => answer.promise;
    const sent = receiving.notifier.send();
    receiving.pass(minutes(24 * 60));
    receiving.observe(...later);
    answer.resolve(OK);
    await sent;
    expect(receiving.accepted).toEqual(["cleared disk", ...later.map(() => "opened disk")]);
  }
});
