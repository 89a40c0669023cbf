import { request } from "node:http";
import { connect } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";

import type { Json } from "../../../src/domain/audit.ts";
import { invalid } from "../../../src/operator/answer.ts";
import { pricesView } from "../../../src/operator/listViews.ts";
import { auditParameters } from "../../../src/operator/recordPages.ts";
import { OperatorListener } from "../../../src/operator/http/server.ts";
import { LiveStream } from "../../../src/operator/http/stream.ts";
import type { OperatorViews } from "../../../src/operator/http/views.ts";
import type { Health } from "../../../src/platform/systemd.ts";
import { priceBoard } from "../../../src/prices/board.ts";
import { inPieces, someListener, someViews } from "../../support/aListener.ts";
import { someFleet } from "../../support/someAnswers.ts";

let ready = true;
let health: Health = { fit: true, status: "controlling" };
const views: OperatorViews = {
  ready: () => ready,
  health: () => health,
  status: () => ({ mode: "drive" }),
  site: () => ({ site: "depot" }),
  events: () => [{ id: "EV-1" }],
  chargers: () => [],
  vehicles: () => [],
  audit: (query) => [{ ...query }],
  verify: async () => ({ ok: true, rows: 3, head: "abc" }),
  prices: () => [{ region: "NO1" }],
  reports: () => [{ name: "EV-1/0/0" }],
  explain: ({ charger }) =>
    charger === "bay-01"
      ? { ok: true, value: { charger } }
      : invalid({ path: "charger", found: null, expected: "an id" }),
  handover: async ({ since }) => ({ ok: true, value: { since: String(since) } }),
  readings: async () => ({ ok: true, value: {} }),
  stream: new LiveStream(),
  resend: async (charger) => ({ ok: true, value: { charger } }),
  reboots: someViews.reboots,
  bindings: someViews.bindings,
  bundle: someViews.bundle,
  sitePower: async () => ({ ok: true, value: {} }),
  configuration: someViews.configuration,
  trials: {
    get: (charger) => ({ ok: true, value: { charger } }),
    start: async (charger) => ({ ok: true, value: { charger } }),
    stop: (charger) => ({ ok: true, value: { charger } }),
    brokers: async (reason, by) => ({ ok: true, value: { reason, by } }),
  },
  eventPlan: async (event) => ({ ok: true, value: { event } }),
  proof: async () => ({ ok: true, pieces: inPieces("") }),
  mode: {
    get: () => ({ mode: "drive" }),
    put: async (body, by) => ({ ok: true, value: { put: JSON.stringify(body), by } }),
  },
  holds: {
    list: (query) => ({ ok: true, value: { ...query } as Json }),
    open: async (body, by, key) => ({ ok: true, value: { body: body as Json, by, key } }),
    end: async (id, body, by) => ({ ok: true, value: { id, body: body as Json, by } }),
    preview: async (body, by) => ({ ok: true, value: { body: body as Json, by } }),
  },
  alarms: {
    list: ({ state }) => ({
      ok: true,
      value: ["broker", "disk", "clock"].map((key) => ({ key, state: (state ?? "open") as string })),
    }),
    acknowledge: async (key, body, by) => ({ ok: true, value: { key, body: body as Json, by } }),
  },
  departures: someViews.departures,
  metrics: { contentType: "text/plain; version=0.0.4", text: async () => "up 1\n" },
};

let listener: OperatorListener;
beforeEach(async () => {
  ready = true;
  listener = await OperatorListener.start(someListener({ hosts: ["gateway-7"] }), Promise.resolve(views));
});
afterEach(() => listener[Symbol.asyncDispose]());

const get = (path: string): Promise<Response> => fetch(`http://127.0.0.1:${listener.port}${path}`);

test("health is about the process, readiness about the daemon", async () => {
  expect((await get("/healthz")).status).toBe(200);
  expect((await get("/readyz")).status).toBe(200);
  ready = false;
  expect((await get("/healthz")).status).toBe(200);
  expect((await get("/readyz")).status).toBe(503);
});

test("health names what works only in part, and is an error only where a restart may help", async () => {
  health = { fit: true, status: "nothing new can be recorded or started: the disk is full" };
  const partly = await get("/healthz");
  expect([partly.status, await partly.text()]).toEqual([200, `${health.status}\n`]);
  health = { fit: false, status: "the last evaluation is 200 s old" };
  expect((await get("/healthz")).status).toBe(503);
});

test("the API answers JSON, and an unknown path a JSON 404", async () => {
  expect(await (await get("/api/v1/events")).json()).toEqual([{ id: "EV-1" }]);
  expect(await (await get("/api/v1/prices")).json()).toEqual([{ region: "NO1" }]);
  expect(await (await get("/api/v1/reports")).json()).toEqual([{ name: "EV-1/0/0" }]);
  const missing = await get("/api/v1/nothing");
  expect([missing.status, await missing.json()]).toEqual([
    404,
    {
      type: "about:blank",
      title: "Not Found",
      status: 404,
      detail: "not found",
      error: "not found",
      errors: [],
    },
  ]);
  expect(missing.headers.get("content-type")).toBe("application/problem+json; charset=utf-8");
});

test("a path that cannot be decoded is answered as every other mistake", async () => {
  const answer = await get("/api/v1/departures/%ff");
  expect([answer.status, answer.headers.get("content-type"), await answer.json()]).toMatchObject([
    400,
    "application/problem+json; charset=utf-8",
    { status: 400, errors: [] },
  ]);
  const secured = ["content-security-policy", "referrer-policy", "x-content-type-options"];
  expect(secured.filter((name) => !answer.headers.has(name))).toEqual([]);
});

test("the name of a site that cannot be decoded is answered as every other mistake, and ends nothing", async () => {
  await using fleet = await OperatorListener.start(
    someListener({ fleet: someFleet }),
    Promise.resolve(views),
  );
  for (const path of ["/sites/%E0%A4/", "/sites/%/api/v1/status", "/sites/%ff"]) {
    const answer = await fetch(`http://127.0.0.1:${fleet.port}${path}`);
    expect([path, answer.status, await answer.json()]).toMatchObject([path, 400, { status: 400 }]);
  }
  expect((await fetch(`http://127.0.0.1:${fleet.port}/api/v1/sites`)).status).toBe(200);
});

test("an id of 256 characters and the longest key of an alarm are found by their path", async () => {
  const id = "\u{1F68C}".repeat(256);
  for (const path of [`events/${"E".repeat(256)}/plan`, `events/${encodeURIComponent(id)}/plan`])
    expect([path.length, (await get(`/api/v1/${path}`)).status]).toEqual([path.length, 200]);
  const key = `rejected:${"~1f68c~".repeat(256)}`;
  const acknowledged = await fetch(`http://127.0.0.1:${listener.port}/api/v1/alarms/${key}/acknowledge`, {
    method: "POST",
  });
  expect(acknowledged.status).toBe(200);
});

test("a probe of HTTP/1.0 without a Host is answered", async () => {
  const answer = await new Promise<string>((resolve, reject) => {
    const socket = connect(listener.port, "127.0.0.1", () => socket.write("GET /readyz HTTP/1.0\r\n\r\n"));
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
    socket.on("end", () => resolve(text));
    socket.on("error", reject);
  });
  expect(answer).toMatch(/^HTTP\/1\.1 200 /);
});

test("an unknown query parameter is refused by name, not ignored", async () => {
  const all = "event, charger, kind, after, before, limit, newest";
  for (const [path, error] of [
    [
      "/api/v1/audit?chargr=bay-01",
      { path: "chargr", found: "an unknown key", expected: `did you mean charger? One of: ${all}` },
    ],
    ["/api/v1/chargers?id=bay-01", { path: "id", found: "an unknown key", expected: "one of: limit, after" }],
    ["/api/v1/status?x=1", { path: "x", found: "an unknown key", expected: "no key here" }],
    ["/api/v1/audit?newest", { path: "newest", found: '"" (text)', expected: "true or false" }],
    ["/api/v1/audit?newest=yes", { path: "newest", found: '"yes" (text)', expected: "true or false" }],
    ["/api/v1/audit?charger=a&charger=b", { path: "charger", found: "a list", expected: "a text" }],
  ] as const) {
    const refused = await get(path);
    expect([refused.status, await refused.json()]).toMatchObject([
      400,
      { status: 400, errors: [error], error: `${error.path}: ${error.found}; expected ${error.expected}` },
    ]);
  }
});

test("an explanation is JSON, and a mistake is problem+json with its path", async () => {
  expect(await (await get("/api/v1/explain?charger=bay-01")).json()).toEqual({ charger: "bay-01" });
  const refused = await get("/api/v1/explain");
  expect([refused.status, refused.headers.get("content-type"), await refused.json()]).toEqual([
    400,
    "application/problem+json; charset=utf-8",
    {
      type: "about:blank",
      status: 400,
      title: "the request is not valid",
      detail: "charger: an id",
      error: "charger: an id",
      errors: [{ path: "charger", found: null, expected: "an id" }],
    },
  ]);
});

const post = (path: string, init: RequestInit = {}): Promise<Response> =>
  fetch(`http://127.0.0.1:${listener.port}/api/v1/${path}`, { method: "POST", ...init });

test("a request without a body is one without members, and its mistakes are named as JSON", async () => {
  const done = await post("alarms/broker/acknowledge");
  expect([done.status, await done.json()]).toMatchObject([200, { key: "broker", body: { note: "" } }]);
  const opened = (await (await post("holds")).json()) as { errors: { path: string; found: string }[] };
  expect(opened.errors.map(({ path, found }) => `${path}: ${found}`)).toEqual([
    "scope: nothing",
    "kind: nothing",
    "until: nothing",
    "reason: nothing",
  ]);
  const headers = { "content-type": "application/json" };
  const odd = await post("alarms/broker/acknowledge", { headers, body: '["a note"]' });
  expect(await odd.json()).toMatchObject({
    status: 400,
    errors: [{ path: "", found: "a list", expected: "a JSON object" }],
  });
  const broken = await post("alarms/broker/acknowledge", { headers, body: '{"note":"cut o' });
  expect([broken.status, await broken.json()]).toMatchObject([
    400,
    { errors: [{ path: "", found: "no JSON that can be read", expected: "a JSON object" }] },
  ]);
  const wrong = await post("alarms/broker/acknowledge", { headers, body: '{"note":{"a":1}}' });
  expect(await wrong.json()).toMatchObject({
    errors: [{ path: "note", found: "a JSON object", expected: "a text" }],
  });
});

test("metrics have the content type that Prometheus expects", async () => {
  const response = await get("/metrics");
  expect(response.headers.get("content-type")).toContain("version=0.0.4");
  expect(await response.text()).toBe("up 1\n");
});

test("the record is read page by page, and an invalid query is explained", async () => {
  const response = await get("/api/v1/audit?event=EV-1&after=12&limit=50&newest=true");
  expect(await response.json()).toEqual([{ event: "EV-1", after: 12, limit: 50, newest: true }]);
  const older = await get("/api/v1/audit?before=50&newest=true");
  expect(await older.json()).toEqual([{ before: 50, limit: 1000, newest: true }]);
  expect(await (await get("/api/v1/audit/check")).json()).toEqual({ ok: true, rows: 3, head: "abc" });
  expect(await (await get("/api/v1/audit?after=50.16")).json()).toMatchObject([{ after: 50, part: 16 }]);
  const refused = await get("/api/v1/audit?after=yesterday");
  expect([refused.status, await refused.json()]).toMatchObject([
    400,
    {
      errors: [
        {
          path: "after",
          found: '"yesterday" (text)',
          expected: "the seq of a row, e.g. 50; or seq.part, e.g. 50.16",
        },
      ],
    },
  ]);
});

test("both price series of a region have their place in the pages", async () => {
  const board = priceBoard(
    ["NO1", "NO2"].flatMap((region) => (["actual", "forecast"] as const).map((kind) => ({ region, kind }))),
    [],
  );
  await using priced = await OperatorListener.start(
    someListener(),
    Promise.resolve({ ...views, prices: () => pricesView(board) }),
  );
  const read: string[] = [];
  for (let after = ""; ; after = `&after=${encodeURIComponent(read.at(-1) ?? "")}`) {
    const answer = await fetch(`http://127.0.0.1:${priced.port}/api/v1/prices?limit=1${after}`);
    const rows = (await answer.json()) as { readonly id: string }[];
    if (rows.length === 0) break;
    read.push(...rows.map(({ id }) => id));
  }
  expect(read).toEqual(["NO1", "NO1/forecast", "NO2", "NO2/forecast"]);
});

test("a page of a long list builds no row behind it, and the whole list holds up nothing else", async () => {
  let [built, turns, isAnswered] = [0, 0, false];
  const inTurns = (): void => {
    turns += 1;
    if (!isAnswered) setImmediate(inTurns);
  };
  const vehicles = function* (): Generator<Json> {
    while (built < 20_000) yield { id: `veh-${(built += 1)}`, charger: null };
  };
  await using large = await OperatorListener.start(someListener(), Promise.resolve({ ...views, vehicles }));
  const rows = async (query: string): Promise<readonly { readonly id: string }[]> => {
    built = 0;
    const answer = await fetch(`http://127.0.0.1:${large.port}/api/v1/vehicles${query}`);
    return (await answer.json()) as readonly { readonly id: string }[];
  };
  expect((await rows("?limit=3")).map(({ id }) => id)).toEqual(["veh-1", "veh-2", "veh-3"]);
  expect(built).toBe(3);
  expect((await rows("?limit=2&after=veh-40")).map(({ id }) => id)).toEqual(["veh-41", "veh-42"]);
  expect(built).toBe(42);
  expect([await rows("?limit=0"), await rows("?limit=0&after=veh-2")]).toEqual([[], []]);
  inTurns();
  const all = await rows("");
  isAnswered = true;
  expect([all.length, all.at(-1)?.id]).toEqual([20_000, "veh-20000"]);
  expect(turns).toBeGreaterThan(20);
});

test("alarms are read page by page, of one state or of all", async () => {
  const page = await get("/api/v1/alarms?after=broker&limit=1&state=acknowledged");
  expect(await page.json()).toEqual([{ key: "disk", state: "acknowledged" }]);
  const all = (await (await get("/api/v1/alarms")).json()) as { readonly key: string }[];
  expect(all.map(({ key }) => key)).toEqual(["broker", "disk", "clock"]);
  expect((await get("/api/v1/alarms?after=door")).status).toBe(400);
});

test("a request gets at most ten thousand rows", () => {
  expect(auditParameters({ limit: "999999" })).toMatchObject({ limit: 10_000 });
  expect(auditParameters({})).toMatchObject({ limit: 1000, newest: false });
  expect(auditParameters({ after: "-1" })).toBeTypeOf("string");
});

test("rows of one kind are answered, alone and for a charger or an event; an unknown kind is refused", () => {
  expect(auditParameters({ charger: "bay-01", kind: "operator" })).toMatchObject({ kind: "operator" });
  expect(auditParameters({ event: "EV-1", kind: "outcome" })).toMatchObject({ kind: "outcome" });
  expect(auditParameters({ kind: "operator" })).toMatchObject({ kind: "operator" });
  expect(auditParameters({ charger: "bay-01", kind: "door" })).toBeTypeOf("string");
});

test("an event is found in any Unicode composition of its id", () => {
  expect(auditParameters({ event: "Zu\u0308rich" })).toMatchObject({ event: "Z\u00fcrich" });
});

const ask = async (method: string, path: string) => {
  const response = await fetch(`http://127.0.0.1:${listener.port}${path}`, { method });
  return [response.status, response.headers.get("allow"), await response.json()];
};

test("a path that is there refuses other methods with 405 and names its own", async () => {
  for (const method of ["POST", "PUT", "DELETE", "PATCH"])
    expect(await ask(method, "/api/v1/chargers?limit=1")).toEqual([
      405,
      "GET, HEAD",
      {
        type: "about:blank",
        title: "Method Not Allowed",
        status: 405,
        detail: `GET, HEAD here, not ${method}`,
        error: `GET, HEAD here, not ${method}`,
        errors: [],
      },
    ]);
  expect((await ask("PUT", "/healthz")).slice(0, 2)).toEqual([405, "GET, HEAD"]);
  expect((await ask("DELETE", "/api/v1/holds")).slice(0, 2)).toEqual([405, "GET, HEAD, POST"]);
  expect((await ask("GET", "/api/v1/holds/hold-1")).slice(0, 2)).toEqual([405, "DELETE"]);
  expect((await ask("GET", "/api/v1/alarms/a%2Fb/acknowledge")).slice(0, 2)).toEqual([405, "POST"]);
  expect((await ask("POST", "/api/v1/chargers/bay-01")).slice(0, 2)).toEqual([404, null]);
});

test("HEAD of the live stream is answered, and opens none", async () => {
  const stream = new LiveStream().follow({ epoch: 1, collect: () => {}, take: () => [] });
  await using own = await OperatorListener.start(someListener({}), Promise.resolve({ ...someViews, stream }));
  const answer = await fetch(`http://127.0.0.1:${own.port}/api/v1/stream`, { method: "HEAD" });
  expect([answer.status, answer.headers.get("content-type")]).toEqual([
    200,
    "text/event-stream; charset=utf-8",
  ]);
});

test("a body of another media type than JSON is 415, and a moment that is none is explained", async () => {
  const text = await post("holds", { headers: { "content-type": "text/plain" }, body: "{}" });
  expect([text.status, await text.json()]).toMatchObject([
    415,
    { status: 415, detail: "text/plain; expected application/json", errors: [] },
  ]);
  // curl sends a form unless told otherwise.
  const form = await post("holds", { body: new URLSearchParams({ reason: "leaves early" }) });
  expect([form.status, await form.json()]).toMatchObject([
    415,
    { detail: "application/x-www-form-urlencoded;charset=UTF-8; expected application/json", errors: [] },
  ]);
  const csv = await post("holds", { headers: { "content-type": "text/csv" }, body: "vehicle,at" });
  expect([csv.status, await csv.json()]).toMatchObject([
    415,
    { detail: "text/csv; expected application/json" },
  ]);
  const json = await post("departures", { headers: { "content-type": "application/json" }, body: "{}" });
  expect([json.status, await json.json()]).toMatchObject([
    415,
    { detail: "application/json; expected text/csv" },
  ]);
  const hold = {
    scope: { vehicle: "veh-1" },
    kind: "exempt",
    until: { at: "05:40" },
    reason: "leaves early",
  };
  const headers = { "content-type": "application/json" };
  const odd = await post("holds", { headers, body: JSON.stringify(hold) });
  expect(await odd.json()).toMatchObject({
    status: 400,
    errors: [{ path: "until.at", found: '"05:40" (text)', expected: "a moment, e.g. 2026-11-21T06:00:00Z" }],
  });
});

const statusAt = (host: string): Promise<number> =>
  new Promise((done, failed) => {
    request({ port: listener.port, host: "127.0.0.1", path: "/api/v1/status", headers: { host } })
      .on("response", (response) => done(response.resume().statusCode ?? 0))
      .on("error", failed)
      .end();
  });

test("a page whose name was pointed at this machine gets no data (DNS rebinding)", async () => {
  expect(await statusAt("evil.example:8080")).toBe(421);
  expect(await statusAt("gateway-7:8080")).toBe(200);
  expect(await statusAt(`127.0.0.1:${listener.port}`)).toBe(200);
});

test("idle connections do not pile up and do not block others", async () => {
  const idle = Array.from({ length: 100 }, () =>
    connect(listener.port, "127.0.0.1").on("error", () => undefined),
  );
  await Promise.all(idle.map((socket) => new Promise((ready) => socket.once("connect", ready))));
  expect(await statusAt("localhost")).toBe(200);
  expect(
    idle.filter(({ closed, readableEnded, destroyed }) => !(closed || readableEnded || destroyed)).length,
  ).toBeLessThanOrEqual(64);
  for (const socket of idle) socket.destroy();
});
