import { expect, test } from "vitest";
import {
  afterFailure,
  afterSuccess,
  firstChoice,
  type VersionChoice,
} from "../../../src/chargers/broker/createClient.ts";

const three = (choice: VersionChoice, failure: "unanswered" | "silent" | "other") =>
  [1, 2, 3].reduce((now) => afterFailure(now, failure), choice);

test("MQTT 5 is tried first, and 3.1.1 at once if the broker refuses it", () => {
  expect(firstChoice.version).toBe(5);
  expect(afterFailure(firstChoice, "version").version).toBe(4);
});

test("a version that worked is kept, and MQTT 5 is tried again after three failures", () => {
  const old = afterSuccess(afterFailure(firstChoice, "version"));
  expect(old.version).toBe(4);
  expect(afterFailure(old, "other").version).toBe(4);
  expect(three(old, "other").version).toBe(5);
});

test("a broker that is down keeps MQTT 5; a broker that hangs up three times does not", () => {
  expect(three(firstChoice, "other").version).toBe(5);
  expect(afterFailure(firstChoice, "unanswered").version).toBe(5);
  expect(three(firstChoice, "unanswered").version).toBe(4);
});

test("a broker that leaves MQTT 5 unanswered three times is asked in 3.1.1, and one that is silent to both in MQTT 5 again", () => {
  expect(afterFailure(firstChoice, "silent").version).toBe(5);
  const old = three(firstChoice, "silent");
  expect([old.version, three(old, "silent").version]).toEqual([4, 5]);
});

test("a broker that answered MQTT 5 before is frozen when it is silent, and keeps its version", () => {
  expect(three(afterSuccess(firstChoice), "silent").version).toBe(5);
});

test("a broker that never answers MQTT 5 is connected again after an outage", () => {
  const old = afterSuccess(three(firstChoice, "silent"));
  const down = three(old, "other");
  expect([old.version, down.version, three(down, "silent").version]).toEqual([4, 5, 4]);
});

test("a broker that was down and is slow to answer once it is up keeps MQTT 5", () => {
  const down = [1, 2].reduce((now) => afterFailure(now, "other"), firstChoice);
  expect([afterFailure(down, "silent").version, afterFailure(down, "unanswered").version]).toEqual([5, 5]);
});
