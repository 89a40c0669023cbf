import { test } from "vitest";

import { PATIENCE, twentyDaysGoWell } from "./twentyDays.ts";

test.each([20_264_000, 20_265_000])(
  "F01 F20 F21 F22 F27 F30-F35 F37 F40 F41 F43 F50-F53 F59 F80 F85 F88-F92 L1 L3 L4: whatever goes wrong, all is well 30 s later: twenty later days from seed %i",
  PATIENCE,
  twentyDaysGoWell,
);
