import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { Calls, FLOOD_PAUSE, Incoming } from "../../src/ocpp/calls.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function aCallSide() {
  const sent: string[] = [];
  const unanswered: string[] = [];
  let id = 0;
  const calls = new Calls({
    send: (text) => sent.push(text),
    nextId: () => `c-${(id += 1)}`,
    deadline: 30_000,
    onUnanswered: (action) => unanswered.push(action),
  });
  return { calls, sent, unanswered };
}

const reset = { action: "Reset", payload: {}, read: (payload: object) => payload };

test("a single request is in flight at a time, in the order in which they were made", async () => {
  const { calls, sent } = aCallSide();
  const first = calls.ask(reset);
  const second = calls.ask(reset);
  expect(sent).toEqual(['[2,"c-1","Reset",{}]']);
  expect(calls.handle({ kind: "result", id: "c-2", payload: {} })).toBeNull();
  expect(calls.handle({ kind: "result", id: "c-1", payload: { status: "Accepted" } })).toBe("own");
  expect(sent).toHaveLength(2);
  calls.handle({ kind: "error", id: "c-2", code: "NotImplemented", description: "" });
  expect(await first).toEqual({ kind: "answered", value: { status: "Accepted" } });
  expect(await second).toEqual({ kind: "unsupported", reason: "the charger does not support Reset" });
});

test("an unanswered request is an error after its deadline, and the next one is sent", async () => {
  const { calls, sent, unanswered } = aCallSide();
  const first = calls.ask(reset);
  const second = calls.ask(reset);
  vi.advanceTimersByTime(30_000);
  expect(await first).toEqual({
    kind: "unanswered",
    reason: "the charger did not answer Reset within 30 s",
  });
  expect(unanswered).toEqual(["Reset"]);
  expect(sent).toHaveLength(2);
  expect(calls.handle({ kind: "result", id: "c-1", payload: {} })).toBeNull();
  calls.handle({ kind: "error", id: "c-2", code: "InternalError", description: "full" });
  expect(await second).toEqual({
    kind: "refused",
    reason: "the charger answered Reset with InternalError (full)",
  });
});

test("a setpoint goes before all requests that wait, and after an earlier setpoint", async () => {
  const { calls, sent } = aCallSide();
  const setpoint = (action: string) => ({ ...reset, action, isUrgent: true });
  void calls.ask(reset);
  void calls.ask({ ...reset, action: "TriggerMessage" });
  calls.pass({ id: "x", text: '[2,"x","Reset",{}]', onTimeout: () => undefined });
  void calls.ask(setpoint("SetChargingProfile"));
  void calls.ask(setpoint("ClearChargingProfile"));
  for (const id of ["c-1", "c-3", "c-4", "c-2", "x"]) calls.handle({ kind: "result", id, payload: {} });
  expect(sent.map((text) => JSON.parse(text)[1])).toEqual(["c-1", "c-3", "c-4", "c-2", "x"]);
});

test("a question without an answer gives way to a setpoint after 2 s, and its late answer counts", async () => {
  const { calls, sent, unanswered } = aCallSide();
  const ids = () => sent.map((text) => String((JSON.parse(text) as unknown[])[1]));
  const setpoint = { ...reset, action: "SetChargingProfile", isUrgent: true };
  const asked = calls.ask({ ...reset, action: "GetConfiguration" });
  void calls.ask(reset);
  const first = calls.ask(setpoint);
  vi.advanceTimersByTime(1_999);
  expect(ids()).toEqual(["c-1"]);
  vi.advanceTimersByTime(1);
  expect(ids()).toEqual(["c-1", "c-3"]);
  // A setpoint waits for the one before it, and no other question is sent beside the open one.
  const second = calls.ask(setpoint);
  vi.advanceTimersByTime(5_000);
  calls.handle({ kind: "result", id: "c-3", payload: {} });
  expect(await first).toMatchObject({ kind: "answered" });
  calls.handle({ kind: "result", id: "c-4", payload: {} });
  expect(await second).toMatchObject({ kind: "answered" });
  expect(ids()).toEqual(["c-1", "c-3", "c-4"]);
  expect(calls.handle({ kind: "result", id: "c-1", payload: { late: true } })).toBe("own");
  expect(await asked).toEqual({ kind: "answered", value: { late: true } });
  expect(ids()).toEqual(["c-1", "c-3", "c-4", "c-2"]);
  expect(unanswered).toEqual([]);
});

test("a question that gave way has its own deadline, and ends with the connection", async () => {
  const { calls, sent, unanswered } = aCallSide();
  const asked = calls.ask(reset);
  vi.advanceTimersByTime(20_000);
  void calls.ask({ ...reset, action: "SetChargingProfile", isUrgent: true });
  const next = calls.ask({ ...reset, action: "TriggerMessage" });
  expect(sent).toHaveLength(2);
  vi.advanceTimersByTime(10_000);
  expect(await asked).toMatchObject({ kind: "unanswered" });
  expect(unanswered).toEqual(["Reset"]);
  calls.handle({ kind: "result", id: "c-2", payload: {} });
  expect(sent).toHaveLength(3);
  vi.advanceTimersByTime(2_000);
  void calls.ask({ ...reset, action: "SetChargingProfile", isUrgent: true });
  expect(sent).toHaveLength(4);
  calls.close();
  expect(await next).toMatchObject({ kind: "closed" });
  vi.advanceTimersByTime(60_000);
  expect(sent).toHaveLength(4);
});

test("requests of another party pass unchanged between ours", async () => {
  const { calls, sent } = aCallSide();
  const expired: string[] = [];
  void calls.ask(reset);
  expect(calls.pass({ id: "x", text: "[2,...]", onTimeout: () => expired.push("x") })).toBe(true);
  calls.handle({ kind: "result", id: "c-1", payload: {} });
  expect(sent.at(-1)).toBe("[2,...]");
  expect(calls.handle({ kind: "result", id: "x", payload: {} })).toBe("passing");
  calls.pass({ id: "y", text: "[2,..]", onTimeout: () => expired.push("y") });
  vi.advanceTimersByTime(30_000);
  expect(expired).toEqual(["y"]);
});

test("the end of the connection settles every request, and there is room for 200", async () => {
  const { calls } = aCallSide();
  const all = Array.from({ length: 202 }, () => calls.ask(reset));
  expect(await all.at(-1)).toEqual({ kind: "closed", reason: "the station is not connected" });
  calls.close();
  expect(await all[0]).toEqual({ kind: "closed", reason: "the station disconnected" });
  expect(await calls.ask(reset)).toMatchObject({ kind: "closed" });
});

test("calls beyond the pace wait, the oldest are dropped, and answers wait for nothing", async () => {
  let left = 2;
  let floods = 0;
  const passed: string[] = [];
  const incoming = new Incoming({
    mayPass: () => (left -= 1) >= 0,
    pass: (text) => passed.push(text),
    onTooMany: () => (floods += 1),
  });
  for (let n = 0; n < 30; n += 1) incoming.receive(`[2,"${n}"]`);
  incoming.receive(' [3, "a"]');
  incoming.receive('[4,"b"]');
  expect(passed).toEqual(['[2,"0"]', '[2,"1"]', ' [3, "a"]', '[4,"b"]']);
  await vi.advanceTimersByTimeAsync(FLOOD_PAUSE);
  expect(passed.slice(4)).toEqual(Array.from({ length: 20 }, (_, n) => `[2,"${n + 10}"]`));
  expect(floods).toBe(1);
  incoming.receive('[2,"late"]');
  incoming[Symbol.dispose]();
  await vi.advanceTimersByTimeAsync(FLOOD_PAUSE);
  expect(passed).toHaveLength(24);
});

test.each([
  ["StartTransaction", {}],
  ["StopTransaction", {}],
  ["TransactionEvent", { eventType: "Started" }],
  ["TransactionEvent", { eventType: "Ended" }],
])("a flood drops no begin or end of a session: %s %j", async (action, payload) => {
  const passed: string[] = [];
  using incoming = new Incoming({
    mayPass: () => false,
    pass: (text) => passed.push(text),
    onTooMany: () => undefined,
  });
  const kept = JSON.stringify([2, "session", action, payload], null, 1);
  incoming.receive(kept);
  for (let n = 0; n < 30; n += 1)
    incoming.receive(JSON.stringify([2, `${n}`, "TransactionEvent", { eventType: "Updated" }]));
  await vi.advanceTimersByTimeAsync(FLOOD_PAUSE);
  expect(passed).toHaveLength(20);
  expect(passed[0]).toBe(kept);
});

test("a flood of sessions takes no more memory than any other", async () => {
  const passed: string[] = [];
  using incoming = new Incoming({
    mayPass: () => false,
    pass: (text) => passed.push(text),
    onTooMany: () => undefined,
  });
  for (let n = 0; n < 30; n += 1) incoming.receive(`[2,"${n}","StopTransaction",{}]`);
  await vi.advanceTimersByTimeAsync(FLOOD_PAUSE);
  expect(passed).toHaveLength(20);
});
