import { NEVER } from "rxjs";
import { expect, test } from "vitest";

import { Alarms } from "../../src/alarms/pipeline.ts";
import { runToEnd } from "../../src/platform/cooperative.ts";
import { AlarmRegistry } from "../../src/alarms/registry.ts";
import type { AlarmFact } from "../../src/domain/alarm.ts";
import type { Json } from "../../src/domain/audit.ts";
import { instant } from "../../src/domain/units.ts";
import { alarmApi, openAlarms } from "../../src/operator/alarms.ts";

const T0 = instant(Date.parse("2026-11-23T05:30:00Z"));

const fact = (kind: string, severity: AlarmFact["severity"], since = T0): AlarmFact => ({
  kind,
  subject: null,
  severity,
  since,
  message: `${kind} fails`,
  action: "repair it",
});

async function aSite(...facts: readonly AlarmFact[]) {
  const acts: { readonly message: string; readonly details: Json }[] = [];
  const current = { facts };
  /** Null: commits succeed. */
  const disk: { reason: string | null; isUnsure?: true } = { reason: null };
  const alarms = new Alarms(new AlarmRegistry([], T0), {
    now: () => T0,
    changes: () => 0,
    facts: async () => current.facts,
    isUndecided: () => false,
    runInSteps: async (steps) => runToEnd(steps),
    write: () => {},
    commit: async (changes) => {
      const { reason, ...unsure } = disk;
      if (reason !== null) return { ok: false, reason, ...unsure, dropped: changes, stored: null };
      for (const change of changes)
        if (change.kind === "audit") acts.push({ message: change.entry.words, details: change.entry.facts });
      return { ok: true };
    },
    announce: () => {},
    publish: async () => ({ ok: true }),
  });
  alarms.follow(NEVER);
  await alarms.observe();
  /** Null: this process leads the site. */
  const lead: { doubt: string | null } = { doubt: null };
  const api = alarmApi(alarms, async () =>
    lead.doubt === null ? { ok: true } : { ok: false, reason: lead.doubt },
  );
  const keys = (query: Readonly<Record<string, unknown>> = {}): unknown => {
    const answer = api.list(query);
    return answer.ok ? (answer.value as { key: string }[]).map(({ key }) => key) : answer.problem;
  };
  const holdOnly = async (...left: readonly AlarmFact[]): Promise<void> => {
    current.facts = left;
    await alarms.observe();
  };
  return { api, acts, keys, holdOnly, disk, lead, forStatus: () => openAlarms(alarms.registry.all()) };
}

test("alarms that last come first, then the gravest, then the newest", async () => {
  const all = [
    fact("partner", "warning"),
    fact("clock", "warning", instant(T0 + 1)),
    fact("webhook", "warning"),
    fact("disk", "critical"),
    fact("broker", "critical"),
  ];
  const { api, keys, holdOnly } = await aSite(...all);
  await api.acknowledge("disk", {}, "kari");
  await holdOnly(...all.filter(({ kind }) => kind !== "broker"));
  expect(keys()).toEqual(["clock", "partner", "webhook", "disk", "broker"]);
  expect(keys({ state: "open" })).toEqual(["clock", "partner", "webhook"]);
  expect(keys({ state: "acknowledged" })).toEqual(["disk"]);
  expect(keys({ state: "cleared" })).toEqual(["broker"]);
});

test("an acknowledgement is on record with the name of the person", async () => {
  const { api, acts } = await aSite(fact("disk", "critical"));
  expect(await api.acknowledge("disk", { note: " on my way " }, "kari")).toMatchObject({
    ok: true,
    value: { state: "acknowledged", acknowledged: { by: "kari", note: "on my way" } },
  });
  expect(acts).toEqual([
    {
      message: "kari acknowledged the alarm disk: disk fails",
      details: { acknowledged: "disk", by: "kari", note: "on my way" },
    },
  ]);
});

test("an acknowledgement that changes nothing is refused with the reason", async () => {
  const { api, acts, holdOnly } = await aSite(fact("disk", "critical"));
  expect(await api.acknowledge("broker", null, "kari")).toMatchObject({
    problem: { status: 404, detail: "broker: setpointd alarms lists them" },
  });
  await api.acknowledge("disk", null, "kari");
  expect(await api.acknowledge("disk", null, "ben")).toMatchObject({
    problem: { status: 409, detail: "kari acknowledged disk before" },
  });
  await holdOnly();
  expect(await api.acknowledge("disk", null, "ben")).toMatchObject({
    problem: { status: 409, detail: "disk has cleared" },
  });
  expect(acts).toHaveLength(1);
});

test("a process that may not lead any more does not say that there is no such alarm", async () => {
  const { api, lead } = await aSite(fact("disk", "critical"));
  await api.acknowledge("disk", null, "kari");
  lead.doubt = "the database cannot be reached";
  for (const key of ["broker", "disk"])
    expect(await api.acknowledge(key, null, "ben")).toMatchObject({
      problem: { status: 503, detail: "the database cannot be reached" },
    });
});

test("mistakes are answered with their path", async () => {
  const { api, keys } = await aSite(fact("disk", "critical"));
  for (const state of ["closed", 7])
    expect(keys({ state })).toMatchObject({ status: 400, errors: [{ path: "state" }] });
  for (const body of [{ note: 7 }, { note: "x".repeat(201) }, { reason: "" }])
    expect(await api.acknowledge("disk", body, "kari")).toMatchObject({
      problem: { status: 400, errors: [{ path: "note" }] },
    });
});

test("an acknowledgement that cannot be stored changes nothing, and the answer has the reason", async () => {
  const { api, acts, keys, disk } = await aSite(fact("disk", "critical"));
  disk.reason = "database or disk is full";
  expect(await api.acknowledge("disk", null, "kari")).toMatchObject({
    problem: {
      status: 503,
      title: "nothing was changed: it cannot be stored",
      detail: "database or disk is full",
    },
  });
  disk.isUnsure = true;
  expect(await api.acknowledge("disk", null, "kari")).toMatchObject({
    problem: { detail: "database or disk is full; look at the alarms before you repeat it" },
  });
  expect(keys({ state: "open" })).toEqual(["disk"]);
  expect(acts).toEqual([]);
  disk.reason = null;
  expect(await api.acknowledge("disk", null, "ben")).toMatchObject({ ok: true });
});

test("the status counts the alarms that are not cleared, and lists those that nobody acknowledged first", async () => {
  const site = await aSite(fact("partner", "critical"), fact("departure", "warning"), fact("clock", "info"));
  await site.api.acknowledge("partner", { note: "on the way" }, "anna");
  expect(site.forStatus()).toMatchObject({
    open: 2,
    acknowledged: 1,
    list: [{ kind: "departure" }, { kind: "clock" }, { kind: "partner", state: "acknowledged" }],
  });
  await site.holdOnly();
});
