import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { instant, millis } from "../../src/domain/units.ts";
import { agentFor, exchange } from "../../src/vtn/http.ts";
import { Authority } from "../support/certificates.ts";
import { aServer, drip, json } from "./aServer.ts";

const get = (origin: string, path = "/") => ({
  origin,
  path,
  method: "GET" as const,
  headers: {},
  body: null,
  expected: null,
});

test("the moments of asking and of the answer come along", async () => {
  await using server = await aServer(json([]));
  const agent = agentFor(1000, millis(1000));
  let clock = 0;
  const answer = await exchange(agent, get(server.origin), millis(1000), () => instant((clock += 1)));
  expect(answer).toMatchObject({ kind: "answered", status: 200, askedAt: 1, at: 2 });
  await agent.destroy();
});

test("F31: a body that drips without end is cut at the deadline, and the socket is closed", async () => {
  const closed = Promise.withResolvers<void>();
  await using server = await aServer((response, seen) => {
    response.on("close", closed.resolve);
    drip(response, seen);
  });
  const agent = agentFor(1_000_000, millis(300));
  const began = performance.now();
  const answer = await exchange(agent, get(server.origin), millis(300), () => instant(0));
  expect(answer).toEqual({ kind: "silent", reason: "no complete answer within 300 ms" });
  expect(performance.now() - began).toBeLessThan(5000);
  await closed.promise;
  await agent.destroy();
});

test("F30: no listener, an answer cut short and an oversized one are values, not exceptions", async () => {
  await using server = await aServer((response, seen) => {
    if (seen.url === "/huge") return response.end("x".repeat(5000));
    response.writeHead(200, { "content-length": "500" });
    response.write("[");
    return setImmediate(() => response.destroy());
  });
  const agent = agentFor(1000, millis(1000));
  const ask = (origin: string, path: string) =>
    exchange(agent, get(origin, path), millis(1000), () => instant(0));
  expect(await ask(server.origin, "/huge")).toEqual({
    kind: "silent",
    reason: "the answer is larger than setpointd reads",
  });
  expect(await ask(server.origin, "/cut")).toEqual({
    kind: "silent",
    reason: "the connection was closed before the whole answer arrived",
  });
  expect(await ask("http://127.0.0.1:1", "/")).toMatchObject({
    reason: "connect ECONNREFUSED 127.0.0.1:1",
  });
  await agent.destroy();
});

test("a certificate of an unknown authority is refused, whatever the value of NODE_TLS_REJECT_UNAUTHORIZED", async () => {
  using authority = new Authority();
  const { cert, key } = authority.issue("partner");
  const server = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (_request, response) => {
    response.end("[]");
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
  onTestFinished(() => {
    delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
    server.close();
  });
  const agent = agentFor(1000, millis(1000));
  const origin = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const answer = await exchange(agent, get(origin), millis(1000), () => instant(0));
  expect(answer).toMatchObject({
    kind: "silent",
    reason: expect.stringMatching(/certificate|SELF_SIGNED|VERIFY/i),
  });
  await agent.destroy();
});
