import { once } from "node:events";
import { readFileSync } from "node:fs";
import { request } from "node:https";
import { type AddressInfo, connect as connectPlain } from "node:net";
import { connect, type ConnectionOptions } from "node:tls";
import { expect, onTestFinished, test } from "vitest";

import { webhookServer } from "../../src/vtn/webhookServer.ts";
import { Authority } from "../support/certificates.ts";
import { aListener, signature } from "./aListener.ts";

const pair = (authority: Authority, name: string) => {
  const { cert, key } = authority.issue(name);
  return { cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") };
};

/** The suite that was agreed on, or the code of what went wrong. */
const handshake = (port: number, options: ConnectionOptions): Promise<string> =>
  new Promise((done) => {
    const socket = connect({ port, host: "127.0.0.1", ...options }, () => {
      done(socket.getCipher().name);
      socket.destroy();
    });
    socket.on("error", (error) => done("code" in error ? String(error.code) : error.message));
  });

const deliver = (
  port: number,
  options: { readonly ca: string; readonly cert?: string; readonly key?: string },
) =>
  new Promise<number | string>((done) => {
    const headers = { "content-type": "application/json", "x-payload-signature": signature("[]") };
    request({
      ...options,
      port,
      host: "127.0.0.1",
      path: "/webhooks/events",
      method: "POST",
      headers,
      agent: false,
    })
      .on("response", (response) => done(response.resume().statusCode ?? 0))
      .on("error", () => done("refused"))
      .end("[]");
  });

test("TLS is 1.2 with authenticated encryption at least, also after a renewal", async () => {
  using authority = new Authority();
  const tls = { ...pair(authority, "gateway"), clientCa: null };
  await using it = await aListener({ tls });
  const ca = authority.caText;
  for (const renewed of [false, true]) {
    if (renewed) expect(it.renew(tls)).toBeNull();
    const old = { ca, maxVersion: "TLSv1.2" } as const;
    expect(await handshake(it.port, { ca })).toMatch(/^TLS_/);
    expect(await handshake(it.port, old)).toMatch(/GCM|POLY1305/);
    for (const cbc of ["AES128-SHA", "ECDHE-RSA-AES128-SHA256", "ECDHE-RSA-AES256-SHA", "AES128-GCM-SHA256"])
      expect(await handshake(it.port, { ...old, ciphers: cbc })).toContain("HANDSHAKE_FAILURE");
  }
});

test("a sender without its certificate is turned away where an authority of clients is named", async () => {
  using authority = new Authority();
  using partners = new Authority();
  const gateway = pair(authority, "gateway");
  await using it = await aListener({ tls: { ...gateway, clientCa: partners.caText } });
  const ca = authority.caText;
  expect(await deliver(it.port, { ca, ...pair(partners, "partner") })).toBe(202);
  expect(await deliver(it.port, { ca })).toBe("refused");
  expect(await deliver(it.port, { ca, ...pair(authority, "stranger") })).toBe("refused");
  // A renewed authority counts from the next connection on.
  using others = new Authority();
  const other = pair(others, "partner");
  expect(await deliver(it.port, { ca, ...other })).toBe("refused");
  expect(it.renew({ ...gateway, clientCa: others.caText })).toBeNull();
  expect(await deliver(it.port, { ca, ...other })).toBe(202);
});

test("a body that lies unread in the socket of a process that stood still is read, and answered", async () => {
  const server = webhookServer(
    null,
    (received, response) => void received.resume().once("end", () => response.writeHead(202).end()),
    200,
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const socket = connectPlain(port, "127.0.0.1");
  onTestFinished(() => {
    socket.destroy();
    server.close();
  });
  const begin = (): unknown =>
    socket.write("POST / HTTP/1.1\r\nhost: depot\r\ncontent-length: 300000\r\n\r\n");
  const answer = async (): Promise<string> => String((await once(socket, "data"))[0]).slice(0, 12);
  server.once("request", () => {
    socket.write("x".repeat(300_000));
    const until = performance.now() + 1_500;
    while (performance.now() < until);
  });
  begin();
  expect(await answer()).toBe("HTTP/1.1 202");
  begin();
  expect(await answer()).toBe("HTTP/1.1 408");
});
