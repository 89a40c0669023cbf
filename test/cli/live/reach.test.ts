import { readFileSync } from "node:fs";
import { createServer, type AddressInfo, type Server } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { expect, onTestFinished, test } from "vitest";

import { endpointOf, tryReach } from "../../../src/cli/live/reach.ts";
import { type Finding, Trials } from "../../../src/cli/live/trials.ts";
import { freePort } from "../../support/freePort.ts";
import { Authority } from "../../support/certificates.ts";

async function reach(url: string, tls = {}): Promise<Finding | undefined> {
  const all: Finding[] = [];
  await tryReach({ key: "mqtt.url", url, tls }, new Trials((finding) => all.push(finding)));
  expect(all).toHaveLength(1);
  return all[0];
}

async function listening(server: Server): Promise<number> {
  server.on("connection", (socket) => socket.on("error", () => undefined));
  await new Promise<void>((up) => server.listen(0, "127.0.0.1", up));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

test("the port of a URL follows its scheme", () => {
  expect(endpointOf("https://id.example/token")).toEqual({ host: "id.example", port: 443, isTls: true });
  expect(endpointOf("mqtts://[::1]")).toEqual({ host: "::1", port: 8883, isTls: true });
  expect(endpointOf("mqtt://broker:1884")).toEqual({ host: "broker", port: 1884, isTls: false });
});

test("an open port is reached, a closed one is named with its remedy", async () => {
  const port = await listening(createServer((socket) => socket.end()));
  expect(await reach(`mqtt://127.0.0.1:${port}`)).toMatchObject({
    result: "ok",
    found: expect.stringMatching(/answers in \d+ ms, without TLS$/),
  });
  expect(await reach(`mqtt://127.0.0.1:${await freePort()}`)).toMatchObject({
    result: "wrong",
    name: "mqtt.url port",
    found: expect.stringContaining("refuses the connection"),
    remedy: expect.stringContaining("check the port in mqtt.url"),
  });
});

test("a name without an address is the first thing that fails", async () => {
  expect(await reach("mqtt://broker.invalid")).toMatchObject({
    result: "wrong",
    name: "mqtt.url name",
    found: expect.stringContaining("broker.invalid has no address"),
  });
});

test("a certificate is trusted by its authority alone, and its end is shown", async () => {
  using authority = new Authority();
  const { cert, key } = authority.issue("broker");
  const pair = { cert: readFileSync(cert), key: readFileSync(key) };
  const port = await listening(createTlsServer(pair, (socket) => socket.end()));
  const untrusted = await reach(`mqtts://localhost:${port}`);
  expect(untrusted).toMatchObject({ result: "wrong", name: "mqtt.url TLS" });
  expect(untrusted?.found).toMatch(/is not trusted: .*, its certificate ends on /);
  expect(await reach(`mqtts://localhost:${port}`, { ca: authority.caText })).toMatchObject({
    result: "ok",
    found: expect.stringMatching(/TLSv1.3, its certificate ends on .* GMT$/),
  });
});

test("a port without TLS is not taken for one with a bad certificate", async () => {
  const port = await listening(createServer((socket) => socket.end("no TLS here\n")));
  expect(await reach(`mqtts://127.0.0.1:${port}`)).toMatchObject({
    result: "wrong",
    found: expect.stringContaining("answers, but TLS fails"),
  });
});
