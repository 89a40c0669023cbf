import { expect, test } from "vitest";
import { stringify } from "yaml";
import { profileFrom } from "../../../src/daemon/loadProfiles.ts";
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

test("few members are required", () => {
  expect(mistakes({})).toEqual([]);
});

test("a mistake has its line, the present and the right value", () => {
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
  [
    "a key that is none of the words",
    { cannot: { setPhase: "x" } },
    "did you mean setPhases? One of: pause, resume, release, setPhases",
  ],
  ["a number of phases that cannot be", { phases: { "2": 1 } }, "One of: 1, 3"],
  [
    "a step of nothing",
    { limits: { current: { min: 6, max: 32, step: 0 }, zero: "pause", belowMinimum: "ignored" } },
    "limits.current.step: 0 (number); above 0",
  ],
  ["an empty list", { telemetry: { currentsA: { each: [] } } }, "at least 1 entry"],
  ["a misspelt key", { releasEndsPause: true }, "did you mean releaseEndsPause?"],
  ["a retained setpoint", actions({ pause: [{ topic: "a", text: "0", retain: true }] }), "an unknown key"],
  ["a payload twice", actions({ pause: [{ topic: "a", text: "0", json: 0 }] }), "either text or json"],
  [
    "a name that nobody defines",
    actions({ pause: [{ topic: "c/{serial}", text: "0" }] }),
    "{serial} to be one of: id",
  ],
  [
    "a topic with what may be left out",
    {
      ...actions({ pause: [{ topic: "c/{id}", text: "0" }] }),
      params: { id: { about: "Its id.", optional: true } },
    },
    "a topic without {id}, which may be left out",
  ],
  [
    "a place to look for a parameter that is none",
    { params: { id: { about: "Its id.", found: { in: "base", match: "(.)" } } } },
    "params.id.found.in",
  ],
  [
    "a step that nobody chooses",
    { limits: { current: { min: 6, max: 32, stepBy: "grain" }, zero: "pause", belowMinimum: "ignored" } },
    "limits.current.stepBy",
  ],
  [
    "a need of a parameter that is always there",
    actions({ pause: [{ topic: "c", text: "0", needs: "id" }] }),
    "an optional parameter",
  ],
  [
    "a report that nobody defines",
    actions({ pause: [{ topic: "c", text: "0", unless: { ownMode: "off" } }] }),
    "ownMode, which is used by its name",
  ],
  [
    "a report of another charger",
    { reports: { own: { topic: "c/{serial}", pattern: "[0-9]" } } },
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
  [
    "nobody where nobody is named",
    { telemetry: { powerW: { topic: "t", nullIsNobody: true } } },
    "nullIsNobody for vehicleId only",
  ],
  ["an echo of nothing", { echoes: [{ told: "c", shown: "t" }] }, "a topic of an action"],
  ["an echo that nobody hears", { echoes: [{ told: "c/{id}/set", shown: "t" }] }, "a topic that telemetry"],
  ["a pattern that is none", { params: { id: { about: "Its id.", pattern: "[" } } }, "a regular expression"],
])("%s is explained", (_, members, words) => {
  expect(mistakes(members).join("\n")).toContain(words);
});

const current = (more: object) => ({
  limits: { current: { min: 6, max: 32, ...more }, zero: "pause", belowMinimum: "ignored" },
});
const reads = (telemetry: object) => ({ telemetry });
const TOPIC = "a topic without +, # and control characters";
const SPAN = "a duration from 1s to 1d, e.g. 30s or 10m";
const pauses = (topic: string) => actions({ pause: [{ topic, text: "0" }] });
const chosen = (of: string, is: object) => ({ names: { door: { of, is } } });

test.each<[string, object, string]>([
  [
    "a heartbeat without rest",
    { keepalive: [{ every: "0s", topic: "c", text: "1" }] },
    `keepalive[0].every: "0s" (text); ${SPAN}`,
  ],
  ["a heartbeat beyond any timer", { keepalive: [{ every: "30d", topic: "c", text: "1" }] }, SPAN],
  ["a refresh without rest", { refresh: { every: "999ms" } }, `refresh.every: "999ms" (text); ${SPAN}`],
  ["silence of no time", { alive: { topic: "c", silentAfter: "0s" } }, SPAN],
  ["a wildcard to publish to", pauses("c/+/set"), `actions.pause[0].topic: "c/+/set" (text); ${TOPIC}`],
  ["a topic of the broker", pauses("$SYS/x"), "that does not begin with $"],
  [
    "a wildcard in a heartbeat",
    { keepalive: [{ every: "10s", topic: "#", text: "1" }] },
    `keepalive[0].topic: "#" (text); ${TOPIC}`,
  ],
  [
    "a wildcard by name",
    { ...chosen("id", { a: "+" }), ...pauses("c/{door}/set") },
    `actions.pause[0].topic: "c/{door}/set" (text); ${TOPIC}`,
  ],
  [
    "a wildcard to listen on",
    reads({ powerW: { topic: "c/#" } }),
    `telemetry.powerW.topic: "c/#" (text); ${TOPIC}`,
  ],
  [
    "a wildcard that tells a place",
    reads({ powerW: { topic: "c", path: "$[#]", index: { topic: "+" } } }),
    `telemetry.powerW.index.topic: "+" (text); ${TOPIC}`,
  ],
  [
    "a wildcard in one of many",
    reads({ currentsA: [{ topic: "a" }, { each: [{ topic: "b" }, { topic: "+" }] }] }),
    "telemetry.currentsA[1].each[1].topic",
  ],
  [
    "a wildcard to be alive on",
    { alive: { topic: "c/+", silentAfter: "10s" } },
    `alive.topic: "c/+" (text); ${TOPIC}`,
  ],
  ["an answer on all topics", { results: [{ topic: "c/#", ok: ["1"] }] }, "results[0].topic"],
  ["an answer on half a level", { results: [{ topic: "c/a+", ok: ["1"] }] }, "+ stands for a whole level"],
  [
    "a confirmation that nobody tells",
    { confirmedBy: { signal: "limitA" } },
    'confirmedBy.signal: "limitA" (text); no confirmedBy, or telemetry that reports it',
  ],
  [
    "another confirmation than is told",
    { ...reads({ requestedA: { topic: "c" } }), confirmedBy: { signal: "limitA" } },
    "requestedA, which telemetry reports",
  ],
  [
    "a scale that is a word",
    reads({ powerW: { topic: "c", scale: "kilo" } }),
    'telemetry.powerW.scale: "kilo" (text); a number other than 0',
  ],
  ["a scale of 0", reads({ powerW: { topic: "c", scale: 0 } }), "a number other than 0"],
  [
    "a scale by name that is a word",
    { ...chosen("id", { a: 1, b: "kilo" }), ...reads({ powerW: { topic: "c", scale: "{door}" } }) },
    "a number other than 0",
  ],
  [
    "a scale that may be anything",
    reads({ powerW: { topic: "c", scale: "{id}" } }),
    "or {name} that stands for one",
  ],
  [
    "a number that is a word",
    reads({ phases: { topic: "c", map: { a: "3" } } }),
    'telemetry.phases.map.a: "3" (text); a number, or null',
  ],
  ["a truth that is a word", reads({ plugged: { topic: "c", map: { a: "yes" } } }), "true, false or null"],
  [
    "another truth that is a number",
    reads({ plugged: { topic: "c", map: { a: true }, otherwise: 0 } }),
    "telemetry.plugged.otherwise: 0 (number); true, false or null",
  ],
  [
    "a name that is a number",
    reads({ vehicleId: { topic: "c", map: { a: 1 }, kind: "rfid" } }),
    "a text, or null",
  ],
  ["a firmware that is a number", reads({ firmware: { topic: "c", map: { a: 1 } } }), "a text, or null"],
  [
    "another state of its own",
    reads({ state: { topic: "c", map: { a: "charging" }, otherwise: "busy" } }),
    "telemetry.state.otherwise",
  ],
  [
    "a step past the minimum",
    current({ step: 4 }),
    "limits.current.step: 4 (number); a step that min, 6 A, is a multiple of",
  ],
  ["a step past the maximum", current({ step: 40 }), "limits.current.step: 40 (number); at most max, 32 A"],
  [
    "units that are too large",
    current({ scale: 0.1 }),
    "limits.current.scale: 0.1 (number); units of which min, 6 A, is a whole number",
  ],
  ["a chosen name of what every object has", chosen("toString", { a: "b" }), "a parameter: id"],
  [
    "a default that its pattern refuses",
    { params: { id: { about: "Its id.", pattern: "[0-9]+", default: "x" } } },
    'params.id.default: "x" (text); one topic level',
  ],
  [
    "a default that is none of its values",
    { params: { id: { about: "Its id.", values: ["a"], default: "b" } } },
    "one of: a",
  ],
])("an impossible profile is explained: %s", (_, members, words) => {
  expect(mistakes(members).join("\n")).toContain(words);
});

const watts = (power: object) => ({
  ...actions({ setPower: [{ topic: "p", text: "{power}" }] }),
  limits: { current: { min: 6, max: 32 }, power, zero: "pause", belowMinimum: "ignored" },
});

test("watts are checked against their steps too", () => {
  expect(mistakes(watts({ max: 22_000, min: 1000, step: 100 }))).toEqual([]);
  expect(mistakes(watts({ max: 22_000, min: 1000, step: 300 })).join()).toContain("a step that min, 1000 W");
  expect(mistakes(watts({ max: 100, step: 300 })).join()).toContain("at most max, 100 W");
});

test.each<[string, object]>([
  ["a fine step", current({ min: 6.6, step: 0.1, scale: 10 })],
  ["an answer on one level of any name", { results: [{ topic: "c/+/result", ok: ["1"] }] }],
  ["what the broker tells of itself", reads({ online: { topic: "$SYS/x" } })],
  [
    "a scale by name",
    { ...chosen("id", { a: 1, b: "0.1" }), ...reads({ powerW: { topic: "c", scale: "{door}" } }) },
  ],
  [
    "words of the right type",
    reads({
      limitA: { topic: "c", map: { a: 0, b: null } },
      error: { topic: "c", map: { a: false }, otherwise: true },
    }),
  ],
])("a possible profile is accepted: %s", (_, members) => {
  expect(mistakes(members)).toEqual([]);
});

test("a keepalive prevents a time-out as a refresh does", () => {
  const keepalive = [{ every: "10s", topic: "c/{id}/alive", json: { at: "{now.unix}" } }];
  expect(mistakes({ deviceTimeout: { after: "80s", effect: "pause" }, keepalive })).toEqual([]);
});

test("a file that is not a profile is one clear mistake", () => {
  for (const text of ["", "[]", "go-e", "a: ["]) {
    const read = profileFrom(text);
    expect("profile" in read ? [] : read).toHaveLength(1);
  }
});
