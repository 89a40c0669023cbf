import { expect, test } from "vitest";

import { dayFrom } from "./generate.ts";
import { playDay } from "./playDay.ts";
import { PATIENCE, twentyDaysGoWell } from "./twentyDays.ts";

test.each([20_261_000, 20_262_000, 20_263_000])(
  "F01 F20 F21 F22 F27 F30-F35 F37 F40 F41 F43 F50-F53 F59 F80 F85 F88-F92 L1 L3 L4: whatever goes wrong, all is well 30 s later: twenty days from seed %i",
  PATIENCE,
  twentyDaysGoWell,
);

test("the same seed plays the same day, to the last message", async () => {
  const [once, again] = [await playDay(dayFrom(7, 3)), await playDay(dayFrom(7, 3))];
  expect(again).toEqual(once);
  expect(await playDay(dayFrom(8, 3))).not.toEqual(once);
});
