import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { expect, test } from "vitest";

import { type BodyRead, RequestBodies } from "../../src/vtn/webhookServer.ts";
import { waitFor } from "../support/waitFor.ts";

const KIB = 1024;

/** A server that reads bodies of 64 KiB at most within a budget of 256 KiB; its answers wait for `answer`. */
async function aServerOfBodies() {
  const dropped: string[] = [];
  const reads: BodyRead[] = [];
  const waiting: (() => void)[] = [];
  const bodies = new RequestBodies(256 * KIB, (address) => dropped.push(address));
  const server = createServer((request, response) => {
    void bodies.read(request, response, 64 * KIB).then((read) => {
      reads.push(read);
      waiting.push(() => response.end());
    });
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  const sockets: Socket[] = [];
  return {
    bodies,
    dropped,
    reads,
    answer: () => waiting.splice(0).forEach((answer) => answer()),
    /** A request with this body, and what it says of its length. */
    send: (body: string, length = `content-length: ${body.length}`, localAddress = "127.0.0.1") => {
      const socket = connect({ port, host: "127.0.0.1", localAddress }).on("error", () => undefined);
      socket.resume().write(`POST / HTTP/1.1\r\nhost: x\r\n${length}\r\n\r\n${body}`);
      sockets.push(socket);
      return socket;
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((closed) => server.close(closed));
    },
  };
}

test("a body is read as it came, and leaves the budget with its answer", async () => {
  await using it = await aServerOfBodies();
  const body = "abc".repeat(10_000);
  it.send(body);
  await waitFor(() => it.reads.length === 1);
  const [read] = it.reads;
  expect(read?.kind === "whole" && read.bytes.toString()).toBe(body);
  expect(it.bodies.bytes).toBeGreaterThanOrEqual(body.length);
  it.answer();
  await waitFor(() => it.bodies.bytes === 0);
});

test("unfinished bodies of many senders stay within the budget, and a new one finds room", async () => {
  await using it = await aServerOfBodies();
  const slow = Array.from({ length: 20 }, () => it.send("x".repeat(60 * KIB), `content-length: ${64 * KIB}`));
  await waitFor(() => it.dropped.length >= 12);
  expect(it.bodies.bytes).toBeLessThanOrEqual(256 * KIB);
  it.send("partner");
  await waitFor(() => it.reads.some(({ kind }) => kind === "whole"));
  for (const socket of slow) socket.destroy();
  await waitFor(() => it.reads.filter(({ kind }) => kind === "aborted").length === 20);
});

test.skipIf(process.platform !== "linux")(
  "the address that holds most loses its oldest body, not the older one of another address",
  async () => {
    await using it = await aServerOfBodies();
    it.send("x".repeat(30 * KIB), `content-length: ${64 * KIB}`, "127.0.0.2");
    await waitFor(() => it.bodies.bytes > 0);
    for (let sent = 0; sent < 8; sent += 1) it.send("x".repeat(60 * KIB), `content-length: ${64 * KIB}`);
    await waitFor(() => it.dropped.length >= 4);
    expect(new Set(it.dropped)).toEqual(new Set(["127.0.0.1"]));
  },
);

test("bodies that wait for their answers are never dropped: a newcomer is refused for lack of room", async () => {
  await using it = await aServerOfBodies();
  for (let sent = 0; sent < 4; sent += 1) it.send("x".repeat(64 * KIB));
  await waitFor(() => it.reads.length === 4);
  it.send("x".repeat(KIB));
  await waitFor(() => it.reads.length === 5);
  // The newcomer itself is incomplete, and the only one that can go.
  expect(it.reads.at(-1)?.kind).toMatch(/noRoom|aborted/);
  expect(it.reads.slice(0, 4).map(({ kind }) => kind)).toEqual(["whole", "whole", "whole", "whole"]);
});

test("a body of one byte a chunk costs its bytes, not a buffer for each of them", async () => {
  await using it = await aServerOfBodies();
  it.send("1\r\nx\r\n".repeat(60_000), "transfer-encoding: chunked");
  await waitFor(() => it.bodies.bytes > 60_000);
  expect(it.bodies.bytes).toBeLessThanOrEqual(64 * KIB);
});

test("a body longer than allowed is known from its length, or as soon as it is over", async () => {
  await using it = await aServerOfBodies();
  it.send("", `content-length: ${64 * KIB + 1}`);
  it.send(`${(64 * KIB + 1).toString(16)}\r\n${"x".repeat(64 * KIB + 1)}\r\n`, "transfer-encoding: chunked");
  await waitFor(() => it.reads.length === 2);
  expect(it.reads.map(({ kind }) => kind)).toEqual(["tooLarge", "tooLarge"]);
  expect(it.bodies.bytes).toBe(0);
});
