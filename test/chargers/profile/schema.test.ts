import { expect, test } from "vitest";
import { stringify } from "yaml";
import { profileFrom } from "../../../src/loadProfiles.ts";
import { leastProfile } from "./aProfile.ts";

/** What is wrong, as `path: found, expected`. */
function mistakes(members: object): readonly string[] {
  const read = profileFrom(stringify(leastProfile(members)));
  if ("profile" in read) return [];
  return read.map(({ path, found, expected }) => `${path}: ${found}; ${expected}`);
}

const actions = (more: object) => ({
  actions: { ...("actions" in least ? (least.actions as object) : {}), ...more },
});
const least = leastProfile();

test("little is needed", () => {
  expect(mistakes({})).toEqual([]);
});

test("a mistake has its line, what was found and what would be right", () => {
  const text = stringify(leastProfile({ deviceTimeout: { after: "80", effect: "pause" } }));
  expect(profileFrom(text)).toEqual([
    {
      path: "deviceTimeout.after",
      line: text.split("\n").findIndex((line) => line.includes("after")) + 1,
      column: null,
      found: '"80" (text)',
      expected: "a duration: a whole number with its unit, e.g. 500ms, 30s or 10m",
    },
  ]);
});

test.each<[string, object, string]>([
  ["a misspelt key", { releasEndsPause: true }, "did you mean releaseEndsPause?"],
  ["a retained setpoint", actions({ pause: [{ topic: "a", text: "0", retain: true }] }), "an unknown key"],
  ["a payload twice", actions({ pause: [{ topic: "a", text: "0", json: 0 }] }), "either text or json"],
  [
    "a name that nobody defines",
    actions({ pause: [{ topic: "c/{serial}", text: "0" }] }),
    "{serial} to be one of: id",
  ],
  ["a level in a pause", actions({ pause: [{ topic: "c", text: "{current}" }] }), "{current} to be one of"],
  [
    "a chosen name without its parameter",
    { names: { door: { of: "mode", is: { a: "b" } } } },
    "a parameter: id",
  ],
  [
    "watts without their limits",
    actions({ setPower: [{ topic: "p", text: "{power}" }] }),
    "limits.power together with",
  ],
  [
    "phases without a spelling",
    actions({ setPhases: [{ topic: "p", text: "{phases}" }] }),
    "phases together with",
  ],
  [
    "a minimum above the maximum",
    { limits: { current: { min: 32, max: 6 }, zero: "pause", belowMinimum: "ignored" } },
    "in rising order",
  ],
  ["a time-out that would strike", { deviceTimeout: { after: "80s", effect: "pause" } }, "at least 3 times"],
  ["a path that is a program", { telemetry: { powerW: { topic: "t", path: "$..x" } } }, "a path such as"],
  [
    "a place without an index",
    { telemetry: { powerW: { topic: "t", path: "$[#]" } } },
    "[#] in path together with index",
  ],
  [
    "a state of its own",
    { telemetry: { state: { topic: "t", map: { "1": "busy" } } } },
    "states of: unplugged",
  ],
  ["an identity of no kind", { telemetry: { vehicleId: { topic: "t" } } }, "a kind for vehicleId"],
  [
    "phases of one number",
    { telemetry: { powerW: { each: [{ topic: "t" }] } } },
    "only currentsA and voltagesV",
  ],
  ["a pattern that is none", { params: { id: { about: "Its id.", pattern: "[" } } }, "a regular expression"],
])("%s is explained", (_, members, words) => {
  expect(mistakes(members).join("\n")).toContain(words);
});

test("a heartbeat holds a time-out off as well as a refresh does", () => {
  const keepalive = [{ every: "10s", topic: "c/{id}/alive", json: { at: "{now.unix}" } }];
  expect(mistakes({ deviceTimeout: { after: "80s", effect: "pause" }, keepalive })).toEqual([]);
});

test("what is no profile at all is one clear mistake", () => {
  for (const text of ["", "[]", "go-e", "a: ["]) {
    const read = profileFrom(text);
    expect("profile" in read ? [] : read).toHaveLength(1);
  }
});
