import { DatabaseSync } from "node:sqlite";
import { expect, test, vi } from "vitest";

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

test("after an event ended on a full disk, a commit is tried each 5 s and not each 5 s for every charger (F05)", async () => {
  const [chargers, minutes] = [19, 10];
  const depot = await aDepot()
    .withVehicles(chargers)
    .withEvent({ start: "00:00", minutes: 1, amperes: 10, spread: 1 })
    .running();
  await depot.until("00:00:58");
  const commits = vi.mocked(DatabaseSync.prototype.exec);
  depot.disk.full = true;
  commits.mockClear();
  for (let minute = 0; minute < minutes; minute += 1)
    for (let n = 1; n <= chargers; n += 1) {
      await depot.telemetry(`bay-${String(n).padStart(2, "0")}`, { state: "charging", vehicle: `v${n}` });
      await depot.passes(Math.floor(60_000 / chargers) - 10);
    }
  const tried = commits.mock.calls.filter(([sql]) => sql === "COMMIT").length;
  // Each message of a charger is one more. Two of a kind come where a release waits for the disk.
  expect(tried).toBeLessThan(2 * minutes * (chargers + 60 / 5));
});
