import { expect, test } from "vitest";
import { instant } from "../../src/domain/units.ts";
import { Refusals } from "../../src/vtn/refusals.ts";
import { aLog } from "./aServer.ts";

function someRefusals() {
  let seconds = 0;
  const { log, lines } = aLog();
  const counted: string[] = [];
  const refusals = new Refusals({
    now: () => instant(seconds * 1000),
    monotonic: () => seconds * 1000,
    log,
    onRefused: (reason) => counted.push(reason),
  });
  return { refusals, lines, counted, pass: (more: number) => (seconds += more) };
}

const times = <T>(count: number, act: () => T): readonly T[] => Array.from({ length: count }, act);

test("an address is answered 60 times, gets 429 60 times, then is closed; another one is not touched", () => {
  const { refusals, pass } = someRefusals();
  const treated = times(130, () => refusals.treatment("192.0.2.1"));
  expect([treated[59], treated[60], treated[119], treated[120]]).toEqual([
    "answer",
    "tooMany",
    "tooMany",
    "close",
  ]);
  expect(refusals.treatment("192.0.2.2")).toBe("answer");
  pass(1);
  expect(times(6, () => refusals.treatment("192.0.2.1"))).toEqual([...times(5, () => "answer"), "tooMany"]);
});

test("each refusal is counted by its reason with its last explanation, and a flood of them fills no log", () => {
  const { refusals, lines, counted, pass } = someRefusals();
  const refusal = { reason: "malformed", explanation: "why", from: "192.0.2.1", status: 401 } as const;
  times(100, () => refusals.record(refusal));
  pass(60);
  refusals.record({ ...refusal, from: "192.0.2.9" });
  expect(counted).toHaveLength(101);
  expect(refusals.view()).toEqual({
    malformed: {
      count: 101,
      lastAt: "1970-01-01T00:01:00.000Z",
      lastFrom: "192.0.2.9",
      explanation: "why",
    },
  });
  expect(lines).toHaveLength(6);
});
