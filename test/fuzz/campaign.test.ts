import { expect, test } from "vitest";

import { campaign } from "./campaign.ts";

test("F37 F63 F64 F65 F66 F69: 20,000 mutated bodies change nothing, crash nothing, and what is accepted is whole", async () => {
  const outcome = await campaign({ bodies: 20_000, seed: 20_261_121 });
  expect(outcome.findings).toEqual([]);
  expect(new Set(outcome.answers.keys())).toEqual(new Set([202, 400, 401]));
  // Not all of it is refused at the door: a good part reaches the schema, and some of it passes.
  expect(outcome.rejected).toBeGreaterThan(1_000);
  expect(outcome.accepted).toBeGreaterThan(1_000);
  expect(outcome.slowestMs).toBeLessThan(1_000);
});
