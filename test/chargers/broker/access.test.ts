import { expect, test } from "vitest";

import { TopicOwners } from "../../../src/chargers/broker/access.ts";

const ONLY = "only setpointd publishes there";

test("only the daemon commands a charger, or publishes for the site", () => {
  const owners = new TopicOwners("setpointd/depot");
  for (const path of [
    "chargers/bay-01/set",
    "chargers/bay-01/reboot",
    "chargers/bay-01/state",
    "gateway/online",
    "prices/NO1",
    "chargers/x",
  ])
    expect(owners.refusal("bay-01", `setpointd/depot/${path}`)).toBe(ONLY);
  expect(owners.refusal("bay-01", "setpointd/depot/chargers/bay-01/ack/more")).toBe(ONLY);
});

test("a charger publishes on its own topics; another client cannot impersonate it while it is connected", () => {
  const owners = new TopicOwners("setpointd/depot");
  const telemetry = "setpointd/depot/chargers/bay-01/telemetry";
  expect(owners.refusal("box-1", telemetry)).toBeNull();
  expect(owners.refusal("box-1", "setpointd/depot/chargers/bay-01/online")).toBeNull();
  expect(owners.refusal("box-2", telemetry)).toBe("bay-01 is connected as another client");
  owners.left("box-2");
  expect(owners.refusal("box-2", telemetry)).not.toBeNull();
  owners.left("box-1");
  expect(owners.refusal("box-2", telemetry)).toBeNull();
});

test("every client may publish on a shared topic of the site, and on no other", () => {
  const owners = new TopicOwners("setpointd/depot", ["setpointd/depot/holds/set"]);
  expect(owners.refusal("phone", "setpointd/depot/holds/set")).toBeNull();
  expect(owners.refusal("phone", "setpointd/depot/holds/result")).toBe("only setpointd publishes there");
});

test("topics of other makes lie outside of the site's root", () => {
  expect(new TopicOwners("setpointd/depot").refusal("x", "go-eCharger/000001/amp")).toBeNull();
});
