import { expect, test } from "vitest";

import { aDepot } from "../support/aDepot.ts";

/** bay-01 takes amperes only; v1 is asked for 7 kW from 08:00 to 09:00. */
const inAmperes = (phases?: number) =>
  aDepot()
    .withVehicle("v1", "bay-01", phases === undefined ? {} : { phases })
    .withEvent({ start: "08:00", minutes: 60, kilowatts: 7 });

test("a vehicle that starts on one phase gets no more current than three phases may draw", async () => {
  const depot = await inAmperes(3).equippedWith({ takesWatts: false, refresh: null }).running();
  await depot.telemetry("bay-01", { state: "charging", currentsA: [6, 0, 0] });
  await depot.until("08:10");
  await depot.telemetry("bay-01", { state: "charging", currentsA: [10.1, 0, 0], limitA: 10.1 });
  await depot.until("08:11");
  await depot.telemetry("bay-01", { state: "charging", currentsA: [10.1, 10.1, 10.1], limitA: 10.1 });
  await depot.until("08:30");
  expect(depot.timedCommands()).toEqual(["08:00:00.000 bay-01 10.1 A"]);
});

test("a vehicle that draws on more phases than it declares is reduced at once, also where nothing is refreshed", async () => {
  const depot = await inAmperes(1).equippedWith({ takesWatts: false, refresh: null }).running();
  await depot.until("08:10");
  await depot.telemetry("bay-01", { state: "charging", currentsA: [30, 30, 30] });
  await depot.until("08:10:30");
  expect(depot.timedCommands()).toEqual(["08:00:00.000 bay-01 30.4 A", "08:10:00.001 bay-01 10.1 A"]);
});

test("a mains voltage that wanders by a little becomes no stream of commands, wherever it wanders", async () => {
  const depot = await inAmperes().equippedWith({ takesWatts: false }).running();
  for (let tick = 0; tick < 59 * 6; tick += 1) {
    const minute = Math.floor(tick / 6);
    await depot.until(
      `08:${String(minute).padStart(2, "0")}:${(tick % 6) * 10 + 5}`.replace(/:(\d)$/, ":0$1"),
    );
    const volts = 232.5 + (minute % 2 === 0 ? -0.1 : 0.1) + Math.floor(tick / 120);
    await depot.telemetry("bay-01", { state: "charging", voltagesV: [volts, volts, volts] });
  }
  expect(depot.commands().length).toBeLessThanOrEqual(2);
});

test("a meter that reports every two minutes does not change the voltage in use back and forth", async () => {
  const depot = await inAmperes().equippedWith({ takesWatts: false }).running();
  for (let minute = 10; minute < 50; minute += 2) {
    await depot.until(`08:${minute}`);
    await depot.telemetry("bay-01", { state: "charging", voltagesV: [238, 238, 238] });
  }
  expect(depot.commands()).toEqual(["bay-01 10.1 A", "bay-01 9.8 A"]);
});
