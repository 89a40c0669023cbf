import { expect, test } from "vitest";
import { compileTelemetry } from "../../../src/chargers/profile/telemetryMap.ts";
import { describeProfile } from "../../../src/chargers/profile/describe.ts";
import { bestVerdictOf } from "../../../src/chargers/profile/acceptance.ts";
import { aProfile } from "./aProfile.ts";
import { boundTo, builtIn, profileNamed } from "./aTrial.ts";

test("the description has setup, pace and what happens when the gateway dies", () => {
  const words = describeProfile(profileNamed("openwb-secondary"));
  for (const fact of [
    "parentIp  IP address of this gateway. Only the web page and the display of the box use it. Its form: an IP address or a host name. Optional.",
    "duo  Charge point of the box: 0, or 1 for the second one of a Duo. Default 0.",
    "6 A to 32 A unless configured, 32 A at most, in steps of 0.01 A; less is a pause",
    "openWB/set/internal_chargepoint/global_data every 10 s",
    "after 80 s without us: pause",
    "limitA repeats the setpoint within 20 s",
    "The box stops charging (0 A) 80 s after the last heartbeat.",
    "Whether parent_cp is needed",
  ])
    expect(words).toContain(fact);
});

const listed = (name: string, heading: string): readonly string[] => {
  const [, rest = ""] = describeProfile(profileNamed(name)).split(`\n${heading}\n`);
  const [part = ""] = rest.split("\n\n");
  return part.split("\n").map((line) => line.trim());
};

test("the description lists every topic, as an access list needs them", () => {
  expect(listed("openwb-1.9", "Published")).toEqual([
    "openWB/set/isss/heartbeat",
    "openWB/set/isss/Current",
    "openWB/set/isss/Lp2Current",
    "openWB/set/isss/U1p3p",
    "openWB/set/isss/U1p3pLp2",
  ]);
  expect(listed("victron-evcs", "Published")).toContain("R/{portalId}/keepalive");
  expect(listed("victron-evcs", "Subscribed")).toContain("N/{portalId}/heartbeat");
  expect(listed("warp", "Subscribed")).toContain("{prefix}/meters/{meter}/value_ids");
  expect(listed("go-e-v2", "Subscribed")).toContain("{prefix}/{serial}/amp/result");
  expect(listed("native", "Subscribed")).toContain("{prefix}/{site}/chargers/{charger}/online");
  for (const [name, params] of [
    ["smartevse", { prefix: "p" }],
    ["evcc", { root: "evcc", id: "1" }],
    ["go-e-v2", { prefix: "go", serial: "000001" }],
    ["everest-api-v1", { limitsModule: "l", evseModule: "e" }],
    ["openevse-claim", { base: "b", announce: "a7d4" }],
  ] as const) {
    const filled = Object.entries(params).reduce<readonly string[]>(
      (all, [key, value]) => all.map((topic) => topic.replaceAll(`{${key}}`, value)),
      listed(name, "Subscribed"),
    );
    expect(filled.toSorted()).toEqual([...compileTelemetry(boundTo(name, params)).filters].toSorted());
  }
});

test("a charger whose memory wears gets no repetitions, and its description mentions that", () => {
  expect(describeProfile(profileNamed("go-e-v2"))).toContain(
    "each write wears flash: a setpoint is sent when it changes",
  );
});

test("every profile has a description", () => {
  for (const profile of builtIn.values()) expect(describeProfile(profile)).toContain("When the gateway dies");
  expect(
    describeProfile(aProfile({ params: {}, actions: { setCurrent: [{ topic: "a", text: "b" }] } })),
  ).toContain("Parameters\n  none");
});

test("the description names the strongest verdict that a make allows", () => {
  expect(bestVerdictOf(aProfile())).toBe("sent");
  expect(bestVerdictOf(aProfile({ telemetry: { limitA: { topic: "l" } } }))).toBe("reported");
  expect(bestVerdictOf(aProfile({ telemetry: { powerW: { topic: "p" } } }))).toBe("measured");
  expect(bestVerdictOf(profileNamed("native"))).toBe("measured");
  expect(describeProfile(aProfile())).toContain("it stays unknown whether a setpoint was followed");
  expect(describeProfile(aProfile({ telemetry: { limitA: { topic: "l" } } }))).toContain("ends as accepted");
});

test("the description of a native charger refers to the configuration for its limits", () => {
  expect(describeProfile(profileNamed("native"))).toContain(
    "current.min (6 A by default) to current.max of the configuration, 1000 A at most",
  );
});

/** The first line below the heading of reboots. */
function rebootOf(profile: string): string | undefined {
  const lines = describeProfile(profileNamed(profile)).split("\n");
  return lines[lines.indexOf("Reboot") + 1];
}

test("the description has the topic of a reboot, or why there is none", () => {
  expect(rebootOf("warp")).toBe("  {prefix}/reboot");
  expect(rebootOf("wbec")).toBe("  not possible: no message is known that reboots it over MQTT");
  expect(rebootOf("ocpp2mqtt")).toMatch(/^ {2}not possible: the answer to a reset looks like/);
});
