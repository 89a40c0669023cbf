import { expect, test } from "vitest";

import { StopSteps } from "../../src/daemon/stopSteps.ts";

test("the last step runs first, each by its name, and parts are disposed of in their step", async () => {
  const ran: string[] = [];
  const stop = new StopSteps();
  const saw = (what: string): number => ran.push(`${stop.current}: ${what}`);
  const store = stop.use("close the store", { [Symbol.dispose]: () => void saw("closed") });
  stop.add("end control", () => void saw("ended"));
  stop.use("end trials", {
    [Symbol.asyncDispose]: async () => {
      await Promise.resolve();
      saw("trials ended");
    },
  });
  expect([stop.current, typeof store[Symbol.dispose]]).toEqual([null, "function"]);
  await stop[Symbol.asyncDispose]();
  expect(ran).toEqual(["end trials: trials ended", "end control: ended", "close the store: closed"]);
});

test("a step that fails does not keep the others from running", async () => {
  const ran: string[] = [];
  const stop = new StopSteps();
  stop.add("first added", () => void ran.push("first added"));
  stop.add("broken", () => {
    throw new Error("it is broken");
  });
  await expect(stop[Symbol.asyncDispose]()).rejects.toThrow("it is broken");
  expect(ran).toEqual(["first added"]);
});

test("steps that were taken over run once, with their new owner, which knows the one that runs", async () => {
  const ran: string[] = [];
  const starting = new StopSteps();
  starting.add("close the store", () => void ran.push("closed"));
  const running = starting.move();
  await starting[Symbol.asyncDispose]();
  expect(ran).toEqual([]);
  await running[Symbol.asyncDispose]();
  expect([ran, running.current]).toEqual([["closed"], "close the store"]);
});
