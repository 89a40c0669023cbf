import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";

import { instant } from "../../src/domain/units.ts";
import { RefusedVersions } from "../../src/ocpp/relay.ts";
import { RelayStore } from "../../src/ocpp/relayStore.ts";
import { ocpp16 } from "../../src/ocpp/wire/ocpp16.ts";
import { ocpp201 } from "../../src/ocpp/wire/ocpp201.ts";
import { anEmbeddedBroker, DAEMON } from "../support/anEmbeddedBroker.ts";
import { Floor } from "../support/aFloor.ts";
import { anOrder, TestBridge, TestStation } from "../support/anOcppBridge.ts";
import { waitFor } from "../support/waitFor.ts";

/** Another central system, which keeps the texts that it receives. */
class OtherSystem implements AsyncDisposable {
  readonly received: string[] = [];
  readonly logins: (string | undefined)[] = [];
  /** Answers by action. Null: none. */
  answers: Readonly<Record<string, object | null>> = {};
  /** Codes of the next answers to meter values, which refuse. */
  errors: string[] = [];
  readonly port: number;
  readonly #server: WebSocketServer;
  #socket: WebSocket | undefined;

  private constructor(server: WebSocketServer) {
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
    server.on("connection", (socket, request) => {
      this.logins.push(`${request.url} ${request.headers.authorization?.slice(0, 5)} ${socket.protocol}`);
      this.#socket = socket;
      socket.on("message", (content: Buffer) => this.#onText(content.toString()));
    });
  }

  /** `versions`: subprotocols that it speaks. Null: any. */
  static async start(port = 0, versions: readonly string[] | null = null): Promise<OtherSystem> {
    const known = (offered: Set<string>) => [...offered].find((each) => versions?.includes(each) ?? true);
    const server = new WebSocketServer({
      port,
      host: "127.0.0.1",
      handleProtocols: (offered) => known(offered) ?? false,
    });
    await once(server, "listening");
    return new OtherSystem(server);
  }

  send(text: string): void {
    this.#socket?.send(text);
  }

  /** Ends the connections. New ones are accepted. */
  cut(): void {
    for (const socket of this.#server.clients) socket.terminate();
  }

  /** Calls of one action, as they came. */
  of(action: string): readonly unknown[][] {
    return this.received.map((text) => JSON.parse(text) as unknown[]).filter((frame) => frame[2] === action);
  }

  /** One that does not answer any more. */
  static async away(): Promise<OtherSystem> {
    const system = await OtherSystem.start();
    await system[Symbol.asyncDispose]();
    return system;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    await new Promise((closed) => this.#server.close(closed));
  }

  #onText(text: string): void {
    this.received.push(text);
    const [type, id, action] = JSON.parse(text) as [number, string, string];
    if (type !== 2) return;
    const code = action === "MeterValues" ? this.errors.shift() : undefined;
    if (code !== undefined) return this.send(JSON.stringify([4, id, code, "", {}]));
    const answer = action in this.answers ? this.answers[action] : {};
    // A blank that JSON.stringify would not write shows that the text is passed on as it is.
    if (answer !== null) this.send(`[3, ${JSON.stringify(id)}, ${JSON.stringify(answer)}]`);
  }
}

const state = (): string => {
  const directory = mkdtempSync(join(tmpdir(), "setpointd-relay-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
};
const beside = (other: { readonly port: number }, more: object = {}) =>
  TestBridge.start({ upstream: { url: `ws://127.0.0.1:${other.port}/csms` }, ...more });
const METER = {
  connectorId: 1,
  meterValue: [{ timestamp: "2026-11-23T12:00:00Z", sampledValue: [{ value: "7" }] }],
};
const isUp = (bridge: TestBridge) => waitFor(() => bridge.view().upstream?.connected === true);
const START = { connectorId: 1, idTag: "04", meterStart: 5, timestamp: "2026-11-23T12:00:00Z" };

test("messages pass both ways as they are, with the charger's own login, and the answers are the other system's", async () => {
  await using other = await OtherSystem.start();
  other.answers = {
    BootNotification: { status: "Accepted", currentTime: "2026-11-23T12:00:00Z", interval: 77 },
    StartTransaction: { transactionId: 4711, idTagInfo: { status: "Accepted" } },
  };
  await using bridge = await beside(other);
  await using station = new TestStation(bridge.url());
  await isUp(bridge);
  expect(other.logins).toEqual(["/csms/CP-1 Basic ocpp1.6"]);
  expect(
    await station.call("BootNotification", { chargePointVendor: "T", chargePointModel: "1" }),
  ).toMatchObject([3, "s-1", { interval: 77 }]);
  expect(await station.call("StartTransaction", START)).toMatchObject([3, "s-2", { transactionId: 4711 }]);
  await waitFor(() => bridge.view().connectors[0]?.transaction === "4711");
  expect(other.received[0]).toBe(
    '[2,"s-1","BootNotification",{"chargePointVendor":"T","chargePointModel":"1"}]',
  );
  other.send('[2, "csms-1", "Reset", {"type":"Soft"}]');
  await waitFor(() => station.asked("Reset").length === 1);
  await waitFor(() => other.received.includes('[3,"csms-1",{"status":"Accepted"}]'));
  // Of our own requests and their answers the other system sees nothing.
  expect(other.received.filter((text) => text.includes("sp-"))).toEqual([]);
  expect(station.asked("ChangeConfiguration")).toEqual([]);
});

test("a charger that offers two versions gets the one that the other system speaks", async () => {
  await using other = await OtherSystem.start(0, ["ocpp1.6"]);
  await using bridge = await TestBridge.start({ upstream: { url: `ws://127.0.0.1:${other.port}/csms` } });
  const protocols = ["ocpp2.0.1", "ocpp1.6"];
  {
    await using first = new TestStation(bridge.url(), { protocols });
    await waitFor(() => first.closed !== null);
    expect(first.closed?.reason).toBe(
      "connect again with OCPP 1.6: the central system (upstream) refused 2.0.1",
    );
  }
  await using station = await TestStation.boot(bridge.url(), { protocols });
  expect(station.socket.protocol).toBe("ocpp1.6");
  await waitFor(() => other.of("BootNotification").length === 1);
  expect(other.logins.at(-1)).toBe("/csms/CP-1 Basic ocpp1.6");
  // One that offers nothing else keeps its connection: it is answered here.
  await using newer = new TestStation(bridge.url("CP-2"), { protocols: ["ocpp2.0.1"] });
  await waitFor(() => bridge.view("CP-2").problems.some((problem) => problem.includes("is away")));
  expect(newer.closed).toBeNull();
});

test("a charger keeps its connection while a system that took its version refuses it for a moment, as behind a proxy", async () => {
  const versions = ["ocpp2.0.1", "ocpp1.6"];
  await using other = await OtherSystem.start(0, versions);
  await using bridge = await beside(other);
  await using station = new TestStation(bridge.url(), { protocols: ["ocpp2.0.1", "ocpp1.6"] });
  await isUp(bridge);
  versions.shift();
  other.cut();
  await waitFor(() => other.logins.length >= 3);
  versions.unshift("ocpp2.0.1");
  await isUp(bridge);
  expect([station.closed, station.socket.protocol]).toEqual([null, "ocpp2.0.1"]);
});

const at = (minute: number) => instant(1_800_000_000_000 + minute * 60_000);

test("a version that the other system has refused is tried again after ten minutes, not before", () => {
  let minute = 0;
  const [versions, both] = [new RefusedVersions(() => at(minute)), [ocpp201, ocpp16]];
  expect(versions.best([])).toBeUndefined();
  expect(versions.best(both)).toBe(ocpp201);
  expect(versions.next(ocpp201, [ocpp201])).toBeNull();
  expect(versions.next(ocpp201, both)).toBe(ocpp16);
  expect(versions.best(both)).toBe(ocpp16);
  minute = 9;
  expect(versions.next(ocpp16, both)).toBeNull();
  minute = 10;
  expect(versions.next(ocpp16, both)).toBe(ocpp201);
  expect(versions.best(both)).toBe(ocpp201);
});

test("a refused version is offered again after a day: a proxy may have refused it, or the other system is newer", () => {
  let minute = 0;
  const [versions, both] = [new RefusedVersions(() => at(minute)), [ocpp201, ocpp16]];
  versions.next(ocpp201, both);
  minute = 24 * 60 - 1;
  expect(versions.best(both)).toBe(ocpp16);
  minute = 24 * 60;
  expect(versions.best(both)).toBe(ocpp201);
});

test("while the other system is away the charger is answered, and no message of a transaction is lost, over a restart of ours", async () => {
  const folder = state();
  const away = await OtherSystem.away();
  await (async () => {
    await using bridge = await beside(away, { state: folder });
    await using station = await TestStation.boot(bridge.url());
    const [, , answer] = await station.call("StartTransaction", START);
    const { transactionId } = answer as { transactionId: number };
    await station.call("MeterValues", METER);
    await station.call("MeterValues", { ...METER, transactionId });
    expect(bridge.view().upstream).toMatchObject({ connected: false, waiting: 2 });
  })();
  await using other = await OtherSystem.start(away.port);
  other.answers = { StartTransaction: { transactionId: 4711, idTagInfo: { status: "Accepted" } } };
  await using bridge = await beside(other, { state: folder });
  await using station = new TestStation(bridge.url());
  await waitFor(() => bridge.view().upstream?.waiting === 0 && other.of("MeterValues").length === 1);
  expect(other.received.map((text) => (JSON.parse(text) as unknown[])[2])).toEqual([
    "StartTransaction",
    "MeterValues",
  ]);
  expect(other.of("MeterValues")[0]?.[3]).toMatchObject({ transactionId: 4711 });
  expect(bridge.view().upstream?.counts.delivered).toBe(2);
  expect(station.closed).toBeNull();
});

test("the charger goes on with the id that we gave, and the other system with its own", async () => {
  const away = await OtherSystem.away();
  await using bridge = await beside(away);
  await using station = await TestStation.boot(bridge.url());
  const [, , answer] = await station.call("StartTransaction", START);
  const { transactionId } = answer as { transactionId: number };
  await using other = await OtherSystem.start(away.port);
  other.answers = { StartTransaction: { transactionId: 4711 } };
  await waitFor(() => bridge.view().upstream?.waiting === 0);
  // The start of the station and its transaction, in this order.
  expect(other.received.map((text) => (JSON.parse(text) as unknown[])[2])).toEqual([
    "BootNotification",
    "StartTransaction",
  ]);
  await station.call("StopTransaction", { transactionId, meterStop: 9, timestamp: "2026-11-23T13:00:00Z" });
  expect(other.of("StopTransaction")[0]?.[3]).toMatchObject({ transactionId: 4711 });
  other.send('[2,"c-1","RemoteStopTransaction",{"transactionId":4711}]');
  await waitFor(() => station.asked("RemoteStopTransaction").length === 1);
  expect(station.asked("RemoteStopTransaction")).toEqual([{ transactionId }]);
  other.send('[2,"c-2","SetChargingProfile",{"csChargingProfiles":{"transactionId":4711}}]');
  await waitFor(() => station.asked("SetChargingProfile").length === 1);
  expect(station.asked("SetChargingProfile")).toEqual([{ csChargingProfiles: { transactionId } }]);
});

test("a message that the other system does not answer is answered here, and is delivered later", async () => {
  await using other = await OtherSystem.start();
  other.answers = { StopTransaction: null };
  await using bridge = await beside(other);
  await using station = await TestStation.boot(bridge.url());
  await isUp(bridge);
  const stop = { transactionId: 7, meterStop: 9, timestamp: "2026-11-23T13:00:00Z" };
  expect(await station.call("StopTransaction", stop)).toEqual([3, "s-2", {}]);
  expect(bridge.view().upstream?.waiting).toBe(1);
  other.answers = {};
  await station.call("MeterValues", { ...METER, transactionId: 7 });
  await waitFor(() => bridge.view().upstream?.waiting === 0);
  const order = other.received.map((text) => (JSON.parse(text) as unknown[])[2]);
  expect(order.slice(order.indexOf("StopTransaction") + 1)).toContain("StopTransaction");
  expect(order.at(-1)).toBe("MeterValues");
});

const call = (id: string, action: string, payload: object): string =>
  JSON.stringify([2, id, action, payload]);
const status = (name: string) => ({ connectorId: 1, status: name, errorCode: "NoError" });
const meter = (transactionId: number) => ({ ...METER, transactionId });
const answerTo = (station: TestStation, id: string) =>
  waitFor(() => station.results.find(([, answered]) => answered === id));

test("a late answer to a start counts: the other system gets one transaction, and its id is known", async () => {
  await using other = await OtherSystem.start();
  other.answers = { StartTransaction: null };
  await using bridge = await beside(other);
  await using station = await TestStation.boot(bridge.url());
  await isUp(bridge);
  const [, , answer] = await station.call("StartTransaction", START);
  const { transactionId } = answer as { transactionId: number };
  expect(bridge.view().upstream?.waiting).toBe(1);
  const [, id] = other.of("StartTransaction")[0] ?? [];
  other.send(JSON.stringify([3, id, { transactionId: 4711 }]));
  await waitFor(() => bridge.view().upstream?.waiting === 0);
  await station.call("StopTransaction", { transactionId, meterStop: 9, timestamp: "2026-11-23T13:00:00Z" });
  expect(other.of("StopTransaction")[0]?.[3]).toMatchObject({ transactionId: 4711 });
  expect(other.of("StartTransaction")).toHaveLength(1);
});

test("a start that the charger repeats while it waits is one transaction, with one id", async () => {
  const away = await OtherSystem.away();
  await using bridge = await beside(away);
  const first = await TestStation.boot(bridge.url());
  const [, , answer] = await first.call("StartTransaction", START);
  await first[Symbol.asyncDispose]();
  await using again = await TestStation.boot(bridge.url());
  expect((await again.call("StartTransaction", START))[2]).toEqual(answer);
  expect(bridge.view().upstream).toMatchObject({ waiting: 1, counts: { repeated: 1 } });
  expect(bridge.view().connectors[0]?.transaction).toBe(
    String((answer as { transactionId: number }).transactionId),
  );
});

test("a start that was not answered before the charger went is left to the charger", async () => {
  await using other = await OtherSystem.start();
  other.answers = { StartTransaction: null };
  await using bridge = await beside(other);
  const station = await TestStation.boot(bridge.url());
  await isUp(bridge);
  station.send(call("gone", "StartTransaction", START));
  await waitFor(() => other.of("StartTransaction").length === 1);
  await station[Symbol.asyncDispose]();
  await waitFor(() => bridge.view().state === "absent");
  other.answers = { StartTransaction: { transactionId: 4711 } };
  await using again = await TestStation.boot(bridge.url());
  expect((await again.call("StartTransaction", START))[2]).toEqual({ transactionId: 4711 });
  expect(bridge.view().upstream).toMatchObject({ waiting: 0, counts: { stored: 0 } });
});

const NAMED = { StartTransaction: { transactionId: 4711, idTagInfo: { status: "Accepted" } } };
const STOP = { transactionId: 4711, meterStop: 9, timestamp: "2026-11-23T13:00:00Z" };

test("a start and a stop that the charger repeats, because a cut took the answer, are one session there", async () => {
  const folder = state();
  await using other = await OtherSystem.start();
  other.answers = NAMED;
  const answers: unknown[] = [];
  for (let n = 0; n < 2; n += 1) {
    await using bridge = await beside(other, { state: folder });
    const first = await TestStation.boot(bridge.url());
    await isUp(bridge);
    answers.push((await first.call("StartTransaction", START))[2]);
    await first[Symbol.asyncDispose]();
    await using again = await TestStation.boot(bridge.url());
    answers.push((await again.call("StartTransaction", START))[2]);
    expect(bridge.view().connectors[0]?.transaction).toBe("4711");
  }
  expect(answers).toEqual(Array.from({ length: 4 }, () => NAMED.StartTransaction));
  expect(other.of("StartTransaction")).toHaveLength(1);
  await using bridge = await beside(other, { state: folder });
  await using station = await TestStation.boot(bridge.url());
  await station.call("StopTransaction", STOP);
  expect(await station.call("StopTransaction", STOP)).toMatchObject([3, "s-3", {}]);
  expect(other.of("StopTransaction")).toHaveLength(1);
  // A charger whose clock stands still begins its next session with the same content.
  other.answers = { StartTransaction: { transactionId: 4712 } };
  expect((await station.call("StartTransaction", START))[2]).toEqual({ transactionId: 4712 });
});

test("a start that was answered here and delivered is not sent again when the charger repeats it", async () => {
  const away = await OtherSystem.away();
  await using bridge = await beside(away);
  const first = await TestStation.boot(bridge.url());
  const [, , answer] = await first.call("StartTransaction", START);
  await using other = await OtherSystem.start(away.port);
  other.answers = NAMED;
  await waitFor(() => bridge.view().upstream?.waiting === 0);
  await first[Symbol.asyncDispose]();
  await using again = await TestStation.boot(bridge.url());
  await isUp(bridge);
  expect((await again.call("StartTransaction", START))[2]).toEqual(answer);
  expect(other.of("StartTransaction")).toHaveLength(1);
});

test("an answer that comes after the charger has gone is the answer to its repeat", async () => {
  await using other = await OtherSystem.start();
  other.answers = { StartTransaction: null };
  await using bridge = await beside(other);
  const station = await TestStation.boot(bridge.url());
  await isUp(bridge);
  station.send(call("gone", "StartTransaction", START));
  await waitFor(() => other.of("StartTransaction").length === 1);
  await station[Symbol.asyncDispose]();
  await waitFor(() => bridge.view().state === "absent");
  const again = new TestStation(bridge.url());
  // The station may learn later than the bridge that it is connected.
  const isConnected = () => again.socket.readyState === again.socket.OPEN;
  const repeated = waitFor(() => bridge.view().state === "connected" && isConnected()).then(() =>
    again.call("StartTransaction", START),
  );
  other.send(JSON.stringify([3, "gone", { transactionId: 4711 }]));
  expect((await repeated)[2]).toEqual({ transactionId: 4711 });
  expect(other.of("StartTransaction")).toHaveLength(1);
  // The former connection ends before the next one begins.
  expect(other.logins).toHaveLength(2);
  await again[Symbol.asyncDispose]();
});

test("a start whose answer a cut of the other system took comes again as it was, under its own id", async () => {
  const folder = state();
  await using other = await OtherSystem.start();
  other.answers = { StartTransaction: null };
  await (async () => {
    await using bridge = await beside(other, { state: folder });
    await using station = await TestStation.boot(bridge.url());
    await isUp(bridge);
    station.send(call("lost", "StartTransaction", START));
    await waitFor(() => other.of("StartTransaction").length === 1);
    other.cut();
    expect((await answerTo(station, "lost"))[0]).toBe(3);
    await waitFor(() => other.of("StartTransaction").length === 2);
  })();
  other.answers = NAMED;
  await using bridge = await beside(other, { state: folder });
  await using station = await TestStation.boot(bridge.url());
  await waitFor(() => bridge.view().upstream?.waiting === 0);
  const starts = other.of("StartTransaction");
  expect(starts.length).toBeGreaterThan(2);
  expect(new Set(starts.map((frame) => JSON.stringify(frame))).size).toBe(1);
  expect(station.closed).toBeNull();
});

test("messages that an earlier version stored are delivered", async () => {
  const folder = state();
  const file = join(folder, "relay.db");
  await using other = await OtherSystem.start();
  new RelayStore(file)[Symbol.dispose]();
  const relay = new DatabaseSync(file);
  relay.exec(`ALTER TABLE message DROP COLUMN sent_as;
    INSERT INTO message (station, action, payload) VALUES ('CP-1', 'StopTransaction', '{"transactionId":7}')`);
  relay.close();
  await using bridge = await beside(other, { state: folder });
  await using station = await TestStation.boot(bridge.url());
  await waitFor(() => bridge.view().upstream?.counts.delivered === 1);
  expect(other.of("StopTransaction")).toEqual([[2, "stored-1", "StopTransaction", { transactionId: 7 }]]);
  expect(station.closed).toBeNull();
});

test("a transaction of the other system with the id of an earlier one of ours is stopped as itself", async () => {
  const away = await OtherSystem.away();
  await using bridge = await beside(away);
  await using station = await TestStation.boot(bridge.url());
  const [, , answer] = await station.call("StartTransaction", START);
  const { transactionId } = answer as { transactionId: number };
  await using other = await OtherSystem.start(away.port);
  other.answers = NAMED;
  await waitFor(() => bridge.view().upstream?.waiting === 0);
  other.answers = { StartTransaction: { transactionId } };
  await station.call("StartTransaction", { ...START, meterStart: 6 });
  await station.call("StopTransaction", { ...STOP, transactionId });
  expect(other.of("StopTransaction")[0]?.[3]).toMatchObject({ transactionId });
});

test("a single request is in flight towards the other system, whatever a charger sends at once", async () => {
  await using other = await OtherSystem.start();
  other.answers = { Heartbeat: null };
  await using bridge = await beside(other);
  await using station = await TestStation.boot(bridge.url());
  await isUp(bridge);
  for (let n = 0; n < 150; n += 1) station.send(call(`h-${n}`, "Heartbeat", {}));
  // More than 100 are refused, and the charger may repeat them.
  expect(await answerTo(station, "h-149")).toEqual([
    4,
    "h-149",
    "InternalError",
    "too many messages wait for the central system",
    {},
  ]);
  expect(other.of("Heartbeat")).toHaveLength(1);
});

test("a status that the other system missed comes before the newer one, and never after it", async () => {
  const away = await OtherSystem.away();
  await using bridge = await beside(away);
  await using station = await TestStation.boot(bridge.url());
  await station.call("StatusNotification", status("Available"));
  await station.call("StatusNotification", status("Preparing"));
  await station.call("BootNotification", { chargePointVendor: "T", chargePointModel: "2" });
  await station.call("StatusNotification", status("Preparing"));
  await using other = await OtherSystem.start(away.port);
  // A newer status that comes sooner takes its place.
  await waitFor(() => other.of("StatusNotification").length === 1);
  await station.call("StatusNotification", status("Charging"));
  await waitFor(() => other.of("StatusNotification").length === 2);
  expect(
    other.received.map((text) => (JSON.parse(text) as [2, string, string, { status?: string }])[3].status),
  ).toEqual([undefined, "Preparing", "Charging"]);
});

test("a stored message that the other system leaves unanswered comes again on a new connection", async () => {
  const away = await OtherSystem.away();
  await using bridge = await beside(away);
  await using station = await TestStation.boot(bridge.url());
  await station.call("MeterValues", meter(1));
  await using other = await OtherSystem.start(away.port);
  other.answers = { MeterValues: null };
  await waitFor(() => other.logins.length === 2);
  other.answers = {};
  await waitFor(() => bridge.view().upstream?.waiting === 0);
  expect(station.closed).toBeNull();
});

test("a status that was missed is not sent after a newer one", async () => {
  const away = await OtherSystem.away();
  await using bridge = await beside(away);
  await using station = await TestStation.boot(bridge.url());
  await station.call("StatusNotification", status("Available"));
  await using other = await OtherSystem.start(away.port);
  other.answers = { BootNotification: null };
  // The boot is under way when the newer status comes.
  await waitFor(() => other.of("BootNotification").length === 1);
  await station.call("StatusNotification", status("Charging"));
  await station.call("Heartbeat", {});
  await station.call("Heartbeat", {});
  expect(other.of("StatusNotification").map(([, , , payload]) => payload)).toEqual([status("Charging")]);
});

test("a stored message that the other system refuses by a fault of its own is kept, and one that it rejects is dropped", async () => {
  const away = await OtherSystem.away();
  await using bridge = await beside(away);
  await using station = await TestStation.boot(bridge.url());
  await station.call("MeterValues", meter(1));
  await station.call("MeterValues", meter(2));
  await using other = await OtherSystem.start(away.port);
  other.errors = ["FormationViolation", "InternalError"];
  await waitFor(() => bridge.view().upstream?.counts.refused === 2);
  expect(bridge.view().upstream).toMatchObject({ waiting: 1, connected: true });
  expect(bridge.view().problems).toContain(
    "the central system (upstream) refused 2 stored messages: see the log",
  );
  expect(station.closed).toBeNull();
});

test("a message that cannot be stored is refused, so the charger keeps it", async () => {
  const folder = state();
  const away = await OtherSystem.away();
  await using bridge = await beside(away, { state: folder });
  await using station = await TestStation.boot(bridge.url());
  using relay = new DatabaseSync(join(folder, "relay.db"));
  relay.exec("DROP TABLE message; CREATE TABLE message (seq INTEGER PRIMARY KEY, station TEXT)");
  const [type, , code] = await station.call("StartTransaction", START);
  expect([type, code]).toEqual([4, "InternalError"]);
  expect(await station.call("Heartbeat", {})).toHaveLength(3);
});

const fill = (folder: string, what: string): DatabaseSync => {
  const relay = new DatabaseSync(join(folder, "relay.db"));
  relay.exec(`CREATE TRIGGER full BEFORE ${what} BEGIN SELECT RAISE(FAIL, 'database or disk is full'); END`);
  return relay;
};

test("a full disk takes no profile of the other system from the bridge, and no charger from it", async () => {
  const folder = state();
  await using other = await OtherSystem.start();
  await using bridge = await beside(other, { state: folder });
  await using station = await TestStation.boot(bridge.url());
  await isUp(bridge);
  await waitFor(() => bridge.view().state === "ready");
  using relay = fill(folder, "INSERT ON profiles");
  const csChargingProfiles = {
    chargingProfileId: 5,
    stackLevel: 0,
    chargingProfilePurpose: "ChargePointMaxProfile",
    chargingProfileKind: "Relative",
    chargingSchedule: {
      chargingRateUnit: "A",
      chargingSchedulePeriod: [{ startPeriod: 0, limit: 10 }],
    },
  };
  other.send(call("c-1", "SetChargingProfile", { connectorId: 0, csChargingProfiles }));
  await waitFor(() => bridge.view().counts.foreignProfiles === 1);
  expect(await station.call("Heartbeat", {})).toHaveLength(3);
  relay.exec("DROP TRIGGER full");
  const known = { ...csChargingProfiles, chargingProfileId: 6, stackLevel: 1 };
  other.send(call("c-2", "SetChargingProfile", { connectorId: 0, csChargingProfiles: known }));
  await waitFor(() => bridge.view().counts.foreignProfiles === 2);
  expect(relay.prepare("SELECT list FROM profiles").get()?.["list"]).toMatch(/"id":5.*"id":6/);
});

test("a full disk keeps a message that the other system has answered late, and does not send it again", async () => {
  const folder = state();
  await using other = await OtherSystem.start();
  other.answers = { StartTransaction: null };
  await using bridge = await beside(other, { state: folder });
  await using station = await TestStation.boot(bridge.url());
  await isUp(bridge);
  const [, , answer] = await station.call("StartTransaction", START);
  const { transactionId } = answer as { transactionId: number };
  using relay = fill(folder, "DELETE ON message");
  const [, id] = other.of("StartTransaction")[0] ?? [];
  other.send(JSON.stringify([3, id, { transactionId: 4711 }]));
  await station.call("Heartbeat", {});
  expect(bridge.view().upstream?.waiting).toBe(1);
  relay.exec("DROP TRIGGER full");
  await waitFor(() => bridge.view().upstream?.waiting === 0);
  await station.call("StopTransaction", { ...STOP, transactionId });
  expect(other.of("StopTransaction")[0]?.[3]).toMatchObject({ transactionId: 4711 });
  expect(other.of("StartTransaction")).toHaveLength(1);
});

test("a full disk does not keep the answer of the other system from the charger", async () => {
  const folder = state();
  const away = await OtherSystem.away();
  await using bridge = await beside(away, { state: folder });
  await using station = await TestStation.boot(bridge.url());
  const [, , answer] = await station.call("StartTransaction", START);
  const { transactionId } = answer as { transactionId: number };
  await using other = await OtherSystem.start(away.port);
  other.answers = NAMED;
  await waitFor(() => bridge.view().upstream?.waiting === 0);
  using relay = fill(folder, "DELETE ON renamed");
  other.answers = { StartTransaction: { transactionId } };
  expect((await station.call("StartTransaction", { ...START, meterStart: 6 }))[2]).toEqual({ transactionId });
  await station.call("StopTransaction", { ...STOP, transactionId });
  expect(other.of("StopTransaction")[0]?.[3]).toMatchObject({ transactionId });
  relay.exec("DROP TRIGGER full");
});

test("a profile that the other system sets or clears makes the bridge write its own again", async () => {
  await using broker = await anEmbeddedBroker();
  await using floor = await Floor.at(`mqtt://127.0.0.1:${broker.port}`, { protocolVersion: 4, ...DAEMON });
  await using other = await OtherSystem.start();
  await using bridge = await TestBridge.start(
    { upstream: { url: `ws://127.0.0.1:${other.port}/csms` } },
    `mqtt://127.0.0.1:${broker.port}`,
  );
  await using station = await TestStation.boot(bridge.url());
  await waitFor(() => floor.on("/bay-01/online").some(({ text }) => text === "true"));
  await floor.publish("setpointd/depot/chargers/bay-01/set", anOrder());
  await waitFor(() => floor.on("/bay-01/ack").length === 1);
  expect(station.asked("SetChargingProfile")).toHaveLength(1);
  other.send('[2,"c-1","ClearChargingProfile",{}]');
  await waitFor(() => station.asked("SetChargingProfile").length === 2);
  expect(station.requests.slice(-2).map(({ action }) => action)).toEqual([
    "ClearChargingProfile",
    "SetChargingProfile",
  ]);
  expect(bridge.view().counts.foreignProfiles).toBe(1);
});

/** Sections of a bridge beside the other system, with a station of two connectors. */
const withTwoConnectors = ({ port }: OtherSystem, folder: string) => ({
  upstream: { url: `ws://127.0.0.1:${port}/csms` },
  state: folder,
  stations: [
    {
      identity: "CP-1",
      password: { file: "password" },
      connectors: [1, 2].map((id) => ({ id, charger: `bay-0${id}` })),
    },
  ],
});
const STACK_OF_EIGHT = {
  GetConfiguration: {
    configurationKey: [{ key: "ChargeProfileMaxStackLevel", readonly: true, value: "8" }],
  },
};

test("the lower limit holds at a station of two connectors, whatever stack level the other system uses", async () => {
  const folder = state();
  await using broker = await anEmbeddedBroker();
  const address = `mqtt://127.0.0.1:${broker.port}`;
  await using floor = await Floor.at(address, { protocolVersion: 4, ...DAEMON });
  await using other = await OtherSystem.start();
  const sections = withTwoConnectors(other, folder);
  const answers = STACK_OF_EIGHT;
  const written = (station: TestStation) =>
    station.asked("SetChargingProfile").map(({ connectorId, csChargingProfiles }) => {
      const profile = csChargingProfiles as typeof theirs.csChargingProfiles;
      const [period] = profile.chargingSchedule.chargingSchedulePeriod;
      return [connectorId, profile.stackLevel, period?.limit];
    });
  const theirs = {
    connectorId: 2,
    csChargingProfiles: {
      chargingProfileId: 5,
      stackLevel: 8,
      chargingProfilePurpose: "TxDefaultProfile",
      chargingProfileKind: "Absolute",
      chargingSchedule: {
        startSchedule: "2026-11-23T11:00:00Z",
        chargingRateUnit: "A",
        chargingSchedulePeriod: [{ startPeriod: 0, limit: 10 }],
      },
    },
  };
  const order = async (id: string, seq: number) => {
    const before = floor.on(`/${id}/ack`).length;
    await waitFor(() => floor.on(`/${id}/online`).at(-1)?.text === "true");
    await floor.publish(`setpointd/depot/chargers/${id}/set`, anOrder({ id: `7-${seq}`, seq }));
    await waitFor(() => floor.on(`/${id}/ack`).length > before);
  };
  {
    await using bridge = await TestBridge.start(sections, address);
    await using station = await TestStation.boot(bridge.url(), { answers });
    await order("bay-01", 1);
    await order("bay-02", 1);
    other.send(JSON.stringify([2, "c-1", "SetChargingProfile", theirs]));
    // Theirs one level lower, then ours above it.
    await waitFor(() => written(station).length >= 4);
    expect(written(station).slice(0, 4)).toEqual([
      [1, 8, 16],
      [2, 8, 16],
      [2, 7, 10],
      [1, 8, 16],
    ]);
    await waitFor(() => written(station).length === 5);
    expect(written(station)[4]).toEqual([2, 8, 10]);
    expect(bridge.view().problems).toEqual([]);
    await waitFor(() => other.received.includes('[3,"c-1",{"status":"Accepted"}]'));
  }
  // Known after a restart of the bridge as well, and cleared by the level that the other system gave.
  await using bridge = await TestBridge.start(sections, address);
  await using station = await TestStation.boot(bridge.url(), { answers });
  await order("bay-02", 2);
  expect(written(station)).toEqual([[2, 8, 10]]);
  other.send('[2,"c-2","ClearChargingProfile",{"stackLevel":8}]');
  await waitFor(() => written(station).length === 2);
  expect(station.asked("ClearChargingProfile")).toEqual([{ stackLevel: 7 }]);
  expect(written(station)[1]).toEqual([2, 8, 16]);
  // A profile of a session ends with it.
  other.answers = { StartTransaction: { transactionId: 4711 } };
  await station.call("StartTransaction", { ...START, connectorId: 2 });
  const ofSession = {
    ...theirs.csChargingProfiles,
    chargingProfilePurpose: "TxProfile",
    transactionId: 4711,
  };
  await waitFor(() => written(station).length === 4);
  other.send(
    JSON.stringify([2, "c-3", "SetChargingProfile", { connectorId: 2, csChargingProfiles: ofSession }]),
  );
  await waitFor(() => written(station).length === 7);
  expect(written(station).slice(4)).toEqual([
    [2, 7, 10],
    [2, 8, 10],
    [2, 8, 10],
  ]);
  await station.call("StopTransaction", STOP);
  await order("bay-02", 3);
  expect(written(station).slice(7)).toEqual([[2, 8, 16]]);
});

test("a profile of a session is known until its end, over a restart of ours and from its remote start on", async () => {
  const folder = state();
  await using broker = await anEmbeddedBroker();
  const address = `mqtt://127.0.0.1:${broker.port}`;
  await using floor = await Floor.at(address, { protocolVersion: 4, ...DAEMON });
  await using other = await OtherSystem.start();
  other.answers = { StartTransaction: { transactionId: 4711 } };
  const sections = withTwoConnectors(other, folder);
  const answers = STACK_OF_EIGHT;
  const chargingProfile = {
    chargingProfileId: 5,
    stackLevel: 8,
    chargingProfilePurpose: "TxProfile",
    chargingProfileKind: "Relative",
    chargingSchedule: {
      chargingRateUnit: "A",
      chargingSchedulePeriod: [{ startPeriod: 0, limit: 10 }],
    },
  };
  let seq = 0;
  const ordered = async () => {
    await waitFor(() => floor.on("/bay-02/online").at(-1)?.text === "true");
    const before = floor.on("/bay-02/ack").length;
    seq += 1;
    await floor.publish("setpointd/depot/chargers/bay-02/set", anOrder({ id: `7-${seq}`, seq }));
    await waitFor(() => floor.on("/bay-02/ack").length > before);
    return (JSON.parse(floor.on("/bay-02/ack").at(-1)?.text ?? "") as { value: number }).value;
  };
  {
    await using bridge = await TestBridge.start(sections, address);
    await using station = await TestStation.boot(bridge.url(), { answers });
    expect(await ordered()).toBe(16);
    other.send(call("c-1", "RemoteStartTransaction", { idTag: "04" }));
    other.send(call("c-2", "RemoteStartTransaction", { idTag: "04", chargingProfile }));
    await waitFor(() => bridge.view().counts.foreignProfiles === 1);
    expect(station.asked("RemoteStartTransaction")).toEqual([
      { idTag: "04" },
      { idTag: "04", chargingProfile: { ...chargingProfile, stackLevel: 7 } },
    ]);
    await station.call("StartTransaction", { ...START, connectorId: 2 });
    await station.call("StatusNotification", { ...status("Charging"), connectorId: 2 });
    expect(await ordered()).toBe(10);
  }
  await waitFor(() => floor.on("/bay-02/online").at(-1)?.text === "false");
  await using bridge = await TestBridge.start(sections, address);
  await using station = await TestStation.boot(bridge.url(), { answers });
  await station.call("StatusNotification", { ...status("Available"), connectorId: 1 });
  await station.call("StatusNotification", { ...status("Charging"), connectorId: 2 });
  expect(await ordered()).toBe(10);
  await station.call("MeterValues", { ...meter(4711), connectorId: 2 });
  await station.call("StopTransaction", STOP);
  expect(await ordered()).toBe(16);
});

test("members of a wrong kind in any message cost the bridge nothing", async () => {
  const away = await OtherSystem.away();
  await using bridge = await beside(away);
  await using station = await TestStation.boot(bridge.url());
  const trap = { toString: 1, valueOf: null };
  for (const action of ["StatusNotification", "StartTransaction", "MeterValues", "BootNotification"])
    await station.call(action, {
      connectorId: trap,
      transactionId: trap,
      csChargingProfiles: { transactionId: trap },
      timestamp: trap,
      meterValue: trap,
    });
  expect(await station.call("Heartbeat", {})).toHaveLength(3);
});

test("a profile whose acceptance comes after its deadline counts, and ours is written beside it", async () => {
  await using other = await OtherSystem.start();
  await using bridge = await beside(other);
  await using station = await TestStation.boot(bridge.url(), { answers: { SetChargingProfile: null } });
  await isUp(bridge);
  await waitFor(() => bridge.view().state === "ready");
  const csChargingProfiles = {
    chargingProfileId: 5,
    stackLevel: 0,
    chargingProfilePurpose: "ChargePointMaxProfile",
    chargingProfileKind: "Relative",
    chargingSchedule: { chargingRateUnit: "A", chargingSchedulePeriod: [{ startPeriod: 0, limit: 10 }] },
  };
  other.send(call("c-1", "SetChargingProfile", { connectorId: 0, csChargingProfiles }));
  await waitFor(() => other.received.some((text) => text.startsWith('[4,"c-1","GenericError"')));
  station.answerLate("SetChargingProfile", { status: "Accepted" });
  await waitFor(() => bridge.view().counts.foreignProfiles === 1);
});

/** A file with stored readings of a charger. */
function withStored(count: number): string {
  const folder = state();
  const file = join(folder, "relay.db");
  new RelayStore(file)[Symbol.dispose]();
  using relay = new DatabaseSync(file);
  relay.exec(
    `WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ${count})
     INSERT INTO message (station, action, payload) SELECT 'CP-1', 'MeterValues', n FROM number`,
  );
  return folder;
}

test("a charger that floods while the other system is away fills no disk, and its stop is kept", async () => {
  const away = await OtherSystem.away();
  await using bridge = await beside(away, { state: withStored(20_000) });
  await using station = await TestStation.boot(bridge.url());
  const [type, , code] = await station.call("MeterValues", meter(7));
  expect([type, code]).toEqual([4, "InternalError"]);
  expect((await station.call("StopTransaction", STOP))[0]).toBe(3);
  expect(bridge.view().upstream?.waiting).toBe(20_001);
});

/** Least time of several that a new reading takes, ms: a busy machine makes only some of them longer. */
function costBeside(stored: number): number {
  using store = new RelayStore(join(withStored(stored), "relay.db"));
  const times = Array.from({ length: 30 }, () => {
    const from = performance.now();
    expect(store.isFull("CP-1")).toBe(false);
    expect(store.find("CP-1", "MeterValues", "none")).toBeNull();
    return performance.now() - from;
  });
  return Math.min(...times);
}

test("a reading costs no more after two days without the other system than after a minute", () => {
  expect(costBeside(19_000)).toBeLessThan(costBeside(10) * 10);
});

test("a request of the other system that the charger does not answer is refused after its deadline", async () => {
  await using other = await OtherSystem.start();
  await using bridge = await beside(other);
  await using station = await TestStation.boot(bridge.url(), { answers: { Reset: null } });
  await isUp(bridge);
  other.send('[2,"c-1","Reset",{}]');
  await waitFor(() => other.received.some((text) => text.startsWith('[4,"c-1","GenericError"')));
  expect(station.closed).toBeNull();
});
