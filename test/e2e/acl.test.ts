import { connectAsync } from "mqtt";
import { describe, expect, test } from "vitest";

import { aSite, anEvent } from "../support/aSite.ts";
import { Mosquitto, mosquittoAvailable } from "../support/mosquitto.ts";
import { setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

const USERS = { depot: "one", "bay-01": "two", "bay-02": "three" };

describe.skipIf(!mosquittoAvailable)("setpointd acl", () => {
  test("a broker with the printed list and settings serves a site of two makes, and no client can take over the daemon's session", async () => {
    const over = {
      mqtt: { url: "mqtt://127.0.0.1:1", username: "depot", password: { env: "MQTT_PASSWORD" } },
      chargers: [
        { id: "bay-01", current: { min: 6, max: 32 } },
        { id: "bay-02", profile: "go-e-v2", params: { serial: "000002" }, current: { min: 6, max: 32 } },
      ],
      vehicles: [
        { id: "veh-1", charger: "bay-01" },
        { id: "veh-2", charger: "bay-02" },
      ],
    };
    await using site = await aSite({ over });
    const env = { MQTT_PASSWORD: USERS.depot };
    const printed = await setpointd(["acl", "-c", site.config], { env });
    expect(printed).toMatchObject({ code: 0, stderr: "" });
    expect(printed.stdout).toContain("use_username_as_clientid true");
    await using broker = await Mosquitto.start({
      users: USERS,
      acl: printed.stdout.split("\n"),
      extra: ["use_username_as_clientid true"],
    });
    site.configure({ mqtt: { ...over.mqtt, url: broker.url } });
    const as = (username: keyof typeof USERS) => ({
      username,
      password: USERS[username],
      reconnectPeriod: 0,
    });
    await using stack = new AsyncDisposableStack();
    const heard: string[] = [];
    for (const [user, topic] of [
      ["bay-01", "setpointd/depot/chargers/bay-01/+"],
      ["bay-02", "go-eCharger/000002/+/set"],
    ] as const) {
      const client = await connectAsync(broker.url, as(user));
      stack.defer(() => client.endAsync(true));
      client.on("message", (at) => heard.push(at));
      await client.subscribeAsync(topic, { qos: 1 });
      // What the charger reports has to get through as well.
      const [report, payload] =
        user === "bay-01"
          ? ["setpointd/depot/chargers/bay-01/online", "true"]
          : ["go-eCharger/000002/car", "2"];
      await client.publishAsync(report, payload, { qos: 1, retain: true });
    }
    await using daemon = await site.run(env);
    for (const bay of ["bay-01", "bay-02"])
      expect(
        await setpointd(["reboot", bay, "-c", site.config, "--reason", "it hangs", "--no-wait"], { env }),
      ).toMatchObject({ code: 0, stderr: "" });
    const reboots = ["setpointd/depot/chargers/bay-01/reboot", "go-eCharger/000002/rst/set"];
    await waitFor(() => reboots.every((topic) => heard.includes(topic)));
    // A charger that knows the daemon's client id cannot take its session.
    const thief = await connectAsync(broker.url, { ...as("bay-01"), clientId: "setpointd-depot" }).catch(
      () => null,
    );
    if (thief !== null) stack.defer(() => thief.endAsync(true));
    await daemon.deliver(anEvent("EV-1", { lastsMs: 60_000, vehicles: ["veh-1", "veh-2"] }));
    await waitFor(() => heard.includes("go-eCharger/000002/amp/set"));
    const status = await daemon.view<{ problems: { kind: string; message: string }[] }>("/api/v1/status");
    expect(status.problems.filter(({ kind }) => kind === "publish" || kind === "broker")).toEqual([]);
  });
});
