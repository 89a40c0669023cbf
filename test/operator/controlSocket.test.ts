import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "undici";
import { expect, onTestFinished, test } from "vitest";

import { askDaemon, askDaemonAtLength } from "../../src/cli/daemonClient.ts";
import type { Json } from "../../src/domain/audit.ts";
import { type ControlApi, controlSocket } from "../../src/operator/controlSocket.ts";
import type { FailureOptions } from "../../src/operator/statusSocket.ts";
import { inPieces } from "../support/aListener.ts";
import { waitFor } from "../support/waitFor.ts";

const stopped = Promise.withResolvers<void>();
/** Signals of the requests to try bay-03, in order. */
const gone: AbortSignal[] = [];

const recorded: string[] = [];
const api: ControlApi = {
  audit: (query) => [{ ...query }],
  verify: async () => ({ ok: true, rows: 3 }),
  hashes: (seqs) => seqs.map((seq) => [seq, "ab"]),
  proof: async (event, format) => ({ ok: true, pieces: inPieces(`${event} as ${format}`) }),
  prices: () => [{ region: "NO1" }],
  reports: () => [{ name: "EV-1/0/0" }],
  report: (name) => (name === "EV-1/0/0" ? { body: "{}" } : null),
  resend: (name) => ({ ok: name === "EV-1/0/0", words: name }),
  poll: async () => ({ ok: true, words: "the list was read" }),
  beginCopy: () => true,
  endCopy: () => false,
  tryBrokers: async () => [{ name: "", connected: true }],
  lastMessages: () => [{ charger: "bay-01", heardAt: null }],
  limited: () => [{ charger: "bay-01", level: "10 A" }],
  commission: async ({ charger, silence, force }, progress, signal) => {
    if (charger === "bay-66") throw new TypeError("no such thing");
    progress(`telling ${charger} 32 A`);
    if (charger === "bay-02") await stopped.promise;
    if (charger === "bay-03" && gone.push(signal) === 1) await once(signal, "abort");
    return { good: true, words: `${charger} ${silence} ${force}`, complaint: null };
  },
  stopCommission: (charger) => {
    if (charger === "bay-02") stopped.resolve();
  },
  explain: (query) => ({ ok: true, value: { ...query } as Json }),
  handover: async (query) => ({ ok: true, value: { ...query } as Json }),
  mode: {
    get: () => ({ mode: "drive" }),
    put: async (body, by) => ({ ok: true, value: { put: JSON.stringify(body), by } }),
  },
  configuration: {
    get: async () => ({ state: "differs" }),
    apply: async (body, by) => ({ ok: true, value: { apply: JSON.stringify(body), by } }),
    rollback: async (body, by) => ({ ok: true, value: { rollback: JSON.stringify(body), by } }),
  },
  holds: {
    list: (query) => ({ ok: true, value: { ...query } as Json }),
    open: async (body, by, key) => ({ ok: true, value: { body: body as Json, by, key } }),
    end: async (id, body, by) => ({ ok: true, value: { id, body: body as Json, by } }),
    preview: async (body, by) => ({ ok: true, value: { body: body as Json, by } }),
  },
  bindings: {
    bind: async (charger, body, by, key) => ({ ok: true, value: { charger, body: body as Json, by, key } }),
    unbind: async (charger, body, by) => ({ ok: true, value: { charger, body: body as Json, by } }),
  },
  reboots: {
    get: (charger) => ({ ok: true, value: { charger } }),
    start: async (charger, body, by) => ({ ok: true, value: { charger, body: body as Json, by } }),
  },
  alarms: {
    list: (query) => ({ ok: true, value: { ...query } as Json }),
    acknowledge: async (key, body, by) => ({ ok: true, value: { key, body: body as Json, by } }),
  },
  recordAccess: ({ message }) => void recorded.push(message),
  metrics: async () => "setpointd_broker_up 1\n",
  departures: {
    list: () => ({ ok: true, value: [{ vehicle: "veh-214" }] }),
    of: () => null,
    set: async (vehicle, body, by) => ({ ok: true, value: { vehicle, body: body as Json, by } }),
    clear: async (vehicle, by) => ({ ok: true, value: { vehicle, by } }),
    skip: async (vehicle, body, by) => ({ ok: true, value: { vehicle, body: body as Json, by } }),
    importCsv: async (text, by, key) => ({ ok: true, value: { text: String(text), by, key } }),
  },
  release: async (charger) => ({ ok: charger !== "bay-99", words: `freed ${charger ?? "all"}` }),
};

const FAILURES: FailureOptions = { passing: () => null, onError: () => {} };

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "setpointd-"));
  onTestFinished(() => rmSync(made, { recursive: true }));
  return made;
}

async function opened(state: string, changes: Partial<ControlApi> = {}): Promise<AsyncDisposable> {
  const socket = await controlSocket(join(state, "control.sock"), { ...api, ...changes }, FAILURES);
  if (typeof socket === "string") throw new Error(socket);
  onTestFinished(() => socket[Symbol.asyncDispose]());
  return socket;
}

test("only the owner of the state may use the socket", async () => {
  const state = folder();
  await opened(state);
  expect(statSync(join(state, "control.sock")).mode & 0o777).toBe(0o600);
});

test("only a change of users or tokens is recorded with the name of the person", async () => {
  const state = folder();
  await opened(state);
  const change = { by: "ben", did: "added", kind: "user", name: "kari", role: "operator" };
  expect(await askDaemon(state, "POST", "/access", change)).toMatchObject({ status: 200 });
  expect(
    await askDaemon(state, "POST", "/access", { ...change, did: "removed", kind: "token", role: null }),
  ).toMatchObject({ status: 200 });
  for (const wrong of [{ did: "made" }, { kind: "role" }, { name: 7 }])
    expect(await askDaemon(state, "POST", "/access", { ...change, ...wrong })).toMatchObject({ status: 400 });
  expect(recorded).toEqual(["ben added the user kari as operator", "ben removed the token kari"]);
});

test("every request of the command line is answered", async () => {
  const state = folder();
  await opened(state);
  expect(await askDaemon(state, "GET", "/audit?event=EV-1")).toMatchObject({
    status: 200,
    body: [{ event: "EV-1" }],
  });
  expect(await askDaemon(state, "GET", "/audit/verify")).toMatchObject({ body: { ok: true, rows: 3 } });
  expect(await askDaemon(state, "POST", "/audit/hashes", { seqs: [3, 7] })).toMatchObject({
    body: [
      [3, "ab"],
      [7, "ab"],
    ],
  });
  const pieces: unknown[] = [];
  expect(
    await askDaemonAtLength(state, "/proof", { event: "EV/1", format: "csv" }, (line) => pieces.push(line)),
  ).toBe("answered");
  expect(pieces).toEqual([{ piece: "EV/1 as csv" }]);
  expect(await askDaemon(state, "GET", "/prices")).toMatchObject({ body: [{ region: "NO1" }] });
  expect(await askDaemon(state, "POST", "/poll")).toMatchObject({
    body: { ok: true, words: "the list was read" },
  });
  expect(await askDaemon(state, "GET", "/reports")).toMatchObject({ body: [{ name: "EV-1/0/0" }] });
  expect(await askDaemon(state, "GET", "/report?name=EV-1%2F0%2F0")).toMatchObject({
    body: { found: { body: "{}" } },
  });
  expect(await askDaemon(state, "GET", "/report?name=EV-9")).toMatchObject({ body: { found: null } });
  expect(await askDaemon(state, "POST", "/report/resend", { name: "EV-1/0/0" })).toMatchObject({
    body: { ok: true },
  });
  expect(await askDaemon(state, "GET", "/reboot?charger=bay-01")).toMatchObject({
    body: { ok: true, value: { charger: "bay-01" } },
  });
  const request = { charger: "bay-01", body: { reason: "it hangs" }, by: "anna" };
  expect(await askDaemon(state, "POST", "/reboot", request)).toMatchObject({
    body: { value: { charger: "bay-01", body: { reason: "it hangs" }, by: "anna" } },
  });
  expect(await askDaemon(state, "POST", "/reboot", { by: "anna" })).toMatchObject({ status: 400 });
  expect(await askDaemon(state, "POST", "/release", { charger: null })).toMatchObject({
    body: { words: "freed all" },
  });
  expect(await askDaemon(state, "POST", "/release", { charger: "bay-99" })).toMatchObject({
    body: { ok: false },
  });
  expect(await askDaemon(state, "GET", "/departures")).toMatchObject({
    body: { value: [{ vehicle: "veh-214" }] },
  });
  const body = { at: "05:40", soc: 80 };
  expect(
    await askDaemon(state, "POST", "/departures/set", { vehicle: "veh-214", body, by: "kari" }),
  ).toMatchObject({
    body: { value: { vehicle: "veh-214", body, by: "kari" } },
  });
  expect(
    await askDaemon(state, "POST", "/departures/import", { csv: "vehicle,at", by: "kari" }),
  ).toMatchObject({
    body: { value: { text: "vehicle,at", by: "kari", key: null } },
  });
  expect(await askDaemon(state, "POST", "/departures/clear", { vehicle: "veh-214" })).toMatchObject({
    body: { value: { vehicle: "veh-214", by: "operator" } },
  });
});

test("a proof is passed on while it is made: that of a fleet would fill the memory", async () => {
  const state = folder();
  const { promise: read, resolve } = Promise.withResolvers<void>();
  async function* pieces(): AsyncGenerator<string> {
    // A line separator in the name of an event.
    yield "first\u2028\n";
    await read;
    yield "second\n";
  }
  await opened(state, {
    proof: async (event) =>
      event === "EV-1" ? { ok: true, pieces: pieces() } : { ok: false, reason: `no event ${event}` },
  });
  const lines: unknown[] = [];
  const ask = (event: string) =>
    askDaemonAtLength(state, "/proof", { event, format: "json" }, (line) => {
      lines.push(line);
      resolve();
    });
  expect(await ask("EV-1")).toBe("answered");
  expect(await ask("EV-9")).toBe("answered");
  expect(lines).toEqual([{ piece: "first\u2028\n" }, { piece: "second\n" }, { reason: "no event EV-9" }]);
});

test("invalid input is refused with 400", async () => {
  const state = folder();
  await opened(state);
  expect(await askDaemon(state, "GET", "/audit?limit=many")).toMatchObject({ status: 400 });
  expect(await askDaemon(state, "POST", "/proof", { event: "EV-1", format: "pdf" })).toMatchObject({
    status: 400,
  });
  expect(await askDaemon(state, "POST", "/proof", { format: "json" })).toMatchObject({ status: 400 });
  for (const seqs of [undefined, 3, ["3"], [1.5]])
    expect(await askDaemon(state, "POST", "/audit/hashes", { seqs })).toMatchObject({ status: 400 });
  expect(await askDaemon(state, "POST", "/release", {})).toMatchObject({ status: 400 });
  expect(await askDaemon(state, "POST", "/release", { charger: 7 })).toMatchObject({ status: 400 });
  expect(await askDaemon(state, "POST", "/departures/set", { body: {} })).toMatchObject({ status: 400 });
  expect(await askDaemon(state, "GET", "/report")).toMatchObject({ status: 400 });
  expect(await askDaemon(state, "POST", "/report/resend", {})).toMatchObject({ status: 400 });
});

test("the socket of a killed daemon is replaced", async () => {
  const state = folder();
  writeFileSync(join(state, "control.sock"), "");
  await opened(state);
  expect(await askDaemon(state, "GET", "/audit/verify")).toMatchObject({ kind: "answered" });
});

test("without a daemon the answer is absent", async () => {
  expect(await askDaemon(folder(), "GET", "/audit/verify")).toEqual({ kind: "absent" });
});

test("a daemon that is silent, hangs up or sends invalid JSON gives a reason, not a crash", async () => {
  const asked: ((socket: Socket) => void)[] = [
    () => {},
    (socket) => socket.destroy(),
    (socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\noops"),
  ];
  const answers = asked.map(async (meet) => {
    const state = folder();
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      sockets.push(socket);
      socket.once("data", () => meet(socket));
    });
    await new Promise<void>((up) => server.listen(join(state, "control.sock"), up));
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    return askDaemon(state, "GET", "/limited", null, 1000);
  });
  const [silent, gone, nonsense] = await Promise.all(answers);
  expect(silent).toEqual({
    kind: "failed",
    reason: "the running daemon cannot be asked: no answer within 1 s",
  });
  const failed = { kind: "failed", reason: expect.stringMatching(/^the running daemon cannot be asked: \w/) };
  expect([gone, nonsense]).toEqual([failed, failed]);
});

test("a path that cannot be bound gives a reason, not a crash", async () => {
  const deep = join(folder(), "d".repeat(120));
  expect(await controlSocket(join(deep, "control.sock"), api, FAILURES)).toContain("too long");
  expect(await controlSocket(join(folder(), "nowhere", "control.sock"), api, FAILURES)).toContain(
    "cannot be listened on",
  );
  const state = folder();
  mkdirSync(join(state, "control.sock"));
  expect(await controlSocket(join(state, "control.sock"), api, FAILURES)).toContain("cannot be listened on");
});

test("a request that fails says why where that may pass, and is a bug for the log where not", async () => {
  const state = folder();
  const bugs: unknown[] = [];
  const away = new Error("Connection terminated unexpectedly");
  const bug = new TypeError("x is undefined");
  const failing: ControlApi = {
    ...api,
    verify: () => Promise.reject(away),
    prices: () => {
      throw bug;
    },
  };
  const socket = await controlSocket(join(state, "control.sock"), failing, {
    passing: (error) => (error === away ? `database: ${away.message}` : null),
    onError: (error) => bugs.push(error),
  });
  if (typeof socket === "string") throw new Error(socket);
  onTestFinished(() => socket[Symbol.asyncDispose]());
  expect(await askDaemon(state, "GET", "/audit/verify")).toMatchObject({
    status: 503,
    reason: "the running daemon refuses (503): database: Connection terminated unexpectedly",
  });
  expect(bugs).toEqual([]);
  expect(await askDaemon(state, "GET", "/prices")).toMatchObject({
    status: 500,
    reason: "the running daemon refuses (500): internal error: the log of the daemon has it",
  });
  expect(bugs).toEqual([bug]);
});

test("a trial reports line by line until it is stopped", async () => {
  const state = folder();
  expect(await askDaemonAtLength(state, "/commission", { charger: "bay-01" }, () => {})).toBe("absent");
  await opened(state);
  const lines: unknown[] = [];
  const asked = { charger: "bay-01", silence: true };
  expect(await askDaemonAtLength(state, "/commission", asked, (line) => lines.push(line))).toBe("answered");
  expect(lines).toEqual([
    { progress: "telling bay-01 32 A" },
    { done: { good: true, words: "bay-01 true false", complaint: null } },
  ]);
  const stop = () => askDaemon(state, "POST", "/commission/stop", { charger: "bay-02" });
  const onLine = (line: unknown): void => {
    lines.push(line);
    if (lines.length === 3) void stop();
  };
  expect(await askDaemonAtLength(state, "/commission", { charger: "bay-02" }, onLine)).toBe("answered");
  expect(lines.at(-1)).toMatchObject({ done: { words: "bay-02 false false" } });
  expect(await askDaemon(state, "POST", "/commission", { charger: 7 })).toMatchObject({ status: 400 });
  expect(await askDaemon(state, "POST", "/commission/stop", null)).toMatchObject({ status: 400 });
});

test("a client that hangs up ends its own trial, not another client's trial of the same charger", async () => {
  const state = folder();
  await opened(state);
  const client = new Client("http://localhost", { socketPath: join(state, "control.sock") });
  onTestFinished(() => client.destroy());
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ charger: "bay-03" });
  const running = await client.request({ method: "POST", path: "/commission", headers, body });
  running.body.on("error", () => {});
  expect(await askDaemonAtLength(state, "/commission", { charger: "bay-03" }, () => {})).toBe("answered");
  await waitFor(() => gone[1]?.aborted === true);
  expect(gone[0]?.aborted).toBe(false);
  await client.destroy();
  await waitFor(() => gone[0]?.aborted === true);
});

test("a bug in a trial becomes its answer and does not stop the daemon", async () => {
  const state = folder();
  await opened(state);
  const lines: unknown[] = [];
  const asked = { charger: "bay-66" };
  expect(await askDaemonAtLength(state, "/commission", asked, (line) => lines.push(line))).toBe("answered");
  const complaint = "a bug: TypeError: no such thing";
  expect(lines).toEqual([{ done: { good: false, tried: null, words: null, complaint } }]);
});
