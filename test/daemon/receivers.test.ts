import { createHmac } from "node:crypto";
import { onTestFinished, expect, test } from "vitest";

import { Notifier, type Receiver } from "../../src/alarms/notifier.ts";
import { AlarmRegistry } from "../../src/alarms/registry.ts";
import type { AlarmFact } from "../../src/domain/alarm.ts";
import { after, instant, millis, minutes } from "../../src/domain/units.ts";
import { receiversOverHttp } from "../../src/daemon/receivers.ts";
import { alertmanagerAvailable, anAlertmanager } from "../support/alertmanager.ts";
import { configured } from "../support/aConfiguration.ts";
import { waitFor } from "../support/waitFor.ts";
import { aServer, json } from "../vtn/aServer.ts";

const SECRET = "alerts of the test, signed as the partner signs";
const BROKER: AlarmFact = {
  kind: "broker",
  subject: null,
  severity: "critical",
  since: null,
  message: "the broker cannot be reached",
  action: "check that the broker runs",
};
const now = () => instant(Date.now());

/** The only receiver of a configuration. */
function receiverOf(entry: object, env: Readonly<Record<string, string>> = {}): Receiver {
  const { site, receivers } = configured({ alarms: { notify: [entry] } }, env);
  const over = receiversOverHttp(site.id, receivers, now);
  onTestFinished(() => over[Symbol.asyncDispose]());
  const [receiver] = over.all;
  if (receiver === undefined) throw new Error("no receiver");
  return receiver;
}

test("a webhook gets JSON with its header fields, signed with HMAC-SHA256 of the raw body", async () => {
  await using server = await aServer(json({}));
  const receiver = receiverOf(
    {
      webhook: {
        url: `${server.origin}/hooks/alarms?site=north`,
        headers: { "X-Depot": "north", Authorization: { env: "TOKEN" } },
        secret: { env: "ALERTS" },
      },
    },
    { ALERTS: SECRET, TOKEN: "Bearer 0123456789abcdef" },
  );
  const body = JSON.stringify({ note: "på vei" });
  expect(await receiver.post(body)).toEqual({ ok: true });
  expect(server.seen).toMatchObject([
    {
      method: "POST",
      url: "/hooks/alarms?site=north",
      body,
      headers: {
        "content-type": "application/json",
        "x-depot": "north",
        authorization: "Bearer 0123456789abcdef",
        "x-payload-signature": createHmac("sha256", SECRET).update(body).digest("base64"),
      },
    },
  ]);
});

test("without a secret nothing is signed", async () => {
  await using server = await aServer(json({}));
  await receiverOf({ webhook: { url: server.origin } }).post("{}");
  expect(server.seen[0]?.headers).not.toHaveProperty("x-payload-signature");
});

test("an answer other than 2xx is a failure with its first line, and 400, 413 and 422 are refusals", async () => {
  await using server = await aServer(json("no such hook\nat all", 404));
  const receiver = receiverOf({ webhook: { url: server.origin } });
  expect(await receiver.post("{}")).toEqual({
    ok: false,
    reason: "HTTP 404: no such hook",
    isRefused: false,
    retryAfter: null,
  });
  for (const status of [400, 413, 422]) {
    server.answer = json("", status);
    expect(await receiver.post("{}")).toMatchObject({ isRefused: true, reason: `HTTP ${status}` });
  }
  server.answer = json("", 503, { "retry-after": "120" });
  expect(await receiver.post("{}")).toMatchObject({ isRefused: false, retryAfter: minutes(2) });
});

test("a receiver that does not run is a failure with its reason", async () => {
  const server = await aServer(json({}));
  await server[Symbol.asyncDispose]();
  const receiver = receiverOf({ alertmanager: { url: server.origin } });
  expect(await receiver.post("[]")).toMatchObject({
    ok: false,
    isRefused: false,
    reason: expect.stringContaining("ECONNREFUSED"),
  });
});

test.skipIf(!alertmanagerAvailable)(
  "a real Alertmanager shows an alarm while it lasts, extends it when it is sent again, and resolves it when it clears",
  async () => {
    await using server = await aServer(json({}));
    await using alertmanager = await anAlertmanager(server.origin);
    const receiver = receiverOf({ alertmanager: { url: `${alertmanager.url}/` } });
    const registry = new AlarmRegistry([], now(), [receiver.name]);
    let ahead = 0;
    const outcomes: string[] = [];
    const notifier = new Notifier(receiver, registry, {
      now: () => after(now(), millis(ahead)),
      monotonic: () => millis(performance.now()),
      random: () => 0,
      write: () => {},
      counted: (_, outcome) => outcomes.push(outcome),
      log: { info: () => {}, warn: (message) => outcomes.push(message) },
    });
    const observe = async (...facts: readonly AlarmFact[]) => {
      registry.observe(facts, now());
      await notifier.send();
    };
    await observe(BROKER, { ...BROKER, kind: "offline", subject: "Ladestasjon 7/æ", severity: "warning" });
    expect(outcomes).toEqual(["sent"]);
    await waitFor(async () => (await alertmanager.alerts()).length === 2, { timeoutMs: 10_000 });
    const first = (await alertmanager.alerts()).find(({ labels }) => labels["kind"] === "broker");
    expect(first).toMatchObject({
      labels: { alertname: "SetpointdAlarm", site: "depot", severity: "critical" },
      annotations: { summary: BROKER.message, action: BROKER.action },
      startsAt: new Date(registry.get("broker")?.since ?? 0).toISOString(),
    });
    ahead = minutes(2);
    await notifier.send();
    const endsAt = async () =>
      (await alertmanager.alerts()).find(({ labels }) => labels["kind"] === "broker")?.endsAt ?? "";
    await waitFor(async () => Date.parse(await endsAt()) > Date.parse(first?.endsAt ?? ""), {
      timeoutMs: 10_000,
    });
    ahead = 0;
    await observe({ ...BROKER, severity: "warning" });
    await waitFor(
      async () =>
        (await alertmanager.alerts()).filter(({ labels }) => labels["severity"] === "critical").length === 0,
      { timeoutMs: 10_000 },
    );
    await observe();
    await waitFor(async () => (await alertmanager.alerts()).length === 0, { timeoutMs: 10_000 });
    const resolved = () => server.seen.filter(({ body }) => JSON.parse(body).status === "resolved");
    await waitFor(() => resolved().length > 0, { timeoutMs: 10_000 });
    expect(outcomes.every((outcome) => outcome === "sent")).toBe(true);
  },
  60_000,
);
