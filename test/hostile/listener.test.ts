import { readFileSync } from "node:fs";
import { request as httpsRequest } from "node:https";
import { connect, type Socket } from "node:net";
import { describe, expect, test } from "vitest";

import { verify } from "../../src/vtn/signature.ts";
import { instant } from "../../src/core/units.ts";
import { waitFor } from "../support/waitFor.ts";
import { aListener, signature, signed, wireEvent } from "../vtn/aListener.ts";
import { Authority } from "./certificates.ts";

const event = JSON.stringify(wireEvent("EV-1"));

/** A raw connection, and all that it was answered. */
function raw(port: number): {
  readonly socket: Socket;
  readonly answer: () => string;
  readonly closed: Promise<unknown>;
} {
  const socket = connect(port, "127.0.0.1");
  let answer = "";
  socket.on("data", (chunk: Buffer) => (answer += chunk.toString()));
  socket.on("error", () => undefined);
  return { socket, answer: () => answer, closed: new Promise((closed) => socket.on("close", closed)) };
}

const head = (...fields: readonly string[]): string =>
  `${["POST /webhooks/events HTTP/1.1", "host: x", "content-type: application/json", "x-payload-signature: x", ...fields].join("\r\n")}\r\n\r\n`;

/** How many of a hundred unsigned requests, each said to be for another sender, are told to wait. */
async function flood(trustProxy: boolean): Promise<number> {
  await using it = await aListener({ trustProxy });
  const answers = Array.from({ length: 100 }, (_, index) =>
    it.post("{}", { "x-forwarded-for": `203.0.113.${index}` }),
  );
  return (await Promise.all(answers)).filter(({ status }) => status === 429).length;
}

const other = (digit: string | undefined): string => (digit === "A" ? "B" : "A");

/** Status by body of what a signed sender is told. */
const statuses: readonly (readonly [string, string | Buffer, number])[] = [
  ["F63: nested a hundred deep", "[".repeat(100) + "]".repeat(100), 400],
  ["F63: opened five hundred thousand times", "[".repeat(500_000), 400],
  ["F64: prototype keys", `{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}`, 202],
  ["F65: a level beyond all numbers", event.replace(":10}", ":1e999}"), 202],
  ["F66: a lone surrogate for an id", event.replace('"EV-1"', '"\\ud800"'), 202],
  ["F67: an id of wildcards", event.replace('"EV-1"', '"a/+/#\\u0000"'), 202],
  [
    "F66: a pile of marks for an id",
    event.replace("EV-1", "a\u0301".concat("\u0301\u0323".repeat(200_000))),
    202,
  ],
  ["F62: a million entries", `[${"0,".repeat(500_000)}0]`, 413],
];

describe.concurrent("the webhook listener", () => {
  test.each(statuses)("%s is answered at once", async (_name, body, status) => {
    await using it = await aListener();
    const began = performance.now();
    const answer = await it.deliver(body);
    expect(answer.status).toBe(status);
    expect(performance.now() - began).toBeLessThan(2000);
    expect(it.deliveries.flatMap(({ notices }) => notices).filter(({ kind }) => kind !== "rejected")).toEqual(
      [],
    );
    expect(Object.keys(Object.prototype)).toEqual([]);
  });

  test("F68: of two members with one name the last counts, and the signature covers both", async () => {
    await using it = await aListener();
    const twice = event.replace('"ID":"EV-1"', '"ID":"EV-0","ID":"EV-1"');
    expect((await it.deliver(twice)).status).toBe(202);
    expect(it.deliveries[0]?.notices).toMatchObject([{ kind: "event", event: { id: "EV-1" } }]);
    expect((await it.post(twice, { "x-payload-signature": signature(event) })).status).toBe(401);
  });

  test("F62: a body that never ends is cut at 1 MiB with a 413, and costs no memory", async () => {
    await using it = await aListener();
    const { socket, answer, closed } = raw(it.port);
    socket.write(head("transfer-encoding: chunked"));
    const piece = Buffer.from(`10000\r\n${"x".repeat(0x10000)}\r\n`);
    const pour = (): void => {
      while (!socket.destroyed && socket.write(piece));
    };
    socket.on("drain", pour);
    pour();
    await closed;
    expect(answer()).toMatch(/^HTTP\/1\.1 413 /);
    expect(socket.bytesWritten).toBeLessThan(64 * 1024 * 1024);
    expect((await it.deliver(event)).status).toBe(202);
  });

  test("F62: a body that says it is huge is refused before it is sent", async () => {
    await using it = await aListener();
    const { socket, answer } = raw(it.port);
    socket.write(head("content-length: 10000000000"));
    await waitFor(() => answer().startsWith("HTTP/1.1 413 "));
    socket.destroy();
  });

  test("F62: bodies that break the rules of HTTP get a 400 and are no delivery", async () => {
    await using it = await aListener();
    for (const broken of [
      `${head("transfer-encoding: chunked")}zz\r\n{}\r\n0\r\n\r\n`,
      `${head("content-length: 2", "content-length: 3")}{}`,
      `${head("content-length: 2", "transfer-encoding: chunked")}0\r\n\r\n`,
      `${head("content-length: -1")}{}`,
      head(`x-big: ${"x".repeat(100_000)}`),
    ]) {
      const { socket, answer, closed } = raw(it.port);
      socket.write(broken);
      await closed;
      expect(answer()).toMatch(/^HTTP\/1\.1 4(00|31) /);
    }
    expect(it.deliveries).toEqual([]);
  });

  test("F61: a body that drips is given up after ten seconds with a 408, and others are served meanwhile", async () => {
    await using it = await aListener();
    const began = performance.now();
    const { socket, answer, closed } = raw(it.port);
    socket.write(head("content-length: 1000"));
    const drip = setInterval(() => socket.write(" "), 100);
    expect((await it.deliver(event)).status).toBe(202);
    await closed;
    clearInterval(drip);
    expect(answer()).toMatch(/^HTTP\/1\.1 408 /);
    expect(performance.now() - began).toBeLessThan(13_000);
  });

  test("F61: hundreds of idle connections cannot keep the partner out for longer than it takes to close them", async () => {
    await using it = await aListener();
    const idle = Array.from({ length: 400 }, () => raw(it.port));
    const began = performance.now();
    await waitFor(
      () =>
        it.deliver(event).then(
          ({ status }) => status === 202,
          () => false,
        ),
      { timeoutMs: 10_000 },
    );
    expect(performance.now() - began).toBeLessThan(9000);
    await Promise.all(idle.map(({ closed }) => closed));
  });

  test("F60: behind a trusted proxy each sender has its own pace; without one nobody can pretend to be many", async () => {
    expect(await flood(true)).toBe(0);
    expect(await flood(false)).toBe(40);
  });

  test("F72: TLS is served with the configured certificate; plain HTTP and silence at its port are turned away", async () => {
    using authority = new Authority();
    const pem = authority.issue("gateway");
    const tls = { cert: readFileSync(pem.cert, "utf8"), key: readFileSync(pem.key, "utf8") };
    await using it = await aListener({ tls });
    const send = (ca: string) =>
      new Promise<number>((answered, failed) => {
        const headers = { "content-type": "application/json", "x-payload-signature": signature(event) };
        const options = {
          ca,
          method: "POST",
          headers,
          path: "/webhooks/events",
          port: it.port,
          host: "127.0.0.1",
        };
        httpsRequest(options, (response) => answered(response.resume().statusCode ?? 0))
          .on("error", failed)
          .end(event);
      });
    expect(await send(authority.caText)).toBe(202);
    using other = new Authority();
    await expect(send(other.caText)).rejects.toThrow(/signature|certificate|verify/i);
    await expect(it.deliver(event)).rejects.toThrow();
    const silent = raw(it.port);
    const began = performance.now();
    await silent.closed;
    expect(performance.now() - began).toBeLessThan(9000);
    expect(it.deliveries).toHaveLength(1);
  });

  test("F72: a certificate that cannot be read is told to whoever starts the listener", async () => {
    await expect(aListener({ tls: { cert: "not PEM", key: "not PEM" } })).rejects.toThrow();
  });
});

test("F70: how long a wrong signature takes does not tell how much of it is right", () => {
  const body = Buffer.from(event);
  const right = signature(event);
  const early = other(right[0]) + right.slice(1);
  const late = right.slice(0, -2) + other(right.at(-2)) + right.slice(-1);
  const times = { early: 0, late: 0 };
  const timed = (given: string): number => {
    const began = performance.now();
    verify(signed, { "x-payload-signature": given }, body, instant(0));
    return performance.now() - began;
  };
  for (let round = 0; round < 20_000; round += 1) {
    times.early += Math.min(timed(early), 1);
    times.late += Math.min(timed(late), 1);
  }
  expect(times.early / times.late).toBeGreaterThan(0.5);
  expect(times.early / times.late).toBeLessThan(2);
});
