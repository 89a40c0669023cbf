import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";

import { anEvent } from "../support/aSite.ts";
import { waitFor } from "../support/waitFor.ts";
import { type AServer, aServer, drip, json } from "../vtn/aServer.ts";
import { anApp } from "./anApp.ts";

const MEGABYTE = 2 ** 20;
const HOUR = 3_600_000;

const compressed =
  (body: Buffer): AServer["answer"] =>
  (response) =>
    response
      .writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" })
      .end(gzipSync(body));

/** A partner in good health, and a daemon that has its one event. */
async function aMeeting() {
  await using stack = new AsyncDisposableStack();
  const standing = anEvent("EV-1", { lastsMs: HOUR });
  const identity = stack.use(await aServer(json({ access_token: "fine" })));
  const api = stack.use(await aServer(json([standing])));
  const app = stack.use(await anApp({ api, identity }));
  await waitFor(async () => JSON.stringify(await app.view("/api/v1/events")).includes("EV-1"));
  const running = stack.move();
  return { standing, identity, api, app, [Symbol.asyncDispose]: () => running.disposeAsync() };
}

const faults: readonly (readonly [string, AServer["answer"]])[] = [
  ["F32: 500", json({}, 500)],
  ["F33: 429 without Retry-After", json({}, 429)],
  ["F33: 429 with an absurd Retry-After", json({}, 429, { "retry-after": "999999999" })],
  ["F37: an HTML page", json("<html></html>", 200, { "content-type": "text/html" })],
  ["F37: truncated JSON", json('[{"ID":"EV-1"')],
  [
    "F37: half of what it announced",
    (response) => response.writeHead(200, { "content-length": "99" }).write("[") && response.destroy(),
  ],
  ["F38: 17 MiB", json(`[${" ".repeat(17 * MEGABYTE)}]`)],
  ["F38: a gzip bomb", compressed(Buffer.alloc(64 * MEGABYTE, " "))],
  ["F38: a list of eight million nothings", json(`[${"1,".repeat(8_000_000)}1]`)],
  ["F38: nested without end", json("[".repeat(MEGABYTE))],
  ["F42: a redirect", json([], 302, { location: "/elsewhere" })],
  ["F42: a captive portal", json("<html>log in</html>")],
  ["F30: connections that are reset", (response) => response.socket?.resetAndDestroy()],
];

describe.concurrent("a partner that misbehaves", () => {
  test("known events stay under any answer to the list, the failure is logged once, and the next good answer counts (F30-F42)", async () => {
    await using it = await aMeeting();
    const known = await it.app.view("/api/v1/events");
    const memory = process.memoryUsage().rss;
    for (const [name, answer] of faults) {
      const [asked, said] = [it.api.seen.length, it.app.lines.length];
      it.api.answer = answer;
      await waitFor(() => it.api.seen.length >= asked + 2, { timeoutMs: 15_000 });
      expect(await it.app.view("/api/v1/events"), name).toEqual(known);
      expect(it.app.complaints(said), name).toHaveLength(1);
      it.api.answer = json([it.standing]);
      await waitFor(() => it.app.lines.slice(said).some(({ msg }) => msg === "the partner answers again"), {
        timeoutMs: 15_000,
      });
    }
    expect(it.api.seen.some(({ url }) => url === "/elsewhere")).toBe(false);
    expect(process.memoryUsage().rss - memory).toBeLessThan(768 * MEGABYTE);
    const changed = anEvent("EV-2", { lastsMs: HOUR });
    it.api.answer = json([it.standing, changed]);
    await waitFor(async () => JSON.stringify(await it.app.view("/api/v1/events")).includes("EV-2"));
  });

  test("F31: an answer that drips ends at the deadline, and webhooks are taken meanwhile", async () => {
    await using it = await aMeeting();
    const asked = it.api.seen.length;
    it.api.answer = drip;
    await waitFor(() => it.api.seen.length > asked);
    const began = performance.now();
    expect((await it.app.deliver(anEvent("EV-2", { lastsMs: HOUR }))).status).toBe(202);
    await waitFor(() => it.app.complaints().length > 0, { timeoutMs: 40_000 });
    expect(performance.now() - began).toBeGreaterThan(8_000);
    expect(it.app.complaints()[0]).toContain("no complete answer within 10000 ms");
  });

  test("F33: nothing is asked inside a Retry-After, whatever the webhook brings", async () => {
    await using it = await aMeeting();
    const asked = it.api.seen.length;
    it.api.answer = json({}, 429, { "retry-after": "3" });
    await waitFor(() => it.api.seen.length > asked);
    const began = performance.now();
    for (const id of ["EV-5", "EV-6"]) expect((await it.app.deliver({ ID: id })).status).toBe(202);
    expect((await it.app.deliver({ hello: "world" })).status).toBe(202);
    await waitFor(() => it.api.seen.length > asked + 1);
    expect(performance.now() - began).toBeGreaterThan(2_800);
    expect(it.api.seen).toHaveLength(asked + 2);
    expect(it.app.complaints()).toHaveLength(1);
  });

  test.each([
    [401, 2, 2],
    [403, 2, 1],
  ])(
    "F34: refused with %i, at most %i requests and %i for tokens in the seconds that follow, and it is logged once",
    async (status, requests, tokens) => {
      await using it = await aMeeting();
      const [asked, issued] = [it.api.seen.length, it.identity.seen.length];
      it.api.answer = json({}, status);
      await waitFor(() => it.app.complaints().length > 0);
      const again = performance.now() + 4_000;
      await waitFor(() => performance.now() > again);
      expect(it.api.seen.length - asked).toBeLessThanOrEqual(requests);
      expect(it.identity.seen.length - issued).toBeLessThanOrEqual(tokens);
      expect(it.app.complaints()).toHaveLength(1);
      expect(JSON.stringify(await it.app.view("/api/v1/events"))).toContain("EV-1");
    },
    20_000,
  );
});

const tokenFaults: readonly (readonly [string, AServer["answer"]])[] = [
  ["F32: 500", json({}, 500)],
  ["F37: an HTML page", json("<html></html>")],
  ["F38: a flood", json({ access_token: "x".repeat(100_000) })],
  ["F38: a gzip bomb", compressed(Buffer.alloc(64 * MEGABYTE, " "))],
  ["F36: a token with a line break", json({ access_token: "fine\r\nx-injected: 1" })],
  ["F36: a token with a NUL", json({ access_token: "fine\u0000" })],
  ["F36: a token that is a number", json({ access_token: 5 })],
  ["F42: a redirect", json({ access_token: "fine" }, 302, { location: "/elsewhere" })],
  ["F30: connections that are reset", (response) => response.socket?.resetAndDestroy()],
];

describe.concurrent("a token server that misbehaves", () => {
  test.each(tokenFaults)(
    "%s: no request goes out without a token, it is logged once, and requests resume once it is well",
    async (_name, answer) => {
      const identity = await aServer(answer);
      const api = await aServer(json([anEvent("EV-1", { lastsMs: HOUR })]));
      await using stack = new AsyncDisposableStack();
      stack.use(identity);
      stack.use(api);
      const app = stack.use(await anApp({ api, identity }));
      await waitFor(() => identity.seen.length >= 2, { timeoutMs: 10_000 });
      expect(identity.seen.length).toBeLessThan(4);
      expect(api.seen).toEqual([]);
      expect(app.complaints()).toHaveLength(1);
      identity.answer = json({ access_token: "fine", expires_in: -1e9 });
      await waitFor(() => app.lines.some(({ msg }) => msg.startsWith("the partner answers")), {
        timeoutMs: 10_000,
      });
      expect(api.seen[0]?.headers.authorization).toBe("Bearer fine");
      expect(api.seen[0]?.headers).not.toHaveProperty("x-injected");
      expect(identity.seen.some(({ url }) => url === "/elsewhere")).toBe(false);
    },
    30_000,
  );
});
