import { expect, test } from "vitest";

import { devicesOf, discoveryTopic } from "../../../src/chargers/native/homeAssistant.ts";
import type { Charger } from "../../../src/domain/charger.ts";
import { watts } from "../../../src/domain/units.ts";
import { holdBody, holdEndRequest } from "../../../src/operator/holdRequest.ts";
import { aCharger } from "../../support/aCharger.ts";
import { discoveryPayload } from "../../../src/chargers/native/payload.ts";
import { deviceDiscovery } from "../../support/homeAssistantSchema.ts";

const dc = {
  ...aCharger({ id: "bus.dc-1" }),
  maxCurrent: null,
  minPower: watts(5000),
  maxPower: watts(150_000),
};

const devices = (chargers: readonly Charger[], takesHolds = true) =>
  new Map(
    [...devicesOf({ site: "depot", prefix: "setpointd", chargers, takesHolds, version: "1.2.3" })].map(
      ([id, device]) => {
        discoveryPayload.parse(device);
        return [id, deviceDiscovery.parse(device)];
      },
    ),
  );

test("every description has the documented members alone, and unique ids", () => {
  const found = devices([aCharger(), dc]);
  expect([...found.keys()]).toEqual([
    "setpointd_depot",
    "setpointd_depot_bay-01",
    "setpointd_depot_bus-2e-dc-1",
  ]);
  const ids = [...found.values()].flatMap(({ components }) =>
    Object.values(components).map((each) => each.unique_id),
  );
  expect(new Set(ids).size).toBe(ids.length);
  for (const id of found.keys()) expect(id).toMatch(/^[A-Za-z0-9_-]+$/);
  expect(discoveryTopic("homeassistant", "setpointd_depot")).toBe(
    "homeassistant/device/setpointd_depot/config",
  );
});

test("a charger has setpoint, measured power, state and problem, and is reached through its site", () => {
  const device = devices([aCharger()], false).get("setpointd_depot_bay-01");
  expect(Object.keys(device?.components ?? {})).toEqual(["setpoint", "measured", "state", "problem"]);
  expect(device).toMatchObject({
    device: { via_device: "setpointd_depot" },
    state_topic: "setpointd/depot/chargers/bay-01/state",
    availability: [
      { topic: "setpointd/depot/gateway/online", payload_available: "true", payload_not_available: "false" },
    ],
  });
});

test("the button and the number send holds that the API accepts", () => {
  for (const [charger, id, level] of [
    [aCharger(), "setpointd_depot_bay-01", { currentA: 16 }],
    [dc, "setpointd_depot_bus-2e-dc-1", { powerW: 16 }],
  ] as const) {
    const components = devices([charger]).get(id)?.components;
    const { exempt, hold } = components ?? {};
    if (exempt?.platform !== "button" || hold?.platform !== "number")
      throw new Error("no button, or no number");
    const scope = { charger: charger.id };
    const shared = { scope, until: { unplugged: true }, reason: "Home Assistant" };
    expect(holdBody(JSON.parse(exempt.payload_press ?? ""))).toEqual({ body: { ...shared, kind: "exempt" } });
    const text = hold.command_template?.replace("{{ value }}", "16.0") ?? "";
    expect(holdBody(JSON.parse(text))).toEqual({ body: { ...shared, kind: "level", level } });
    const end = components?.["end_hold"];
    if (end?.platform !== "button") throw new Error("no button ends a hold");
    expect(holdEndRequest.parse(JSON.parse(end.payload_press ?? ""))).toMatchObject({ scope: shared.scope });
    expect(end.command_topic).toBe("setpointd/depot/holds/set");
    expect(exempt.command_topic).toBe("setpointd/depot/holds/set");
    expect(hold.command_topic).toBe("setpointd/depot/holds/set");
  }
});

test("a native charger at another broker is left out, for its state is not published at the site's own", () => {
  const away = { ...aCharger(), broker: "yard" };
  expect([...devices([away]).keys()]).toEqual(["setpointd_depot"]);
  expect([...devices([{ ...away, profile: "go-e-v2" }]).keys()]).toHaveLength(2);
});

test("a charger with one level alone still has a valid number", () => {
  const fixed = aCharger({ id: "bay-01" });
  const equal = { ...fixed, minCurrent: fixed.maxCurrent };
  expect(devices([equal]).get("setpointd_depot_bay-01")?.components["hold"]).toMatchObject({
    max: fixed.maxCurrent,
    min: (fixed.maxCurrent ?? 0) - 1,
  });
});
