import { readFileSync } from "node:fs";
import { request as httpsRequest } from "node:https";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { describe, expect, test } from "vitest";

import { verify } from "../../src/vtn/signature.ts";
import { instant } from "../../src/domain/units.ts";
import { waitFor } from "../support/waitFor.ts";
import { aListener, signature, signed, wireEvent } from "../vtn/aListener.ts";
import { Authority } from "../support/certificates.ts";

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

const open = (connections: readonly { readonly socket: Socket }[]): number =>
  connections.filter(({ socket }) => !socket.destroyed).length;

const unsignedHead = (...fields: readonly string[]): string =>
  `${["POST /webhooks/events HTTP/1.1", "host: x", "content-type: application/json", ...fields].join("\r\n")}\r\n\r\n`;

const FORGED = `x-payload-signature: ${"A".repeat(43)}=`;
const head = (...fields: readonly string[]): string => unsignedHead(FORGED, ...fields);

/** How many of a hundred unsigned requests, each said to be for another sender, are told to wait. */
async function flood(
  trustProxy: boolean | readonly string[],
  sender = (index: number): string => `203.0.113.${index}`,
): Promise<number> {
  await using it = await aListener({ trustProxy });
  const answers = Array.from({ length: 100 }, (_, index) =>
    it.post("{}", { "x-forwarded-for": sender(index) }),
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

const post = (version: string, ...fields: readonly string[]): string =>
  `${[`POST /webhooks/events ${version}`, "content-type: application/json", `x-payload-signature: ${signature(event)}`, ...fields].join("\r\n")}\r\n\r\n`;
const LENGTH = `content-length: ${event.length}`;
const HOST = "host: x";
const whole = post("HTTP/1.1", HOST, LENGTH) + event;
const unsigned = `POST /webhooks/events HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${LENGTH}\r\n\r\n${event}`;
const chunked = `${event.length.toString(16)}\r\n${event}\r\n0\r\n\r\n`;
const CHUNKED = "transfer-encoding: chunked";

/** What is written to the socket, the statuses of the answers, and how many deliveries come of it. */
const onTheWire: readonly (readonly [string, string, readonly number[], number])[] = [
  ["a request without a host", post("HTTP/1.1", LENGTH) + event, [400], 0],
  ["HTTP/1.0", post("HTTP/1.0", LENGTH) + event, [202], 1],
  ["HTTP/3.7", post("HTTP/3.7", HOST, LENGTH) + event, [400], 0],
  ["the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [400], 0],
  [
    "an upgrade to HTTP/2",
    post("HTTP/1.1", HOST, LENGTH, "connection: upgrade", "upgrade: h2c") + event,
    [202],
    1,
  ],
  ["the hello of TLS", "\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03", [400], 0],
  ["a tunnel", "CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n", [], 0],
  ["three requests at once", whole.repeat(3), [202], 1],
  ["an unsigned request before two", unsigned + whole.repeat(2), [401], 0],
  ["an expectation that nobody has", post("HTTP/1.1", HOST, LENGTH, "expect: tea") + event, [417], 0],
  ["a chunked body", post("HTTP/1.1", HOST, CHUNKED) + chunked, [202], 1],
  ["a length beside chunks", post("HTTP/1.1", HOST, LENGTH, CHUNKED) + chunked, [400], 0],
  ["chunks beside a length", post("HTTP/1.1", HOST, CHUNKED, LENGTH) + chunked, [400], 0],
  [
    "chunks that are compressed",
    post("HTTP/1.1", HOST, "transfer-encoding: gzip, chunked") + chunked,
    [415],
    0,
  ],
  ["chunks with a space too many", post("HTTP/1.1", HOST, "transfer-encoding : chunked") + chunked, [400], 0],
  [
    "chunks that are none in the end",
    post("HTTP/1.1", HOST, CHUNKED, "transfer-encoding: identity") + chunked,
    [400],
    0,
  ],
  [
    "a chunk larger than all numbers",
    `${post("HTTP/1.1", HOST, CHUNKED)}fffffffffffffffff\r\n${event}`,
    [400],
    0,
  ],
  [
    "a chunk with an endless extension",
    `${post("HTTP/1.1", HOST, CHUNKED)}1;${"a".repeat(100_000)}`,
    [400],
    0,
  ],
  ["one length twice", post("HTTP/1.1", HOST, LENGTH, LENGTH) + event, [400], 0],
  ["lines without a carriage return", whole.replaceAll("\r\n", "\n"), [400], 0],
  [
    "a second signature",
    post("HTTP/1.1", HOST, LENGTH, `x-payload-signature: ${signature(event)}`) + event,
    [401],
    0,
  ],
  [
    "thousands of fields",
    post("HTTP/1.1", HOST, ...Array.from({ length: 3000 }, (_, n) => `a${n}: b`)),
    [431],
    0,
  ],
];

describe.concurrent("the webhook listener", () => {
  test.each(statuses)("%s is answered at once", async (_name, body, status) => {
    await using it = await aListener();
    const began = performance.now();
    const answer = await it.deliver(body);
    expect(answer.status).toBe(status);
    expect(performance.now() - began).toBeLessThan(5000);
    expect(it.deliveries.flatMap(({ notices }) => notices).filter(({ kind }) => kind !== "rejected")).toEqual(
      [],
    );
    expect(Object.keys(Object.prototype)).toEqual([]);
  });

  test("F68: the last of two members with one name counts, and the signature covers both", async () => {
    await using it = await aListener();
    const twice = event.replace('"ID":"EV-1"', '"ID":"EV-0","ID":"EV-1"');
    expect((await it.deliver(twice)).status).toBe(202);
    expect(it.deliveries[0]?.notices).toMatchObject([{ kind: "event", event: { id: "EV-1" } }]);
    expect((await it.post(twice, { "x-payload-signature": signature(event) })).status).toBe(401);
  });

  test.each([
    ["is cut at 1 MiB with a 413", head, 413],
    ["of a sender that shows no signature is cut as well, after its 401", unsignedHead, 401],
  ] as const)("F62: a body that never ends %s, and costs no memory", async (_what, headOf, status) => {
    await using it = await aListener();
    const { socket, answer, closed } = raw(it.port);
    socket.write(headOf("transfer-encoding: chunked"));
    const piece = Buffer.from(`10000\r\n${"x".repeat(0x10000)}\r\n`);
    const pour = (): void => {
      while (!socket.destroyed && socket.write(piece));
    };
    socket.on("drain", pour);
    pour();
    await closed;
    expect(answer()).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(socket.bytesWritten).toBeLessThan(64 * 1024 * 1024);
    expect((await it.deliver(event)).status).toBe(202);
  });

  test("F62: a sender that shows no signature and sends its whole body first gets its 401, and keeps its connection", async () => {
    await using it = await aListener();
    const { socket, answer } = raw(it.port);
    const body = "x".repeat(6_000_000);
    socket.write(`${unsignedHead(`content-length: ${body.length}`)}${body}`);
    socket.write(`${unsignedHead("content-length: 2")}{}`);
    await waitFor(() => (answer().match(/HTTP\/1\.1 401 /g) ?? []).length === 2);
    socket.destroy();
  });

  test("F62: a body that announces a huge length is refused before it is sent", async () => {
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

  test.each(onTheWire)("F62: %s is answered as it should be", async (_name, text, statuses, taken) => {
    await using it = await aListener();
    const { socket, answer, closed } = raw(it.port);
    const told = () => [...answer().matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status));
    socket.write(text);
    await Promise.race([closed, waitFor(() => told().length >= statuses.length)]);
    expect(told()).toEqual(statuses);
    expect(it.deliveries).toHaveLength(taken);
    socket.destroy();
    expect((await it.deliver(event)).status).toBe(202);
  });

  test("F62: a sender that expects a 100 before its body gets one, and then the answer to the whole", async () => {
    await using it = await aListener();
    const { socket, answer } = raw(it.port);
    socket.write(post("HTTP/1.1", "host: x", LENGTH, "expect: 100-continue"));
    await waitFor(() => answer().startsWith("HTTP/1.1 100 "));
    socket.write(event);
    await waitFor(() => answer().includes("HTTP/1.1 202 "));
    expect(it.deliveries).toHaveLength(1);
    socket.destroy();
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

  test("F61: hundreds of connections that are idle or drip do not keep the partner out, and end within seconds", async () => {
    await using it = await aListener();
    const idle = Array.from({ length: 700 }, () => raw(it.port));
    for (const { socket } of idle.slice(350)) socket.write(head("content-length: 1000"));
    await Promise.all(idle.map(({ socket }) => new Promise((ready) => socket.once("connect", ready))));
    expect((await it.deliver(event)).status).toBe(202);
    // It had not to wait for the 5 s after which idle connections are closed.
    expect(open(idle)).toBeGreaterThan(450);
    await Promise.all(idle.map(({ closed }) => closed));
    expect(it.refusals).not.toContain("tooManyConnections");
  });

  test("a burst of one event per vehicle is answered whole, also where each delivery opens its own connection", async () => {
    await using it = await aListener();
    const burst = Array.from({ length: 1500 }, (_, index) =>
      it
        .deliver(JSON.stringify(wireEvent(`EV-${index}`)))
        .catch((error: unknown) => ({ status: String(error) })),
    );
    expect([...new Set((await Promise.all(burst)).map(({ status }) => status))]).toEqual([202]);
    expect(it.refusals).toEqual([]);
  });

  test("F60: behind a named proxy each sender has its own pace; otherwise no sender can pretend to be many", async () => {
    const named = ["127.0.0.0/8", "::1"];
    expect(await flood(named)).toBe(0);
    expect(await flood(false)).toBe(40);
    // Where everyone is believed, the header is a sender's own word.
    expect(await flood(true)).toBe(40);
    // Only what the own proxy put last counts, and only an address is one.
    expect(await flood(named, (index) => `203.0.113.${index}, 198.51.100.7`)).toBe(40);
    expect(await flood(named, (index) => `nobody ${index}`)).toBe(40);
    // A named proxy elsewhere is not this peer.
    expect(await flood(["10.0.0.0/8"])).toBe(40);
  });

  test("F72: TLS is served with the configured certificate; plain HTTP and silence at its port are turned away", async () => {
    using authority = new Authority();
    const pem = authority.issue("gateway");
    const tls = { cert: readFileSync(pem.cert, "utf8"), key: readFileSync(pem.key, "utf8"), clientCa: null };
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
    // More of them than fit, without a word of TLS, do not keep the partner out.
    const idle = Array.from({ length: 700 }, () => raw(it.port));
    await Promise.all(idle.map(({ socket }) => new Promise((ready) => socket.once("connect", ready))));
    expect(await send(authority.caText)).toBe(202);
    expect(open(idle)).toBeGreaterThan(450);
    await waitFor(() => it.refusals.filter((reason) => reason === "tooManyConnections").length > 150);
    expect(it.lines.filter((line) => line.includes("closed to let another in")).length).toBeLessThan(10);
    for (const { socket } of idle) socket.destroy();
    using other = new Authority();
    await expect(send(other.caText)).rejects.toThrow(/signature|certificate|verify/i);
    await expect(it.deliver(event)).rejects.toThrow();
    const silent = raw(it.port);
    const began = performance.now();
    await silent.closed;
    expect(performance.now() - began).toBeLessThan(9000);
    expect(it.deliveries).toHaveLength(2);
  });

  test("F72: a pair that cannot be used is refused with the reason, and the one before is served on", async () => {
    using authority = new Authority();
    const files = authority.issue("gateway");
    const tls = {
      cert: readFileSync(files.cert, "utf8"),
      key: readFileSync(files.key, "utf8"),
      clientCa: null,
    };
    await using it = await aListener({ tls });
    expect(it.renew({ cert: "not PEM", key: "not PEM", clientCa: null })).toMatch(/PEM|no start line/);
    expect(it.renew({ ...tls, key: readFileSync(authority.issue("other").key, "utf8") })).toMatch(/mismatch/);
    const socket = connectTls({ port: it.port, host: "127.0.0.1", ca: authority.caText });
    await new Promise((secure, failed) => socket.once("secureConnect", secure).once("error", failed));
    expect(socket.getPeerCertificate().subject.CN).toBe("gateway");
    socket.destroy();
    await using plain = await aListener();
    expect(plain.renew(tls)).toContain("no TLS");
  });

  test("F72: a certificate that cannot be read is an error at the start of the listener", async () => {
    await expect(aListener({ tls: { cert: "not PEM", key: "not PEM", clientCa: null } })).rejects.toThrow();
  });
});

test("F70: the time to refuse a wrong signature does not show how much of it is right", () => {
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
