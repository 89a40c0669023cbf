import { connectAsync, type MqttClient } from "mqtt";
import { afterEach, beforeEach, expect, test } from "vitest";
import { anEmbeddedBroker, DAEMON } from "../support/anEmbeddedBroker.ts";
import { nativeFilters, nativeTopics, readNative, writeSet } from "../../src/chargers/native/messages.ts";
import type { Command } from "../../src/domain/command.ts";
import type { Desired } from "../../src/domain/setpoint.ts";
import type { ChargerMessage } from "../../src/domain/telemetry.ts";
import { amperes, chargerId, instant, millis, seconds } from "../../src/domain/units.ts";
import { SimulatedChargers, type ChargerSetup } from "../../src/sim/chargers.ts";
import { freePort } from "../support/freePort.ts";
import { Mosquitto, mosquittoAvailable } from "../support/mosquitto.ts";
import { waitFor } from "../support/waitFor.ts";
import { now, silent } from "./clock.ts";

const [PREFIX, SITE, BAY] = ["setpointd", "depot-north", chargerId("bay-01")] as const;

const aBay = (id: string): ChargerSetup => ({
  traits: {
    id: chargerId(id),
    phases: 3,
    voltage: 230,
    minCurrent: amperes(6),
    maxCurrent: amperes(32),
    ownDefault: amperes(32),
    ramp: 100,
  },
  vehicle: { id: "bus-201", identity: null, maxCurrent: amperes(32), capacityWh: 300_000, soc: 40 },
});

const current = (value: number): Desired => ({ kind: "current", amperes: amperes(value) });

/** The daemon's side: all messages of the chargers, read by the daemon's own decoder. */
class Gateway implements AsyncDisposable {
  readonly received: ChargerMessage[] = [];
  readonly #client: MqttClient;

  constructor(client: MqttClient) {
    this.#client = client;
    client.on("message", (topic, payload, { retain }) => {
      const message = readNative([PREFIX, SITE], { topic, payload, retained: retain }, now());
      if (message) this.received.push(message);
    });
  }

  static async start(url: string): Promise<Gateway> {
    const client = await connectAsync(url, { ...DAEMON, protocolVersion: 4, reconnectPeriod: 50 });
    const gateway = new Gateway(client);
    await client.subscribeAsync([...nativeFilters(PREFIX, SITE)], { qos: 1 });
    return gateway;
  }

  async set(seq: number, desired: Desired, lease = seconds(180)): Promise<void> {
    const command: Command = {
      charger: BAY,
      epoch: 7,
      seq,
      desired,
      until: null,
      vehicle: null,
      event: null,
      cause: "event",
      decidedAt: instant(0),
    };
    const topic = nativeTopics(PREFIX, SITE, BAY)?.set ?? "";
    await this.#client.publishAsync(topic, writeSet(command, lease), {
      qos: 1,
    });
  }

  last<K extends ChargerMessage["kind"]>(kind: K) {
    return this.received.findLast(
      (message): message is ChargerMessage & { kind: K } => message.kind === kind,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.endAsync(true);
  }
}

let stack: AsyncDisposableStack;
beforeEach(() => void (stack = new AsyncDisposableStack()));
afterEach(() => stack.disposeAsync());

async function aDepot(url: string, setups: readonly ChargerSetup[] = [aBay(BAY)]) {
  const gateway = stack.use(await Gateway.start(url));
  const chargers = stack.use(
    SimulatedChargers.start({
      url,
      prefix: PREFIX,
      site: SITE,
      chargers: setups,
      now,
      log: silent,
      telemetryEvery: millis(300),
      reconnectAfter: millis(50),
    }),
  );
  await chargers.whenOnline();
  return { gateway, chargers };
}

const embedded = async () => `mqtt://127.0.0.1:${stack.use(await anEmbeddedBroker()).port}`;

test("a charger comes online, acknowledges a setpoint and reports that it follows", async () => {
  const { gateway, chargers } = await aDepot(await embedded());
  await waitFor(() => gateway.last("online")?.online);
  await gateway.set(1, current(16));
  await waitFor(() => gateway.last("ack"));
  expect(gateway.last("ack")).toEqual({
    kind: "ack",
    charger: BAY,
    id: "7-1",
    accepted: true,
    value: 16,
    reason: null,
  });
  await waitFor(() => gateway.last("telemetry")?.telemetry.currentsA?.[0] === 16);
  expect(gateway.last("telemetry")?.telemetry).toMatchObject({
    state: "charging",
    vehicle: "bus-201",
    powerW: 11_040,
    limitA: 16,
  });
  expect(chargers.received(BAY)).toMatchObject([{ retained: false, set: { id: "7-1", lease: 180_000 } }]);
});

test("without a refresh the charger returns to its own default", async () => {
  const { gateway } = await aDepot(await embedded());
  await gateway.set(1, current(8), seconds(1));
  await waitFor(() => gateway.last("telemetry")?.telemetry.limitA === 8);
  await waitFor(() => gateway.last("telemetry")?.telemetry.limitA === 32);
});

test("an older command is rejected with a reason", async () => {
  const { gateway } = await aDepot(await embedded());
  await gateway.set(5, current(16));
  await waitFor(() => gateway.last("ack")?.id === "7-5");
  await gateway.set(4, current(8));
  await waitFor(() => gateway.last("ack")?.id === "7-4");
  expect(gateway.last("ack")).toMatchObject({ accepted: false, reason: "older than 7-5" });
});

test("a lost charger is reported offline by its last will, and online when it returns", async () => {
  const { gateway, chargers } = await aDepot(await embedded());
  await chargers.at(BAY).dropOff();
  await waitFor(() => gateway.last("online")?.online === false);
  chargers.at(BAY).comeBack();
  await waitFor(() => gateway.last("online")?.online === true);
});

test("a reboot loses the setpoint", async () => {
  const { gateway, chargers } = await aDepot(await embedded());
  await gateway.set(1, current(8));
  await waitFor(() => gateway.last("telemetry")?.telemetry.limitA === 8);
  await chargers.at(BAY).reboot();
  await waitFor(() => gateway.last("telemetry")?.telemetry.limitA === 32);
});

test("a faulty charger can accept without applying, apply without an acknowledgement, or reject", async () => {
  const { gateway, chargers } = await aDepot(await embedded());
  const bay = chargers.at(BAY);
  bay.faults = { ignoresSetpoints: true };
  await gateway.set(1, current(8));
  await waitFor(() => gateway.last("ack")?.accepted);
  expect(chargers.model(BAY).order).toBeNull();
  bay.faults = { neverAcks: true };
  await gateway.set(2, current(8));
  await waitFor(() => gateway.last("telemetry")?.telemetry.limitA === 8);
  expect(gateway.last("ack")?.id).toBe("7-1");
  bay.faults = { refuses: "locked" };
  await gateway.set(3, current(16));
  await waitFor(() => gateway.last("ack")?.reason === "locked");
});

test("unplugging is published at once", async () => {
  const { gateway, chargers } = await aDepot(await embedded());
  chargers.at(BAY).plug(null);
  await waitFor(() => gateway.last("telemetry")?.telemetry.state === "unplugged");
});

test("two hundred chargers come online on one broker", async () => {
  const setups = Array.from({ length: 200 }, (_, index) => aBay(`bay-${index}`));
  const { gateway } = await aDepot(await embedded(), setups);
  const online = () =>
    new Set(gateway.received.filter(({ kind }) => kind === "online").map((m) => m.charger));
  await waitFor(() => online().size === 200);
});

test.skipIf(!mosquittoAvailable)("F85 after the broker was killed every charger reconnects", async () => {
  const broker = stack.use(await Mosquitto.start({ port: await freePort() }));
  const { gateway } = await aDepot(broker.url);
  await waitFor(() => gateway.last("online")?.online);
  await broker.kill();
  // Both have the same client id: the first one would return, and take the connection of the second one over.
  await gateway[Symbol.asyncDispose]();
  await broker.start();
  const again = stack.use(await Gateway.start(broker.url));
  await waitFor(() => again.last("online")?.online && again.last("telemetry"));
});
