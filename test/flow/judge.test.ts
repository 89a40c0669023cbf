import { expect, test } from "vitest";

import { aDepot } from "../support/aDepot.ts";

/** bay-01 is told 16 A from 08:00 to 09:00. */
const charging = async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", minutes: 60, amperes: 16 })
    .running();
  await depot.until("08:00:05");
  return depot;
};

const outcomes = (depot: Awaited<ReturnType<typeof charging>>): readonly string[] =>
  depot.audit("outcome").map((words) => words.replace(/^bay-01 \S+ /, ""));

test("a charger has the ramp time to get there, and is then seen to follow", async () => {
  const depot = await charging();
  await depot.telemetry("bay-01", { limitA: 16, currentsA: [31, 31, 31] });
  await depot.until("08:00:31");
  await depot.telemetry("bay-01", { limitA: 16, currentsA: [15.8, 15.8, 15.8] });
  await depot.passes(1000);
  expect(outcomes(depot).at(-1)).toBe("followed: reports a limit of 16 A and draws 15.8 A");
  expect(outcomes(depot).filter((words) => words.startsWith("not followed"))).toEqual([]);
});

test("an ignored setpoint is sent again three times with growing pauses, then it is an alarm (F89)", async () => {
  const depot = await charging();
  depot.forget();
  for (let minute = 1; minute < 30; minute += 1) {
    await depot.until(`08:${String(minute).padStart(2, "0")}:00`);
    await depot.telemetry("bay-01", { limitA: 32, currentsA: [32, 32, 32] });
  }
  await depot.passes(1000);
  const seen = outcomes(depot).filter((words) => words.includes("followed"));
  expect(seen).toEqual([
    "not followed: told 16 A, reports a limit of 32 A and draws 32 A; sent again (1 of 3)",
    "not followed: told 16 A, reports a limit of 32 A and draws 32 A; sent again (2 of 3)",
    "not followed: told 16 A, reports a limit of 32 A and draws 32 A; sent again (3 of 3)",
    "still not followed after 3 more tries: told 16 A, reports a limit of 32 A and draws 32 A; something else controls it, or it is broken",
  ]);
});

test("a charger that drifts after it followed is told again, and its return is on record", async () => {
  const depot = await charging();
  await depot.until("08:01");
  await depot.telemetry("bay-01", { limitA: 16 });
  await depot.until("08:05");
  await depot.telemetry("bay-01", { limitA: 32 });
  await depot.until("08:10");
  await depot.telemetry("bay-01", { limitA: 16 });
  await depot.passes(1000);
  expect(outcomes(depot).filter((words) => words.includes("followed"))).toEqual([
    "followed: reports a limit of 16 A",
    "not followed: told 16 A, reports a limit of 32 A; sent again (1 of 3)",
    "followed: reports a limit of 16 A",
  ]);
});

test("a release is judged too", async () => {
  const depot = await charging();
  await depot.until("09:00:40");
  await depot.telemetry("bay-01", { limitA: 16 });
  await depot.until("09:03");
  await depot.telemetry("bay-01", { limitA: 32 });
  await depot.passes(1000);
  expect(outcomes(depot).filter((words) => words.includes("followed"))).toEqual([
    "not followed: released, reports a limit of 16 A; sent again (1 of 3)",
    "followed: reports a limit of 32 A",
  ]);
});

test("a charger that tells nothing that could be judged is not judged", async () => {
  const depot = await charging();
  await depot.until("08:05");
  await depot.telemetry("bay-01", { state: "charging", soc: 40 });
  await depot.passes(1000);
  expect(outcomes(depot).filter((words) => words.includes("followed"))).toEqual([]);
});
