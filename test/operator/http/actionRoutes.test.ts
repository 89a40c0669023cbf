import { afterEach, beforeEach, expect, test } from "vitest";

import { OperatorListener } from "../../../src/operator/http/server.ts";
import { someListener, someViews } from "../../support/aListener.ts";
import { someAnswers } from "../../support/someAnswers.ts";

let listener: OperatorListener;
beforeEach(async () => {
  listener = await OperatorListener.start(someListener(), Promise.resolve(someViews));
});
afterEach(() => listener[Symbol.asyncDispose]());

const api = (path: string, init: RequestInit = {}): Promise<Response> =>
  fetch(`http://127.0.0.1:${listener.port}/api/v1/${path}`, init);

const send = (body: object): Promise<Response> =>
  api("chargers/bay-01/resend", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

test("the proof of an event is a file of its name, as JSON or CSV", async () => {
  const asJson = await api("events/EV%207731%2Fa/proof");
  expect([
    asJson.status,
    asJson.headers.get("content-type"),
    asJson.headers.get("content-disposition"),
  ]).toEqual([200, "application/json; charset=utf-8", 'attachment; filename="proof-EV_7731_a.json"']);
  expect(await asJson.json()).toEqual([someAnswers.proofFact]);
  const asCsv = await api("events/EV-1/proof?format=csv");
  expect([asCsv.headers.get("content-type"), await asCsv.text()]).toEqual([
    "text/csv; charset=utf-8",
    "section,what\n",
  ]);
});

test("a proof is passed on while it is made: that of a fleet would fill the memory", async () => {
  const { promise: read, resolve } = Promise.withResolvers<void>();
  async function* pieces(): AsyncGenerator<string> {
    yield "first\n";
    await read;
    yield "second\n";
  }
  const views = { ...someViews, proof: async () => ({ ok: true, pieces: pieces() }) as const };
  await using asked = await OperatorListener.start(someListener(), Promise.resolve(views));
  const answer = await fetch(`http://127.0.0.1:${asked.port}/api/v1/events/EV-1/proof?format=csv`);
  const received: string[] = [];
  for await (const piece of answer.body ?? []) {
    received.push(Buffer.from(piece).toString());
    resolve();
  }
  expect(received).toEqual(["first\n", "second\n"]);
});

test("without a proof the reason is answered as a problem", async () => {
  const refused = await api("events/EV-9/proof");
  expect([refused.status, refused.headers.get("content-disposition")]).toEqual([404, null]);
  expect(await refused.json()).toMatchObject({ detail: "nothing is known of an event EV-9" });
  expect((await api("events/EV-1/proof?format=xml")).status).toBe(400);
});

test("a charger is sent its setpoint again for a reason, by name", async () => {
  expect(await (await send({ reason: "it does not follow" })).json()).toMatchObject({
    charger: "bay-01",
    sentence: "sent again by loopback",
  });
  expect((await send({})).status).toBe(400);
});

test("a charger is tried for a reason, by name, and a repeated request is known by its key", async () => {
  const start = (body: object, headers: Readonly<Record<string, string>> = {}): Promise<Response> =>
    api("chargers/bay-01/trial", {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
  const started = await start({ reason: "new cable" }, { "idempotency-key": "key-1" });
  expect(started.status).toBe(202);
  expect(await started.json()).toMatchObject({
    charger: "bay-01",
    hindrance: "key-1",
    run: { by: "loopback", reason: "new cable", silence: false },
  });
  expect(await (await start({ reason: "new cable", silence: true })).json()).toMatchObject({
    run: { silence: true },
  });
  expect((await start({})).status).toBe(400);
  expect((await start({ reason: "x", force: true })).status).toBe(400);
  expect((await start({ reason: "x" }, { "idempotency-key": "a key" })).status).toBe(400);
  expect((await start({ reason: "x" }, { origin: "https://evil.example" })).status).toBe(403);
  expect(await (await api("chargers/bay-01/trial")).json()).toEqual(someAnswers.trial);
  const stopped = await api("chargers/bay-01/trial", { method: "DELETE" });
  expect(await stopped.json()).toMatchObject({ hindrance: "stopped by loopback" });
});

const observeUntil = (until: unknown): Promise<Response> =>
  api("mode", {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ mode: "observe", reason: "work", until }),
  });

test("a wrong end of observe is answered with what is right", async () => {
  for (const until of ["tomorrow", { at: "tomorrow" }, 5]) {
    const refused = await observeUntil(until);
    expect([refused.status, ((await refused.json()) as { detail: string }).detail]).toEqual([
      400,
      expect.stringContaining("expected a moment, e.g. 2026-11-21T06:00:00Z"),
    ]);
  }
});

test("a request that needs no body may name the type of one, and a body that is no JSON is refused", async () => {
  const headers = { "content-type": "application/json" };
  expect((await api("chargers/bay-01/trial", { method: "DELETE", headers })).status).toBe(200);
  expect((await api("alarms/broker/acknowledge", { method: "POST", headers })).status).toBe(200);
  expect((await api("alarms/broker/acknowledge", { method: "POST", headers, body: "{" })).status).toBe(400);
  const polluted = '{"note":"x","__proto__":{"a":1}}';
  expect((await api("alarms/broker/acknowledge", { method: "POST", headers, body: polluted })).status).toBe(
    400,
  );
});
