import * as fc from "fast-check";
import { expect, test } from "vitest";
import { trial } from "../../../src/chargers/profile/tryProfile.ts";
import { builtIn, NOON } from "./aTrial.ts";

const params = { serial: "000001" };
const answer = (line: unknown) =>
  JSON.parse(trial(builtIn, () => NOON)(typeof line === "string" ? line : JSON.stringify(line)));

test.each([
  ["{", "not a line to try"],
  [[], "not a line to try"],
  ["7", "not a line to try"],
  [{ params }, "profile: the name of a profile"],
  [{ profile: "go-f" }, "unknown profile"],
  [{ profile: "go-e-v2", action: "pause" }, "serial is missing"],
  [{ profile: "go-e-v2", params: { serial: null }, action: "pause" }, "serial is missing"],
  [{ profile: "go-e-v2", params: { serial: [] }, action: "pause" }, "params: names with"],
  [{ profile: "go-e-v2", params }, "either an action or a topic"],
  [{ profile: "go-e-v2", params, action: "pause", topic: "a", payload: "" }, "either an action or a topic"],
  [{ profile: "go-e-v2", params, action: "fly" }, "unknown action"],
  [{ profile: "go-e-v2", params, action: "setCurrent" }, "needs input.currentA"],
  [{ profile: "go-e-v2", params, action: "setCurrent", input: { currentA: "13" } }, "needs input.currentA"],
  [{ profile: "go-e-v2", params, action: "setPower", input: { powerW: null } }, "needs input.powerW"],
  [{ profile: "go-e-v2", params, action: "setPhases", input: {} }, "needs input.phases"],
  [
    { profile: "go-e-v2", params, action: "resume", input: { lastCurrentA: "x" } },
    "needs input.lastCurrentA",
  ],
  [{ profile: "go-e-v2", params, action: "pause", input: 3 }, "input: an object"],
  [{ profile: "go-e-v2", params, topic: "a" }, "a topic comes with its payload"],
  [
    '{"profile":"go-e-v2","params":{"serial":"000001"},"action":"setCurrent","input":{"currentA":1e999}}',
    "currentA",
  ],
  [
    '{"profile":"go-e-v2","params":{"serial":"000001"},"topic":"go-eCharger/000001/amp","payload":1e999}',
    "in quotes",
  ],
  ['{"profile":"go-e-v2","params":{"serial":"000001"},"topic":"a","payload":[{"b":-1e999}]}', "in quotes"],
])("%j is answered with its mistake", (line, words) => {
  expect(answer(line)).toEqual({ error: expect.stringContaining(words) });
});

test("a message that the profile does not know has no signals", () => {
  expect(answer({ profile: "go-e-v2", params, topic: "elsewhere", payload: "1" })).toEqual({ means: {} });
});

test("a payload without quotes counts as its text", () => {
  expect(answer({ profile: "go-e-v2", params, topic: "go-eCharger/000001/amp", payload: 13 })).toEqual({
    means: { requestedA: 13 },
  });
});

test("null means the same as absent, everywhere in a line", () => {
  const nothing = { params: null, input: null, topic: null };
  expect(answer({ profile: "native", ...nothing, action: "acquire" })).toMatchObject({ publishes: [] });
  const charger = { profile: "go-e-v2", params };
  expect(answer({ ...charger, action: "release", input: null })).toMatchObject({ publishes: [{}] });
  expect(answer({ ...charger, action: null, topic: "go-eCharger/000001/amp", payload: null })).toEqual({
    means: { requestedA: null },
  });
});

test("chargers of a trial do not share payloads", () => {
  const ask = trial(builtIn, () => NOON);
  const line = (id: number, phase: number) =>
    JSON.parse(
      ask(
        JSON.stringify({
          profile: "evcc",
          params: { id },
          topic: `evcc/loadpoints/${id}/chargeCurrents/l${phase}`,
          payload: "16",
        }),
      ),
    );
  line(1, 1);
  expect(line(2, 2)).toEqual({ means: { currentsA: [null, 16, null] } });
  expect(line(1, 2)).toEqual({ means: { currentsA: [16, 16, null] } });
});

test("the answer is one line of JSON for every line", () => {
  const ask = trial(builtIn, () => NOON);
  const named = fc.record(
    {
      profile: fc.constantFrom(...builtIn.keys()),
      params: fc.dictionary(fc.string(), fc.jsonValue()),
      action: fc.string(),
      topic: fc.string(),
      payload: fc.jsonValue(),
      input: fc.jsonValue(),
    },
    { requiredKeys: ["profile"] },
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.json(),
        named.map((line) => JSON.stringify(line)),
      ),
      (line) => {
        const said = ask(line);
        return !said.includes("\n") && typeof JSON.parse(said) === "object";
      },
    ),
  );
});

test.each([
  ["wallbox-mqtt-bridge", { serial: "000001", maxCurrentA: 0.5 }, "at least 6"],
  ["openwb-secondary", { parentIp: "::1", maxCurrentA: 5 }, "at least 6"],
  ["smartevse", { prefix: "S", maxCurrentA: 5.9 }, null],
  ["wbec", { lp: 1, maxCurrentA: 5.99 }, "at least 6"],
  ["everest-api-legacy", { evse: "e", maxCurrentA: 0.001 }, "at least 0.01"],
])("%s with %j is not released to less than it charges with", (profile, ofIt, words) => {
  const charger = { profile, params: ofIt };
  expect(answer({ ...charger, action: "release" })).toEqual(
    words === null
      ? { publishes: [expect.anything()] }
      : {
          error: expect.stringMatching(
            new RegExp(`^${profile}: maxCurrentA is [0-9.]+; it has to be ${words}`),
          ),
        },
  );
  const [paused, told] = ["pause", "setCurrent"].map((action) =>
    answer({ ...charger, action, input: { currentA: 16 } }),
  );
  expect(told).toEqual(paused);
});
