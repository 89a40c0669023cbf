import { expect, test } from "vitest";
import { profileInWords } from "../../../src/chargers/profile/inWords.ts";
import { reachOf } from "../../../src/chargers/profile/reach.ts";
import { aProfile } from "./aProfile.ts";
import { builtIn, profileNamed } from "./aTrial.ts";

test("an integrator reads what the charger needs, how it is paced and what happens when we die", () => {
  const words = profileInWords(profileNamed("openwb-secondary"));
  for (const fact of [
    "parentIp  IP address that the box finds its primary at: that of this gateway. Required.",
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

test("a make whose memory wears is not told the same again, and its words say so", () => {
  expect(profileInWords(profileNamed("go-e-v2"))).toContain(
    "each write wears flash: a setpoint is said when it changes",
  );
});

test("every make can be told about", () => {
  for (const profile of builtIn.values()) expect(profileInWords(profile)).toContain("When the gateway dies");
  expect(
    profileInWords(aProfile({ params: {}, actions: { setCurrent: [{ topic: "a", text: "b" }] } })),
  ).toContain("Parameters\n  none");
});

test("verdicts go as far as what a make tells", () => {
  expect(reachOf(aProfile())).toBe("sent");
  expect(reachOf(aProfile({ telemetry: { limitA: { topic: "l" } } }))).toBe("reported");
  expect(reachOf(aProfile({ telemetry: { powerW: { topic: "p" } } }))).toBe("measured");
  expect(reachOf(profileNamed("native"))).toBe("measured");
  expect(profileInWords(aProfile())).toContain("nobody knows whether a setpoint was followed");
  expect(profileInWords(aProfile({ telemetry: { limitA: { topic: "l" } } }))).toContain("ends as accepted");
});

test("what a native charger can is what the configuration says, and no number of its profile's own", () => {
  expect(profileInWords(profileNamed("native"))).toContain(
    "current.min (6 A unless told) to current.max of the configuration, 1000 A at most",
  );
});
