import { gzipSync } from "node:zlib";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { eventId, instant, millis } from "../../src/domain/units.ts";
import { VtnClient } from "../../src/vtn/client.ts";
import { TokenSource } from "../../src/vtn/token.ts";
import { type AServer, aLog, aServer, drip, json } from "./aServer.ts";
import { aDialect } from "../support/aDialect.ts";

const wireEvent = (id: string, amperes = 10) => ({
  ID: id,
  createdDateTime: "2026-11-21T10:00:00Z",
  modificationDateTime: "2026-11-21T10:00:00Z",
  name: "evening",
  priority: 1,
  programID: "p1",
  targets: [{ targetType: "vehicle", values: ["veh-1"] }],
  intervalPeriod: { start: "2026-11-21T18:00:00Z", duration: "01:00:00" },
  payload: { payloadType: "CurrentLevel", targetCurrent: amperes },
});

/** A partner whose events endpoint answers as told, with a token server and a client of ours that talks to both. */
async function aPartner(answer: AServer["answer"], basePath = "") {
  let issued = 0;
  const server = await aServer(answer);
  const identity = await aServer((response, seen) => {
    issued += 1;
    json({ access_token: `token-${issued}` })(response, seen);
  });
  const { log, lines } = aLog();
  const time = { now: Date.UTC(2026, 10, 21, 12) };
  const clocks = { now: () => instant(time.now), monotonic: () => time.now, log, deadline: millis(400) };
  const tokens = new TokenSource({
    tokenUrl: `${identity.origin}/connect/token`,
    clientId: "depot",
    clientSecret: () => "hush",
    scope: null,
    random: () => 1,
    ...clocks,
  });
  const baseUrl = `${server.origin}${basePath}`;
  const client = new VtnClient({ baseUrl, dialect: aDialect(), tokens, ...clocks });
  return {
    server,
    identity,
    client,
    time,
    lines,
    async [Symbol.asyncDispose]() {
      await client[Symbol.asyncDispose]();
      await tokens[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
      await identity[Symbol.asyncDispose]();
    },
  };
}

test("the list is requested as partner-interface 4.3 describes, and read as a delivery", async () => {
  await using partner = await aPartner(json([wireEvent("EV-1"), wireEvent("EV-2")]), "/api/");
  const fetched = await partner.client.list();
  expect(fetched).toMatchObject({ kind: "read", delivery: { source: "list", complete: true } });
  expect(fetched.kind === "read" && fetched.delivery.notices).toHaveLength(2);
  const [request] = partner.server.seen;
  expect(request?.url).toBe("/api/energy-coordination/v1/events");
  expect(request?.headers).toMatchObject({
    accept: "application/json",
    "accept-encoding": "identity",
    authorization: "Bearer token-1",
  });
});

test("our clock is held against the partner's Date", async () => {
  const date = "Sat, 21 Nov 2026 11:50:00 GMT";
  await using partner = await aPartner(json([], 200, { date }));
  expect(await partner.client.list()).toMatchObject({ skew: 600_000 });
});

test("only a list that is already ingested is recognised whole", async () => {
  await using partner = await aPartner(json([wireEvent("EV-1")]));
  const first = await partner.client.list();
  expect((await partner.client.list()).kind).toBe("read");
  if (first.kind === "read") partner.client.settled(first.delivery);
  expect((await partner.client.list()).kind).toBe("unchanged");
  partner.server.answer = json([wireEvent("EV-1", 11)]);
  expect((await partner.client.list()).kind).toBe("read");
});

test("only the changed entries of a list that changed since it was ingested are read", async () => {
  await using partner = await aPartner(json([wireEvent("EV-1"), wireEvent("EV-2"), wireEvent("EV-3")]));
  const first = await partner.client.list();
  if (first.kind === "read") partner.client.settled(first.delivery);
  partner.server.answer = json([wireEvent("EV-1"), wireEvent("EV-2", 11), wireEvent("EV-3")]);
  const changed = await partner.client.list();
  expect(changed).toMatchObject({
    kind: "read",
    delivery: {
      complete: true,
      notices: [{ kind: "event", event: { id: "EV-2" } }],
      unchanged: { ids: ["EV-1", "EV-3"], rejected: 0 },
    },
  });
  expect(Object.keys(changed)).not.toContain("index");
  // Not committed: it is compared with the first one again.
  expect(await partner.client.list()).toMatchObject({ delivery: { notices: [{ event: { id: "EV-2" } }] } });
  if (changed.kind === "read") partner.client.settled(changed.delivery);
  expect((await partner.client.list()).kind).toBe("unchanged");
  partner.server.answer = json([wireEvent("EV-1"), wireEvent("EV-2", 11)]);
  expect(await partner.client.list()).toMatchObject({
    delivery: { notices: [], unchanged: { ids: ["EV-1", "EV-2"] } },
  });
});

test("a list that was compared while another delivery was ingested is read as a whole", async () => {
  const events = Array.from({ length: 3000 }, (_, index) => wireEvent(`EV-${index}`));
  await using partner = await aPartner(json(events));
  const first = await partner.client.list();
  if (first.kind !== "read") throw new Error(first.kind);
  partner.client.settled(first.delivery);
  const changed = json(events.with(7, wireEvent("EV-7", 11)));
  partner.server.answer = (response, seen) => {
    partner.client.settled({ ...first.delivery, source: "webhook", complete: false });
    changed(response, seen);
  };
  const list = await partner.client.list();
  expect(list.kind === "read" && [list.delivery.notices.length, list.delivery.unchanged]).toEqual([
    3000,
    undefined,
  ]);
});

test("after a webhook changed something, the same list is read again", async () => {
  await using partner = await aPartner(json([wireEvent("EV-1")]));
  const list = await partner.client.list();
  if (list.kind !== "read") throw new Error(list.kind);
  partner.client.settled(list.delivery);
  partner.client.settled({ ...list.delivery, source: "webhook", complete: false });
  expect((await partner.client.list()).kind).toBe("read");
  // The first list was read before that webhook: its commit afterwards proves nothing.
  partner.client.settled(list.delivery);
  expect((await partner.client.list()).kind).toBe("read");
});

test("a list with an entry without an id is never recognised: it shows no event's absence", async () => {
  await using partner = await aPartner(json([wireEvent("EV-1"), { name: "no id" }]));
  const list = await partner.client.list();
  if (list.kind !== "read") throw new Error(list.kind);
  expect(list.delivery.complete).toBe(false);
  partner.client.settled(list.delivery);
  expect((await partner.client.list()).kind).toBe("read");
});

test("a single event is fetched by id, and 404 or 410 means gone", async () => {
  await using partner = await aPartner(json(wireEvent("a/b?x=1#y %2e")));
  const id = eventId("a/b?x=1#y %2e");
  expect(await partner.client.event(id)).toMatchObject({
    kind: "read",
    delivery: { source: "fetch", complete: false, notices: [{ kind: "event" }] },
  });
  expect(partner.server.seen[0]?.url).toBe("/energy-coordination/v1/events/a%2Fb%3Fx%3D1%23y%20%252e");
  for (const status of [404, 410]) {
    partner.server.answer = json("not here", status);
    const gone = await partner.client.event(id);
    // An event that is gone is a delivery like any other.
    expect(gone).toMatchObject({
      kind: "read",
      delivery: { notices: [{ kind: "gone", id }], complete: false },
    });
  }
  expect(await partner.client.list()).toMatchObject({ kind: "failed", status: 410 });
});

test("F67: no id ever leaves its place in the path", async () => {
  await using partner = await aPartner(json({}, 404));
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom(".", "..", "../events", "%2e%2e")),
      async (id) => {
        partner.time.now += 3_600_000;
        const before = partner.server.seen.length;
        await partner.client.event(eventId(id));
        const { url } = partner.server.seen[before] ?? { url: "/energy-coordination/v1/events/none" };
        expect(url).toMatch(/^\/energy-coordination\/v1\/events\/[^/?#]+$/);
        expect(url).not.toMatch(/\/\.{1,2}$/);
      },
    ),
    { numRuns: 50 },
  );
  expect(await partner.client.event(eventId(".."))).toMatchObject({ kind: "failed", asked: false });
});

test.each([400, 414, 422])(
  "%i by id is about that id: it shows nothing about the partner's health",
  async (status) => {
    await using partner = await aPartner(json({ title: "bad id" }, status));
    expect(await partner.client.event(eventId("Ævnt"))).toMatchObject({
      kind: "failed",
      asked: false,
      status,
    });
    expect(await partner.client.list()).toMatchObject({ kind: "failed", asked: true, status });
  },
);

test("an answer about another event than the one asked for is not believed", async () => {
  await using partner = await aPartner(json(wireEvent("EV-2")));
  expect(await partner.client.event(eventId("EV-1"))).toMatchObject({ kind: "failed" });
});

test("F34: a 401 costs the token and one retry, a second one ends the attempt", async () => {
  await using partner = await aPartner((response, seen) =>
    seen.headers.authorization === "Bearer token-1"
      ? json({}, 401)(response, seen)
      : json([])(response, seen),
  );
  expect((await partner.client.list()).kind).toBe("read");
  expect(partner.identity.seen).toHaveLength(2);
});

test("a partner that answers 403 for a dead token is asked again with a new one, each time that it happens", async () => {
  let alive = "Bearer token-1";
  await using partner = await aPartner((response, seen) =>
    seen.headers.authorization === alive ? json([])(response, seen) : json({}, 403)(response, seen),
  );
  expect((await partner.client.list()).kind).toBe("read");
  for (const restarted of ["Bearer token-2", "Bearer token-3"]) {
    alive = restarted;
    expect((await partner.client.list()).kind).toBe("read");
  }
  expect(partner.identity.seen).toHaveLength(3);
});

test("a partner that forbids us for good costs one new token in fifteen minutes, and no request twice", async () => {
  await using partner = await aPartner(json({}, 403));
  for (let minute = 0; minute < 30; minute += 1) {
    expect(await partner.client.list()).toMatchObject({ kind: "failed", status: 403, retryAfter: 60_000 });
    partner.time.now += 60_000;
  }
  expect(partner.identity.seen).toHaveLength(1 + 2);
  expect(partner.server.seen).toHaveLength(30 + 2);
});

test("a 403 leaves the present token in use where no other can be had", async () => {
  await using partner = await aPartner(json([]));
  expect((await partner.client.list()).kind).toBe("read");
  partner.server.answer = json({}, 403);
  partner.identity.answer = json({}, 500);
  expect(await partner.client.list()).toMatchObject({ kind: "failed", status: 403 });
  partner.server.answer = json([]);
  expect((await partner.client.list()).kind).toBe("read");
});

test("F34: while every token is refused, the token server is not worn out", async () => {
  await using partner = await aPartner(json({}, 401));
  for (let second = 0; second < 60; second += 1) {
    partner.time.now += 1000;
    const asked = partner.server.seen.length;
    const list = await partner.client.list();
    expect(list).toMatchObject({ kind: "failed", asked: partner.server.seen.length > asked });
  }
  expect(partner.identity.seen.length).toBeLessThanOrEqual(3);
  expect(partner.server.seen.length).toBeLessThanOrEqual(5);
});

test("F33: nothing is asked inside the window of a Retry-After", async () => {
  await using partner = await aPartner(json({}, 429, { "retry-after": "30" }));
  expect(await partner.client.list()).toMatchObject({ kind: "failed", status: 429, retryAfter: 30_000 });
  partner.time.now += 29_000;
  // In the words of the refusal itself: whoever tells news once must not take the wait for other news.
  expect(await partner.client.event(eventId("EV-1"))).toMatchObject({
    asked: false,
    status: null,
    retryAfter: 1000,
    reason: "the partner answered 429",
  });
  expect(partner.server.seen).toHaveLength(1);
  partner.time.now += 1000;
  partner.server.answer = json([]);
  expect((await partner.client.list()).kind).toBe("read");
});

test("F32: 500 and 503 without a Retry-After leave the waiting to the caller", async () => {
  await using partner = await aPartner(json({}, 503));
  expect(await partner.client.list()).toMatchObject({ status: 503, retryAfter: null });
  partner.server.answer = json({}, 500);
  expect(await partner.client.list()).toMatchObject({ status: 500, retryAfter: null });
});

const broken: readonly (readonly [string, AServer["answer"]])[] = [
  ["truncated JSON", json('[{"ID":"EV-1"')],
  ["an object that is no list", json({ status: "ok" })],
  ["nothing", json("")],
  ["an HTML page", json("<html></html>", 200, { "content-type": "text/html" })],
  ["an HTML page that calls itself JSON", json("<html></html>")],
  ["another charset", json("[]", 200, { "content-type": "application/json; charset=utf-16" })],
  ["a redirect", json("[]", 302, { location: "/elsewhere" })],
  ["a 204", (response) => response.writeHead(204).end()],
  ["a partial answer", json("[]", 206)],
  [
    "gzip that nobody asked for",
    (response) =>
      response
        .writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" })
        .end(gzipSync("[]")),
  ],
  ["a body that drips", drip],
  ["17 MiB", json(`[${" ".repeat(17 * 1024 * 1024)}]`)],
];

test.each(broken)(
  "F31 F37 F38 F42: %s is a failure that leaves the list as it was",
  async (_name, answer) => {
    await using partner = await aPartner(json([wireEvent("EV-1")]));
    const first = await partner.client.list();
    if (first.kind === "read") partner.client.settled(first.delivery);
    partner.server.answer = answer;
    expect((await partner.client.list()).kind).toBe("failed");
    expect(partner.server.seen.some(({ url }) => url === "/elsewhere")).toBe(false);
    partner.server.answer = json([wireEvent("EV-1")]);
    expect((await partner.client.list()).kind).toBe("unchanged");
  },
);

test("F39: a single bad event in a list of 1,000 leaves the other 999", async () => {
  const events = Array.from({ length: 1000 }, (_, index) => wireEvent(`EV-${index}`));
  await using partner = await aPartner(
    json(events.with(500, { ...wireEvent("EV-500"), intervalPeriod: { start: "x", duration: "y" } })),
  );
  const list = await partner.client.list();
  if (list.kind !== "read") throw new Error(list.kind);
  expect(list.delivery.notices.filter(({ kind }) => kind === "event")).toHaveLength(999);
});

test("L4: no more than 300 fetches by id in an hour, and polling goes on", async () => {
  await using partner = await aPartner(json({}, 404));
  for (let fetches = 0; fetches < 310; fetches += 1) await partner.client.event(eventId(`EV-${fetches}`));
  expect(partner.server.seen).toHaveLength(300);
  expect(await partner.client.event(eventId("EV-1"))).toMatchObject({ kind: "failed", asked: false });
  expect(partner.lines.filter((line) => line.includes("our own limit"))).toHaveLength(1);
  partner.server.answer = json([]);
  expect((await partner.client.list()).kind).toBe("read");
  partner.time.now += 3_600_000;
  await partner.client.event(eventId("EV-1"));
  expect(partner.server.seen).toHaveLength(302);
});

test("F30: no partner and no token server are failures with a sentence", async () => {
  await using partner = await aPartner(json([]));
  await partner.client.list();
  await partner.server[Symbol.asyncDispose]();
  expect(await partner.client.list()).toMatchObject({
    kind: "failed",
    asked: true,
    status: null,
    retryAfter: null,
  });
  partner.time.now += 3_600_000;
  await partner.identity[Symbol.asyncDispose]();
  const list = await partner.client.list();
  expect(list.kind === "failed" && list.reason).toMatch(/^no access token: /);
});

test("no token is ever logged or given as a reason", async () => {
  await using partner = await aPartner(json({ echo: "token-1" }, 401));
  const list = await partner.client.list();
  expect(partner.lines.length).toBeGreaterThan(0);
  expect(partner.lines.join("") + JSON.stringify(list)).not.toMatch(/token-\d|hush/);
});

test("a list that is not there names the address that was asked, and the keys to check", async () => {
  for (const status of [404, 405, 307]) {
    await using partner = await aPartner(json({}, status), "/api");
    expect(await partner.client.list()).toMatchObject({
      kind: "failed",
      status,
      reason: `GET ${partner.server.origin}/api/energy-coordination/v1/events answered ${status}: check vtn.baseUrl and vtn.family`,
    });
  }
});
