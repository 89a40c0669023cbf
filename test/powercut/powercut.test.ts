import { expect, test } from "vitest";

import { powercut, whyNot } from "./start.ts";

const reason = whyNot();

test("a power cut at any moment loses nothing acknowledged, leaves no half commit, and the record verifies (F02, S7, S8)", (context) => {
  if (reason !== null) return context.skip(reason);
  const { code, said } = powercut(["--cuts", "15"]);
  console.log(said);
  expect([code, JSON.parse(said)]).toMatchObject([0, { cuts: 15, faults: [] }]);
});

test("a store that does not wait for the disk is found out by the same cuts", (context) => {
  if (reason !== null) return context.skip(reason);
  const { code, said } = powercut(["--cuts", "10", "--unsafe"]);
  console.log(said.slice(0, 200));
  // Lost with the rows, or with the head that the epoch file tells of.
  expect([code, said]).toEqual([
    1,
    expect.stringMatching(/acknowledged rows are lost|the state was set aside/),
  ]);
});
