import { expect, test } from "vitest";

import type { Json } from "../../src/domain/audit.ts";
import { chargerId, iso } from "../../src/domain/units.ts";
import { configurationApi } from "../../src/operator/configuration.ts";
import {
  type Candidate,
  configurationFault,
  configurationStatus,
  type LastConfigurationChange,
  type RunningConfiguration,
  type SiteConfigurations,
} from "../../src/operator/siteConfigurations.ts";
import { CommissioningLock } from "../../src/control/decide/commissioningLock.ts";
import { aPicture } from "../support/aPicture.ts";
import { commandRecord, NOON } from "../store/sqlite/words.ts";

const [RUNS, FILE] = ["aaaaaaaaaaaa", "bbbbbbbbbbbb"];

const lastChange = (over: Partial<LastConfigurationChange> = {}): LastConfigurationChange => ({
  kind: "apply",
  fingerprint: FILE,
  from: RUNS,
  file: FILE,
  result: "running",
  failure: null,
  tookMs: 412,
  at: NOON,
  by: "kari",
  reason: "second panel",
  ...over,
});

interface Given {
  readonly running?: Partial<RunningConfiguration>;
  readonly last?: LastConfigurationChange | null;
  readonly candidate?: Partial<Candidate> | null;
  readonly file?: string | null;
  readonly leaving?: readonly string[];
}

/** Configurations of a site, and the changes that were begun. */
function someConfigurations({
  running = {},
  last = null,
  candidate = {},
  file = FILE,
  leaving = [],
}: Given = {}) {
  const begun: object[] = [];
  const configurations: SiteConfigurations = {
    file: () => ({
      file: "/etc/setpointd/config.yaml",
      fingerprint: file,
      state: "differs",
      changes: [{ path: "site.fuse", change: "changed" }],
      mistakes: [],
      leaving,
      needsRestart: [],
    }),
    fileFingerprint: () => file,
    running: () => ({
      fingerprint: RUNS,
      since: NOON,
      by: null,
      reason: null,
      because: "file",
      beside: null,
      ...running,
    }),
    kept: async () => [
      { fingerprint: RUNS, at: NOON, by: null, reason: null, paths: [] },
      { fingerprint: "cccccccccccc", at: NOON, by: "kari", reason: "a test", paths: null },
    ],
    last: () => last,
    restartMs: () => 412,
    candidate: () =>
      candidate === null
        ? null
        : {
            fingerprint: FILE,
            mistakes: [],
            leaving,
            needsRestart: [],
            begin: (change) => {
              begun.push(change);
              return null;
            },
            ...candidate,
          },
  };
  return { configurations, begun };
}

function anApi(given: Given = {}, { isReady = true, stored = true, state = aPicture() } = {}) {
  const { configurations, begun } = someConfigurations(given);
  const rows: { readonly message: string; readonly facts: Json }[] = [];
  const api = configurationApi({
    configurations,
    state,
    onStop: "keep",
    record: async (message, facts) => {
      rows.push({ message, facts });
      return stored ? { ok: true } : { ok: false, reason: "the disk is full" };
    },
    now: () => NOON,
    isReady: () => isReady,
  });
  return { ...api, begun, rows };
}

const WHY = { reason: "second panel" };
const refused = (status: number, title: string): object => ({
  ok: false,
  problem: { status, title: expect.stringContaining(title) },
});

test("a change is on record before it begins, with the person, the reason and both fingerprints", async () => {
  const { apply, begun, rows } = anApi();
  expect(await apply(WHY, "kari")).toMatchObject({
    ok: true,
    value: { kind: "apply", fingerprint: FILE, from: RUNS, restartMs: 412 },
  });
  expect(rows).toMatchObject([
    {
      message: `kari applies the configuration file ${FILE} in place of ${RUNS}: second panel`,
      facts: { by: "kari", fingerprint: FILE, from: RUNS, forced: false },
    },
  ]);
  expect(begun).toEqual([{ kind: "apply", by: "kari", reason: "second panel", at: NOON }]);
});

test.each<[string, Given, Parameters<typeof anApi>[1], number, string]>([
  ["while setpointd starts", {}, { isReady: false }, 503, "setpointd is starting"],
  ["while another change is under way", { last: lastChange({ result: "underWay" }) }, {}, 409, "under way"],
  ["where the file cannot be read", { candidate: null, file: null }, {}, 409, "cannot be read"],
  ["where it runs already", { candidate: { fingerprint: RUNS } }, {}, 409, "runs already"],
  [
    "where the state would be another",
    { candidate: { needsRestart: ["state"] } },
    {},
    409,
    "cannot be moved",
  ],
  ["where it cannot be recorded", {}, { stored: false }, 503, "cannot be stored"],
  ["where it cannot be stored", { candidate: { begin: () => "no space" } }, {}, 503, "cannot be stored"],
])("nothing changes %s", async (_when, given, more, status, title) => {
  const { apply, begun } = anApi(given, more);
  expect(await apply(WHY, "kari")).toMatchObject(refused(status, title));
  expect(begun).toEqual([]);
});

test("what runs already starts again by force, which reads its profiles anew", async () => {
  const { apply, begun } = anApi({ candidate: { fingerprint: RUNS } });
  expect(await apply({ ...WHY, force: true }, "kari")).toMatchObject({ ok: true });
  expect(begun).toHaveLength(1);
});

test("a rollback needs a configuration that is kept, and a file beside which it stays in force", async () => {
  const unknown = anApi({ candidate: null });
  const body = { ...WHY, fingerprint: "dddddddddddd" };
  expect(await unknown.rollback(body, "kari")).toMatchObject({
    problem: { status: 409, errors: [{ expected: `one of ${RUNS}, cccccccccccc` }] },
  });
  expect(await anApi({ file: null }).rollback(body, "kari")).toMatchObject(refused(409, "cannot be read"));
  const { rollback, rows } = anApi({ candidate: { fingerprint: "dddddddddddd" } });
  expect(await rollback(body, "kari")).toMatchObject({ ok: true, value: { kind: "rollback" } });
  expect(rows[0]?.message).toBe(
    `kari goes back to the configuration dddddddddddd in place of ${RUNS}: second panel`,
  );
  expect(await anApi({}, { isReady: false }).rollback(body, "kari")).toMatchObject(refused(503, "starting"));
  const busy = anApi({ last: lastChange({ result: "underWay" }) });
  expect(await busy.rollback(body, "kari")).toMatchObject(refused(409, "under way"));
});

test("a trial, and a limited charger that would leave, need force", async () => {
  const state = aPicture();
  state.commands.record({ ...commandRecord("bay-02", 2), sentAt: NOON });
  const charger = state.chargers.get(chargerId("bay-01"));
  if (charger === undefined) throw new Error("no bay-01");
  state.lock(charger.id, new CommissioningLock(state.verdictOn(charger, NOON), null));
  const { apply, get, begun } = anApi({ leaving: ["bay-02", "bay-09"] }, { state });
  expect(await get()).toMatchObject({
    interrupts: [
      { kind: "trial", subject: "bay-01", sentence: "the trial of bay-01 would be cut" },
      {
        kind: "leaving",
        subject: "bay-02",
        sentence: "bay-02 would leave the configuration while it is limited",
      },
    ],
    limited: 1,
    paths: ["site.fuse"],
  });
  expect(await apply(WHY, "kari")).toMatchObject({
    problem: { status: 409, errors: [{ found: "bay-01" }, { found: "bay-02" }] },
  });
  expect(begun).toEqual([]);
  expect(await apply({ ...WHY, force: true }, "kari")).toMatchObject({ ok: true });
});

test("a body with mistakes is refused with each of them", async () => {
  const { apply, rollback } = anApi();
  expect(await apply([], "kari")).toMatchObject({ problem: { errors: [{ path: "" }] } });
  expect(await apply({ force: 1, colour: "red", fingerprint: "x" }, "kari")).toMatchObject({
    problem: {
      status: 400,
      errors: [{ path: "colour" }, { path: "reason" }, { path: "fingerprint" }, { path: "force" }],
    },
  });
  expect(await rollback(WHY, "kari")).toMatchObject({
    problem: { status: 400, errors: [{ path: "fingerprint", found: null }] },
  });
});

test("a site without a file of its own refuses, with the way to do it", async () => {
  const api = configurationApi({
    configurations: undefined,
    state: aPicture(),
    onStop: "keep",
    record: async () => ({ ok: true }),
    now: () => NOON,
    isReady: () => true,
  });
  expect(await api.get()).toMatchObject({ file: null, running: null });
  const answer = { problem: { status: 409, detail: expect.stringContaining("setpointd site put FILE") } };
  expect(await api.apply(WHY, "kari")).toMatchObject(answer);
  expect(await api.rollback({ ...WHY, fingerprint: FILE }, "kari")).toMatchObject(answer);
  expect(configurationStatus(undefined, { wallClock: iso })).toBeNull();
  expect(configurationFault(undefined)).toBeNull();
});

test.each<[Given, string, string]>([
  [{ file: RUNS }, "same", "as the file has it"],
  [{ file: null }, "unreadable", "the file cannot be read, so a restart would fail"],
  [{}, "differs", "the file differs: apply it, or a restart takes it"],
  [
    { running: { because: "rollback", by: "kari", beside: FILE } },
    "differs",
    `kari went back to it; the file differs, and a restart keeps ${RUNS} until the file changes or is applied`,
  ],
  [
    { running: { because: "rollback", beside: "cccccccccccc" } },
    "differs",
    "a person went back to it; the file has changed since: apply it, or a restart takes it",
  ],
  [
    { running: { because: "fallback", beside: FILE }, last: lastChange({ result: "fellBack" }) },
    "differs",
    `${FILE} did not start; the file differs, and a restart keeps ${RUNS}`,
  ],
  [{ running: { because: "fallback", beside: FILE } }, "differs", "the one of the file did not start"],
])("the status says what runs and what a restart takes: %j", (given, file, sentence) => {
  const { configurations } = someConfigurations(given);
  expect(configurationStatus(configurations, { wallClock: iso })).toMatchObject({
    fingerprint: RUNS,
    file,
    sentence: expect.stringContaining(sentence),
  });
});

const fault = (given: Given) => configurationFault(someConfigurations(given).configurations);

test("a file that did not start is a problem as long as it is there", () => {
  const last = lastChange({ result: "fellBack", failure: "the port is taken" });
  expect(fault({ last })).toEqual({
    since: NOON,
    message: `configuration ${FILE} did not start, so ${RUNS} runs again: the port is taken`,
  });
  expect(fault({ last, file: "cccccccccccc" })).toBeNull();
  expect(fault({ last: lastChange() })).toBeNull();
});
