import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

import { aSite, anEvent, type Sections, type Site } from "../support/aSite.ts";
import { deviceDiscovery } from "../support/homeAssistantSchema.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

const MINUTE = 60_000;
const ON: Sections = {
  homeAssistant: { discovery: true },
  operator: { listen: "127.0.0.1:0", mqttHolds: true },
};
const CHARGER = "homeassistant/device/setpointd_depot_bay-01/config";
const SITE = "homeassistant/device/setpointd_depot/config";
const LEAVER = "homeassistant/device/setpointd_depot_bay-04/config";

/** Payloads on a topic so far. */
const texts = ({ floor }: Site, topic: string): readonly string[] =>
  floor.heard.filter((message) => message.topic === topic).map(({ text }) => text);

describe.skipIf(!mosquittoAvailable)("Home Assistant", () => {
  test(
    "devices are described, again after its start, and removed with the charger and with the setting",
    async () => {
      await using site = await aSite({ over: ON });
      {
        await using _daemon = await site.run();
        await waitFor(() => texts(site, LEAVER).length > 0);
        for (const topic of [SITE, CHARGER]) {
          const [text = ""] = texts(site, topic);
          expect(deviceDiscovery.safeParse(JSON.parse(text)).error).toBeUndefined();
        }
        const before = texts(site, CHARGER).length;
        await site.floor.publish("homeassistant/status", "offline");
        await site.floor.publish("homeassistant/status", "online");
        await waitFor(() => texts(site, CHARGER).length > before);

        site.partner.put(anEvent("EV-1", { lastsMs: MINUTE }));
        await setpointd(["poll", "-c", site.config]);
        const state = "setpointd/depot/gateway/state";
        await waitFor(() => texts(site, state).some((text) => text.includes('"eventsActive":1')));
        expect(JSON.parse(texts(site, state).at(-1) ?? "")).toMatchObject({
          mode: "drive",
          activeEvents: [{ id: "EV-1" }],
          nextEvent: null,
          alarmsOpen: 0,
        });
      }
      const first = [1, 2, 3];
      site.configure({
        chargers: first.map((number) => ({ id: `bay-0${number}`, current: { max: 32 } })),
        vehicles: first.map((number) => ({ id: `veh-${number}`, charger: `bay-0${number}` })),
      });
      {
        await using _daemon = await site.run();
        await waitFor(() => texts(site, LEAVER).at(-1) === "");
        expect(texts(site, CHARGER).at(-1)).not.toBe("");
      }
      site.configure({ homeAssistant: { discovery: false } });
      {
        await using _daemon = await site.run();
        await waitFor(() =>
          [SITE, CHARGER, "setpointd/depot/gateway/state"].every((topic) => texts(site, topic).at(-1) === ""),
        );
        await waitFor(() => !existsSync(join(site.state, "homeassistant.json")));
      }
    },
    2 * MINUTE,
  );

  test("a hold by the button shows at the setpoint, although the charger then has none", async () => {
    await using site = await aSite({ over: ON });
    await using daemon = await site.run();
    await daemon.deliver(anEvent("EV-1", { lastsMs: MINUTE, amperes: 10, vehicles: ["veh-1"] }));
    await site.floor.nth("bay-01", 1);
    const [text = ""] = await waitFor(() =>
      texts(site, CHARGER).length > 0 ? texts(site, CHARGER) : undefined,
    );
    const { setpoint, exempt } = deviceDiscovery.parse(JSON.parse(text)).components;
    if (exempt?.platform !== "button") throw new Error("no button");
    await site.floor.publish(exempt.command_topic, exempt.payload_press ?? "");
    const topic = setpoint?.json_attributes_topic ?? "";
    const held = await waitFor(() => {
      const state = JSON.parse(texts(site, topic).at(-1) ?? "{}");
      return state.hold ? state : undefined;
    });
    expect(held).toMatchObject({
      asked: null,
      allowed: { kind: "release" },
      hold: { kind: "exempt", by: "mqtt", reason: "Home Assistant" },
      reason: { words: expect.stringMatching(/^bay-01 .*released: hold hold-.* of mqtt/) },
    });
    for (const member of ["reason", "asked", "hold"])
      expect(setpoint?.json_attributes_template).toContain(`value_json.${member}`);
  });

  test("without the setting nothing is described, and no topic of Home Assistant is read", async () => {
    await using site = await aSite();
    await using _daemon = await site.run();
    const { stdout } = await setpointd(["acl", "-c", site.config]);
    expect(stdout).not.toContain("homeassistant");
    expect(site.floor.heard.filter(({ topic }) => topic.startsWith("homeassistant/"))).toEqual([]);
    site.configure(ON);
    const list = await setpointd(["acl", "-c", site.config]);
    for (const line of [
      "topic write setpointd/depot/gateway/state",
      "topic write homeassistant/device/+/config",
      "topic read homeassistant/status",
    ])
      expect(list.stdout.split("\n")).toContain(line);
  });
});
