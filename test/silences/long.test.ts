import { expect, test } from "vitest";

import { aDepot } from "../support/aDepot.ts";

/** A day on which one event ends, one starts, one passes and one holds while somebody is silent from 08:00 to 20:00. */
const aDay = () =>
  aDepot()
    .withVehicles(5)
    .withEvent({ id: "ends", start: "07:00", minutes: 120, amperes: 10, vehicles: ["v1"] })
    .withEvent({ id: "starts", start: "09:00", minutes: 720, spread: 30, amperes: 12, vehicles: ["v2"] })
    .withEvent({ id: "passes", start: "10:00", minutes: 60, amperes: 14, vehicles: ["v3"] })
    .withEvent({ id: "holds", start: "07:00", minutes: 840, amperes: 16, vehicles: ["v4"] });

const bays = (messages: readonly string[]): readonly string[] =>
  messages.map((message) => message.replace(/^\S+ /, "")).toSorted();

test("F30 L4: the partner silent for twelve hours changes nothing of the plan, is asked rarely, and is believed at once when it is back", async () => {
  const depot = await aDay().running();
  await depot.until("08:00");
  depot.partner.answers = "silent";
  depot.forget();
  depot.has({ id: "news", start: "12:00", minutes: 600, amperes: 8, vehicles: ["v5"] });
  await depot.until("20:00");
  expect(depot.timedCommands().map((words) => words.replace(/^(\d\d:\d\d):\d\d\.\d+/, "$1"))).toEqual([
    "09:00 bay-01 release",
    expect.stringMatching(/^09:[0-2]\d bay-02 12 A$/),
    "10:00 bay-03 14 A",
    "11:00 bay-03 release",
  ]);
  expect(depot.partner.asked.length / 12).toBeLessThan(60);
  depot.partner.answers = "well";
  depot.forget();
  await depot.until("20:06");
  expect(depot.commands()).toEqual(["bay-05 8 A"]);
});

test("F80 S9: the broker silent for twelve hours, and afterwards each charger receives its setpoint, once", async () => {
  const depot = await aDay().running();
  await depot.until("08:00");
  depot.brokerGoes();
  depot.forget();
  await depot.until("20:00");
  expect(depot.messages()).toEqual([]);
  expect(depot.audit("missed")).toEqual([]);
  depot.brokerReturns();
  await depot.passes(30_000);
  // bay-03's event came and went: nobody knows what it heard, and letting it go cannot hurt.
  expect(bays(depot.messages())).toEqual(["bay-01 release", "bay-02 12 A", "bay-03 release", "bay-04 16 A"]);
});

test("F88 F91: chargers silent for twelve hours are offline until they report, and receive their setpoint once they are back", async () => {
  const depot = await aDay().running();
  const all = ["bay-01", "bay-02", "bay-03", "bay-04"];
  await depot.until("08:00");
  for (const charger of all) await depot.online(charger, false);
  depot.forget();
  await depot.until("20:00");
  expect(depot.messages()).toEqual([]);
  for (const charger of all) await depot.online(charger, true);
  await depot.passes(30_000);
  expect(bays(depot.messages())).toEqual(["bay-01 release", "bay-02 12 A", "bay-03 release", "bay-04 16 A"]);
});

test("F89 F91: a meter silent for twelve hours proves nothing either way: no verdict, no resend, no alarm; then it is judged", async () => {
  const depot = await aDay().running();
  await depot.until("09:40");
  await depot.telemetry("bay-02", { state: "charging", limitA: 12, currentsA: [12, 12, 12] });
  await depot.telemetry("bay-04", { state: "charging", limitA: 16, currentsA: [16, 16, 16] });
  await depot.until("20:00");
  // Twelve hours of refreshes, each the same command, and nothing else.
  expect(depot.commands().filter((words) => words.includes("bay-02"))).toEqual(["bay-02 12 A"]);
  const verdicts = () => depot.audit("outcome").filter((words) => words.includes("followed"));
  expect(verdicts()).toHaveLength(2);
  await depot.telemetry("bay-02", { state: "charging", limitA: 32, currentsA: [32, 32, 32] });
  await depot.passes(1_000);
  expect(verdicts().at(-1)).toContain("not followed: setpoint 12 A, reports a limit of 32 A");
});
