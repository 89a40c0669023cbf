import { connectAsync, type MqttClient } from "mqtt";
import { afterEach, beforeEach, test } from "vitest";

import { chargerId } from "../../src/domain/units.ts";
import { MODELS, MixedFloor } from "../../src/sim/mixedFloor.ts";
import type { MqttModel } from "../../src/sim/mqttModel.ts";
import { boundTo } from "../chargers/profile/aTrial.ts";
import { Mosquitto, mosquittoAvailable } from "../support/mosquitto.ts";
import { waitFor } from "../support/waitFor.ts";
import { now, silent } from "./clock.ts";
import { BUS, PARAMETERS, TRAITS } from "./pairing.ts";

let stack: AsyncDisposableStack;
beforeEach(() => void (stack = new AsyncDisposableStack()));
afterEach(() => stack.disposeAsync());

const setup = (profile: string) => ({
  profile,
  params: boundTo(profile, PARAMETERS[profile] ?? {}).values,
  traits: { ...TRAITS, id: chargerId(profile) },
  vehicle: BUS,
});

async function aFloor(profiles: readonly string[]) {
  const broker = stack.use(await Mosquitto.start());
  const client = await connectAsync(broker.url);
  stack.defer(() => client.endAsync(true));
  const payloads = new Map<string, string>();
  client.on("message", (topic, payload) => void payloads.set(topic, payload.toString()));
  await client.subscribeAsync("#");
  const floor = stack.use(
    MixedFloor.start({ url: broker.url, chargers: profiles.map(setup), now, log: silent }),
  );
  await floor.whenOnline();
  return { client, payloads, floor };
}

const only = ({ chargers: [charger] }: MixedFloor): MqttModel => {
  if (charger === undefined) throw new Error("no charger");
  return charger;
};

const overridden = async (client: MqttClient, dA: string): Promise<void> =>
  void (await client.publishAsync("SmartEVSE/1/Set/CurrentOverride", dA, { qos: 1 }));

test.skipIf(!mosquittoAvailable)("ten models share one broker, each on its own topics", async () => {
  const { client, payloads } = await aFloor([...MODELS.keys()]);
  await client.publishAsync("R/c0619ab1/keepalive", "");
  for (const topic of [
    "go-eCharger/000001/amp",
    "openevse-a7d4/pilot",
    "warp3/AbCd/evse/state",
    "openWB/internal_chargepoint/0/get/power",
    "evcc/loadpoints/1/chargePower",
    "everest_api/1/evse_manager_consumer/evse/e2m/session_info",
    "everest_api/evse_manager/var/limits",
    "SmartEVSE/1/State",
    "N/c0619ab1/evcharger/40/Status",
    "ocpp/charger1/state/status",
  ])
    await waitFor(() => payloads.has(topic));
});

test.skipIf(!mosquittoAvailable)(
  "a charger is reported offline by its last will, reconnects, reboots and loses its override",
  async () => {
    const { client, payloads, floor } = await aFloor(["smartevse"]);
    const charger = only(floor);
    await overridden(client, "160");
    await waitFor(() => charger.model.drawn === 16 && payloads.get("SmartEVSE/1/EVChargePower") === "11040");
    await charger.dropOff();
    await waitFor(() => payloads.get("SmartEVSE/1/connected") === "offline");
    charger.comeBack();
    await waitFor(() => payloads.get("SmartEVSE/1/connected") === "online");
    await charger.reboot();
    await waitFor(() => payloads.get("SmartEVSE/1/ChargeCurrentOverride") === "0");
    charger.plug(null);
    await waitFor(() => payloads.get("SmartEVSE/1/EVPlugState") === "Disconnected");
    charger.plug(BUS);
    charger.faults = { ignoresSetpoints: true };
    await overridden(client, "80");
    await waitFor(() => charger.model.drawn === 32);
  },
);
