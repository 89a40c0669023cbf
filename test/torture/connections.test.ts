import { expect, test } from "vitest";

import { connectionsOf } from "./connections.ts";

const greeting = (at: number, text = "true") => ({ at, text });

test("a greeting is that of the run that sent it, also where it arrives when the next has begun", () => {
  const greetings = [
    greeting(500),
    greeting(900, "false"),
    greeting(1_900),
    greeting(2_050),
    greeting(2_060, "false"),
    greeting(4_700),
  ];
  expect(connectionsOf([0, 2_000, 3_000, 4_000], greetings)).toEqual([[500, 1_900, 2_050], [], [], [4_700]]);
});
