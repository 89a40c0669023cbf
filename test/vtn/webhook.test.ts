import { connect } from "node:net";
import { expect, test, vi } from "vitest";
import { instant } from "../../src/domain/units.ts";
import type { IngestAnswer } from "../../src/domain/delivery.ts";
import { WebhookListener } from "../../src/vtn/webhook.ts";
import { aListener, SECRET, signature, signed, wireEvent } from "./aListener.ts";
import { aLog } from "./aServer.ts";
import { aDialect } from "../support/aDialect.ts";

const padded = (bytes: number) => `[${" ".repeat(bytes - 2)}]`;

test("a signed event is taken, and acknowledged with counts only after it was stored", async () => {
  await using it = await aListener();
  const stored = Promise.withResolvers<IngestAnswer>();
  it.flow.take = () => stored.promise;
  let answered = false;
  const answer = it.deliver(JSON.stringify(wireEvent("EV-1"))).finally(() => (answered = true));
  await vi.waitFor(() => expect(it.deliveries).toHaveLength(1));
  expect(answered).toBe(false);
  stored.resolve({ ok: true, ingested: { accepted: 1, repeats: 0, rejected: 0 } });
  expect(await answer).toMatchObject({ status: 202, body: '{"accepted":1,"repeats":0,"rejected":0}' });
  expect(it.deliveries[0]).toMatchObject({
    source: "webhook",
    complete: false,
    notices: [{ kind: "event" }],
  });
});

test("a delivery that comes before the daemon can ingest it waits for that, and is not lost", async () => {
  const up = Promise.withResolvers<void>();
  const waited = vi.spyOn(up.promise, "then");
  await using it = await aListener({ up: up.promise });
  const early = [wireEvent("EV-1"), { hello: "world" }].map((body) => it.deliver(JSON.stringify(body)));
  await vi.waitFor(() => expect(waited).toHaveBeenCalledTimes(early.length));
  expect([it.deliveries, it.hints]).toEqual([[], []]);
  up.resolve();
  expect((await Promise.all(early)).map(({ status }) => status)).toEqual([202, 202]);
  expect([it.deliveries.length, it.hints]).toEqual([1, ["list"]]);
});

test("a single bad event does not make the delivery a failure", async () => {
  await using it = await aListener();
  const bad = { ...wireEvent("EV-2"), intervalPeriod: { start: "x", duration: "y" } };
  expect(await it.deliver(JSON.stringify([wireEvent("EV-1"), bad]))).toMatchObject({
    status: 202,
    body: '{"accepted":1,"repeats":0,"rejected":1}',
  });
});

test("JSON without known members is accepted, and the list is fetched", async () => {
  await using it = await aListener();
  expect(await it.deliver('{"hello":"world"}')).toMatchObject({
    status: 202,
    body: '{"accepted":0,"repeats":0,"rejected":0}',
  });
  expect(it.hints).toEqual(["list"]);
  expect(it.deliveries).toEqual([]);
});

test("S7: a delivery that could not be stored is answered 503, so that the partner sends it again", async () => {
  await using it = await aListener();
  it.flow.take = async () => ({ ok: false, reason: "the disk is full" });
  const answer = await it.deliver(JSON.stringify(wireEvent("EV-1")));
  expect(answer).toEqual({ status: 503, retryAfter: "5", body: '{"error":"the disk is full"}' });
});

test("F69 F70: a missing, wrong or foreign signature gets one and the same 401, and nothing is taken", async () => {
  await using it = await aListener();
  const body = JSON.stringify(wireEvent("EV-1"));
  const answers = [
    await it.post(body),
    await it.post(body, { "x-payload-signature": "" }),
    await it.post(body, { "x-payload-signature": "AAAA" }),
    await it.post(`${body} `, { "x-payload-signature": signature(body) }),
    await it.post("not even JSON", { "x-payload-signature": "AAAA" }),
  ];
  for (const answer of answers)
    expect(answer).toMatchObject({ status: 401, body: '{"error":"unauthorized"}' });
  expect(it.deliveries).toEqual([]);
  expect(it.hints).toEqual([]);
});

test("F37 F63: signed bodies that are no JSON, or nested too deep, get a 400", async () => {
  await using it = await aListener();
  for (const body of ["{", "<xml/>", Buffer.from([0xff, 0xfe, 0x00]), "[".repeat(100) + "]".repeat(100)]) {
    expect(await it.deliver(body)).toMatchObject({ status: 400 });
  }
});

test("the signature covers the bytes as they came: a UTF-8 body with odd spacing passes", async () => {
  await using it = await aListener();
  const body = JSON.stringify(wireEvent("EV-Ærø 1"), null, 3).replace("evening", "\\u0065vening");
  const answer = await it.deliver(body, { "content-type": "application/vnd.partner+json; charset=utf-8" });
  expect(answer.status).toBe(202);
});

test("415 for what is not JSON in UTF-8, or is compressed", async () => {
  await using it = await aListener();
  for (const headers of [
    { "content-type": "text/plain" },
    { "content-type": "application/x-www-form-urlencoded" },
    { "content-type": "application/json; charset=utf-16" },
    { "content-encoding": "gzip" },
    { "content-type": "" },
  ]) {
    expect((await it.deliver("{}", headers)).status, JSON.stringify(headers)).toBe(415);
  }
  expect(await it.deliver("{}", { "content-encoding": "identity" })).toMatchObject({ status: 202 });
});

test("F62: up to 1 MiB is read, more is answered 413", async () => {
  await using it = await aListener();
  expect((await it.deliver(padded(1024 * 1024))).status).toBe(202);
  expect((await it.deliver(padded(1024 * 1024 + 1))).status).toBe(413);
});

test("the echo answers the registration handshake, and reflects only its challenge", async () => {
  await using it = await aListener();
  const echo = await fetch(`${it.url}?echo=Abc_-9`);
  expect(echo.status).toBe(200);
  expect(echo.headers.get("content-type")).toMatch(/^text\/plain/);
  expect(await echo.text()).toBe("Abc_-9");
  for (const query of ["?echo=%3Cscript%3E", `?echo=${"a".repeat(257)}`, "?echo=a&echo=b", "?echo="]) {
    expect((await fetch(it.url + query)).status, query).toBe(400);
  }
});

test("404 elsewhere and 405 for other methods, as small JSON", async () => {
  await using it = await aListener();
  const elsewhere = await fetch(new URL("/elsewhere", it.url), { method: "POST", body: "{}" });
  expect([elsewhere.status, await elsewhere.text()]).toEqual([404, '{"error":"not found"}']);
  const put = await fetch(`${it.url}?x=1`, { method: "PUT", body: "{}" });
  expect([put.status, put.headers.get("allow")]).toEqual([405, "GET, POST"]);
  expect(await put.text()).toBe('{"error":"method not allowed"}');
  expect((await fetch(new URL("/%zz", it.url))).status).toBe(404);
});

test("F60: a flood of unsigned requests gets 429, and the partner behind the same address still gets in", async () => {
  await using it = await aListener();
  const answers = [];
  for (let count = 0; count < 100; count += 1) answers.push(await it.post("{}"));
  const refused = answers.filter(({ status }) => status === 429);
  expect(answers.filter(({ status }) => status === 401)).toHaveLength(60);
  expect(refused).toHaveLength(40);
  expect(refused[0]).toMatchObject({ retryAfter: "5", body: '{"error":"too many requests"}' });
  expect((await it.deliver(JSON.stringify(wireEvent("EV-1")))).status).toBe(202);
  // F12: the flood does not fill the log.
  expect(it.lines.length).toBeLessThan(10);
});

test("a signed event for each vehicle of a large depot is a normal burst", async () => {
  await using it = await aListener();
  const bodies = Array.from({ length: 2000 }, (_, index) => JSON.stringify(wireEvent(`EV-${index}`)));
  for (let from = 0; from < bodies.length; from += 100) {
    const answers = await Promise.all(bodies.slice(from, from + 100).map((body) => it.deliver(body)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
  }
  expect(it.deliveries).toHaveLength(2000);
});

test("without a scheme a delivery is a hint: its body is never acted on", async () => {
  await using it = await aListener({ scheme: { kind: "none" } });
  expect(await it.post(JSON.stringify(wireEvent("EV-1")))).toMatchObject({
    status: 202,
    body: '{"accepted":0,"repeats":0,"rejected":0,"hint":true}',
  });
  expect(it.hints).toEqual(["list"]);
  expect(it.deliveries).toEqual([]);
});

test("a hint is not even parsed; one that is too large is refused after 16 KiB, and asks for the list as well", async () => {
  await using it = await aListener({ scheme: { kind: "none" } });
  expect(await it.post("{".repeat(16 * 1024))).toMatchObject({ status: 202 });
  expect(await it.post("{".repeat(16 * 1024 + 1))).toMatchObject({ status: 413 });
  expect(it.hints).toEqual(["list", "list"]);
});

test("without an echo a GET is answered with one line about the webhook, and nothing more", async () => {
  await using it = await aListener();
  const answer = await fetch(it.url);
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "text/plain"]);
  expect(await answer.text()).toMatch(/^This is the webhook of setpointd\..*POST/);
});

test("a flood of echoes gets 429, and then loses its connections", async () => {
  await using it = await aListener();
  const echoes = [];
  for (let count = 0; count < 130; count += 1)
    echoes.push(
      await fetch(`${it.url}?echo=a`).then(
        ({ status }) => status,
        () => "closed",
      ),
    );
  expect(Object.entries(Object.groupBy(echoes, String)).map(([what, all]) => [what, all?.length])).toEqual([
    ["200", 60],
    ["429", 60],
    ["closed", 10],
  ]);
});

test("why a delivery got a 401 is counted, logged and shown here; its sender reads the same as ever", async () => {
  await using it = await aListener();
  const body = JSON.stringify(wireEvent("EV-1"));
  const hex = Buffer.from(signature(body), "base64").toString("hex");
  const answers = [
    await it.post(body),
    await it.post(body, { "x-payload-signature": hex }),
    await it.post(`${body} `, { "x-payload-signature": signature(body) }),
    await it.post(body, { "x-payload-signature": "AAAA" }),
  ];
  expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
  expect(it.refusals).toEqual(["headerMissing", "hexInsteadOfBase64", "signatureDiffers", "malformed"]);
  expect(it.refused()).toMatchObject({
    headerMissing: {
      count: 1,
      lastAt: "2026-11-21T12:00:00.000Z",
      lastFrom: "127.0.0.1",
      explanation: "the header X-Payload-Signature is missing",
    },
    hexInsteadOfBase64: {
      explanation: "the header X-Payload-Signature holds hex, but webhook.auth.hmac.encoding is base64",
    },
  });
  const logged = it.lines.join("");
  expect(logged).toContain("the header X-Payload-Signature is missing");
  expect(it.refusedDeliveries()).toMatchObject({ count: 4 });
  await it.deliver(body);
  expect(it.refusedDeliveries()).toBeNull();
  for (const sent of [hex, signature(body)])
    expect(logged + JSON.stringify(it.refused())).not.toContain(sent);
});

test("F62: a body that ends early or lies about its length is no delivery", async () => {
  await using it = await aListener();
  const socket = connect(it.port, "127.0.0.1");
  socket.write(
    `POST /webhooks/events HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nx-payload-signature: ${signature("{}")}\r\ncontent-length: 20\r\n\r\n{}`,
  );
  socket.end();
  await new Promise((resolve) => socket.on("close", resolve).resume());
  expect((await it.deliver("[]")).status).toBe(202);
  expect(it.deliveries).toEqual([]);
});

test("F61: a connection that sends no complete head is closed within seconds", async () => {
  await using it = await aListener();
  const began = performance.now();
  const idle = connect(it.port, "127.0.0.1").resume();
  const slow = connect(it.port, "127.0.0.1").resume();
  slow.write("POST /webhooks/events HTTP/1.1\r\nhost: x\r\n");
  await Promise.all([idle, slow].map((socket) => new Promise((resolve) => socket.on("close", resolve))));
  expect(performance.now() - began).toBeLessThan(9000);
}, 15_000);

test("a bug behind the listener is a 500 and a log line, not a crash", async () => {
  await using it = await aListener();
  it.flow.take = () => Promise.reject(new Error("bug"));
  expect(await it.deliver(JSON.stringify(wireEvent("EV-1")))).toMatchObject({
    status: 500,
    body: '{"error":"internal error"}',
  });
  expect(it.lines.join("")).toContain("a webhook request failed");
});

test("neither secrets, signatures nor bodies are ever logged", async () => {
  await using it = await aListener();
  const body = JSON.stringify(wireEvent("EV-private"));
  const signatureOfBody = signature(body);
  await it.deliver(body);
  await it.post(body, { "x-payload-signature": `x${signatureOfBody}`, authorization: "Bearer abc" });
  await it.deliver("{ EV-private");
  await it.post(body, { "content-type": "text/plain" });
  it.flow.take = () => Promise.reject(new Error("bug"));
  await it.deliver(body);
  expect(it.lines.length).toBeGreaterThan(3);
  const logged = it.lines.join("");
  for (const secret of [SECRET, signatureOfBody, "abc", "EV-private"]) expect(logged).not.toContain(secret);
});

test("F72: a port that is in use is an error at the start of the listener", async () => {
  await using it = await aListener();
  const { log } = aLog();
  const again = WebhookListener.start({
    host: "127.0.0.1",
    port: it.port,
    path: "/",
    tls: null,
    trustProxy: false,
    up: Promise.resolve(),
    dialect: aDialect(),
    scheme: signed,
    now: () => instant(0),
    monotonic: () => 0,
    log,
    ingest: async () => ({ ok: false, reason: "never" }),
    hint: () => {},
    onRefused: () => {},
  });
  await expect(again).rejects.toThrow("EADDRINUSE");
});
