import { expect, test } from "vitest";

import { formatEnergy } from "../../src/domain/departure.ts";

test.each([
  [0, "0 kWh"],
  [46, "0.05 kWh"],
  [996, "1 kWh"],
  [1049, "1 kWh"],
  [26_559, "26.6 kWh"],
])("%i Wh is shown as %s: little energy is not shown as none", (wh, text) =>
  expect(formatEnergy(wh)).toBe(text),
);
