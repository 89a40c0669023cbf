import { expect, test } from "vitest";

import { chargerId } from "../../src/domain/units.ts";
import { aDepot } from "../support/aDepot.ts";
import { virtualNow } from "../support/virtualTime.ts";

const CHARGERS = 200;
const EVERY_SECONDS = 5;

test("200 chargers that speak every 5 s under an event cost less than one commit a second on average (S10)", async () => {
  const depot = await aDepot()
    .withVehicles(CHARGERS)
    .withEvent({ start: "00:10", minutes: 30, amperes: 10, spread: 10 })
    .running();
  const seconds = 3600;
  const before = depot.commits();
  for (let second = 0; second < seconds; second += EVERY_SECONDS) {
    for (let n = 1; n <= CHARGERS; n += 1)
      depot.says({
        kind: "telemetry",
        charger: chargerId(`bay-${String(n).padStart(2, "0")}`),
        telemetry: { at: virtualNow(), state: "charging", vehicle: `v${n}`, powerW: 2300 },
      });
    await depot.passes(EVERY_SECONDS * 1000);
  }
  const perSecond = (depot.commits() - before) / seconds;
  console.log(`${CHARGERS} chargers, an event in the hour: ${perSecond.toFixed(3)} commits a second`);
  expect(perSecond).toBeLessThan(1);
});
