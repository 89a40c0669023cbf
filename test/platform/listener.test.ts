import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";

import {
  bucket,
  bucketPerAddress,
  limitConnections,
  oneRequestAtATime,
} from "../../src/platform/listener.ts";
import { waitFor } from "../support/waitFor.ts";

const answer: RequestListener = (request, response) => {
  request.resume().on("end", () => response.end("answered"));
};

const openOf = (sockets: ReadonlyMap<string, Socket>): readonly string[] =>
  [...sockets].filter(([, { closed }]) => !closed).map(([name]) => name);

/** A server with room for three, and connections to it by name. */
async function aCrowd(listener: RequestListener = answer) {
  const dropped: string[] = [];
  const server = createServer(listener);
  const prove = limitConnections(server, {
    unproven: 3,
    proven: 2,
    onDropped: (address) => dropped.push(address),
  });
  server.on("request", ({ url, socket }) => url === "/proven" && prove(socket));
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  const sockets = new Map<string, Socket>();
  const answers = new Map<string, string>();
  const enter = async (name: string, localAddress = "127.0.0.1"): Promise<void> => {
    const socket = connect({ port, host: "127.0.0.1", localAddress });
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => answers.set(name, (answers.get(name) ?? "") + chunk.toString()));
    sockets.set(name, socket);
    await new Promise((ready) => socket.once("connect", ready));
  };
  return {
    dropped,
    enter,
    say: (name: string, text: string) => sockets.get(name)?.write(text),
    answered: (name: string) => waitFor(() => answers.get(name)?.includes("answered")),
    /** Waits until so many are left; their names. */
    left: async (count: number) => {
      await waitFor(() => openOf(sockets).length === count);
      return openOf(sockets);
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets.values()) socket.destroy();
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

const GET = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";
const HALF = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nhalf";

test("F61: a newcomer at the limit takes the place of the connection that has been silent for longest", async () => {
  await using it = await aCrowd();
  for (const name of ["a", "b", "c"]) await it.enter(name);
  it.say("b", HALF);
  it.say("a", GET);
  await it.answered("a");
  await it.enter("d");
  expect(await it.left(3)).toEqual(["a", "c", "d"]);
  await it.enter("e");
  expect(await it.left(3)).toEqual(["a", "d", "e"]);
  it.say("e", GET);
  await it.answered("e");
  expect(it.dropped).toEqual(["127.0.0.1", "127.0.0.1"]);
});

test("a connection that waits for an answer stays; when all do, the newcomer is closed", async () => {
  const held: (() => void)[] = [];
  await using it = await aCrowd((request, response) => {
    request.resume().on("end", () => held.push(() => response.end("answered")));
  });
  for (const name of ["a", "b", "c"]) {
    await it.enter(name);
    it.say(name, GET);
  }
  await waitFor(() => held.length === 3);
  await it.enter("d");
  expect(await it.left(3)).toEqual(["a", "b", "c"]);
  held[1]?.();
  await it.answered("b");
  await it.enter("e");
  expect(await it.left(3)).toEqual(["a", "c", "e"]);
  held[0]?.();
  held[2]?.();
  await Promise.all([it.answered("a"), it.answered("c")]);
});

test("a connection that was answered before its request was whole does not wait for anything", async () => {
  await using it = await aCrowd((request, response) => {
    response.end("answered");
    request.resume();
  });
  await it.enter("a");
  it.say("a", HALF);
  await it.answered("a");
  it.say("a", "654321");
  for (const name of ["b", "c", "d", "e"]) await it.enter(name);
  expect(await it.left(3)).toEqual(["c", "d", "e"]);
});

test.skipIf(process.platform !== "linux")(
  "an address with many connections loses one of its own, not the older one of another address",
  async () => {
    await using it = await aCrowd();
    await it.enter("partner", "127.0.0.2");
    for (const name of ["a", "b", "c", "d"]) await it.enter(name);
    expect(await it.left(3)).toEqual(["partner", "c", "d"]);
    expect(it.dropped).toEqual(["127.0.0.1", "127.0.0.1"]);
  },
);

test("a proven connection is not closed for an unknown one; of proven ones the longest idle goes", async () => {
  await using it = await aCrowd();
  const PROVEN = "GET /proven HTTP/1.1\r\nhost: x\r\n\r\n";
  for (const name of ["partner", "again"]) {
    await it.enter(name);
    it.say(name, PROVEN);
    await it.answered(name);
  }
  for (const name of ["a", "b", "c", "d"]) await it.enter(name);
  expect(await it.left(5)).toEqual(["partner", "again", "b", "c", "d"]);
  it.say("d", PROVEN);
  await it.answered("d");
  expect(await it.left(4)).toEqual(["again", "b", "c", "d"]);
});

test("requests that come before the first is answered are not served, and the connection ends with its answer", async () => {
  const pipelined: string[] = [];
  const served: string[] = [];
  const later: RequestListener = ({ url }, response) => {
    served.push(url ?? "");
    setImmediate(() => response.end("answered"));
  };
  await using it = await aCrowd(oneRequestAtATime(later, (address) => pipelined.push(address)));
  await it.enter("a");
  it.say("a", GET);
  await it.answered("a");
  it.say("a", GET.replace("/", "/next").repeat(500));
  expect(await it.left(0)).toEqual([]);
  expect(served).toEqual(["/", "/next"]);
  expect(pipelined).toEqual(["127.0.0.1"]);
});

/** A sender on a thread of its own: it counts its answers in `progress`, and sends its second request at the first. */
const PROMPT_SENDER = `
  const { connect } = require("node:net");
  const { workerData: { port, request, progress } } = require("node:worker_threads");
  const answers = new Int32Array(progress);
  const tell = (count) => { Atomics.store(answers, 0, count); Atomics.notify(answers, 0); };
  const socket = connect(port, "127.0.0.1", () => socket.write(request));
  socket.once("data", () => {
    socket.once("data", () => { tell(2); socket.end(); });
    socket.write(request, () => tell(1));
  });
  socket.on("error", () => undefined);
`;

test("a request that a sender makes once it has read its answer is served, however busy the server is", async () => {
  const progress = new SharedArrayBuffer(4);
  const answers = new Int32Array(progress);
  const pipelined: string[] = [];
  const busy: RequestListener = (_request, response) => {
    // As after a commit, in the check phase. The next request is there before this phase is over.
    setImmediate(() => {
      response.end("answered");
      Atomics.wait(answers, 0, 0, 10_000);
    });
  };
  const server = createServer(oneRequestAtATime(busy, (address) => pipelined.push(address)));
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  const worker = new Worker(PROMPT_SENDER, { eval: true, workerData: { port, request: GET, progress } });
  await new Promise((ended) => worker.once("exit", ended));
  await new Promise((closed) => server.close(closed));
  expect(pipelined).toEqual([]);
  expect(Atomics.load(answers, 0)).toBe(2);
});

test("a bucket allows its burst, then its pace", () => {
  let now = 0;
  const take = bucket({ perSecond: 2, burst: 3 }, () => now);
  expect([take(), take(), take(), take()]).toEqual([true, true, true, false]);
  now = 500;
  expect([take(), take()]).toEqual([true, false]);
});

test("a single address does not use up the pace of another, and forgotten addresses cost no memory", () => {
  const take = bucketPerAddress({ perSecond: 1, burst: 1 }, () => 0, 2);
  expect([take("a"), take("a"), take("b"), take("b")]).toEqual([true, false, true, false]);
  expect(take("c")).toBe(true);
  // `a` was the oldest of three: it starts anew.
  expect([take("a"), take("c")]).toEqual([true, false]);
});
