import { expect, test } from "vitest";

import { seconds } from "../../src/domain/units.ts";
import { aDepot } from "../support/aDepot.ts";

const acting = (onStop: string) =>
  aDepot()
    .withControl({ onStop })
    .withVehicles(2)
    .withEvent({ start: "08:00", minutes: 60, amperes: 10, vehicles: ["v1"] });

test("a stop that keeps limits sends nothing, and names every charger that stays limited", async () => {
  const depot = await acting("keep").running();
  await depot.until("08:10:30");
  depot.forget();
  await depot.stop();
  expect(depot.messages()).toEqual([]);
  expect(depot.warnings).toEqual([
    "bay-01 stays at 10 A until 08:13:00, then it goes back to its own limits by itself",
  ]);
});

test("a stop does not say that a charger stays at a level which the broker never acknowledged", async () => {
  const depot = await acting("keep").running();
  depot.brokerGoes();
  await depot.until("08:01");
  depot.warnings.length = 0;
  await depot.stop();
  expect(depot.warnings).toEqual([
    "bay-01 may stay at 10 A, which the broker did not acknowledge, until 08:03:00, then it goes back to its own limits by itself",
  ]);
});

test("a stop that releases is sent to every limited charger, and a restart resumes the event", async () => {
  const depot = await acting("release").running();
  await depot.until("08:10:30");
  depot.forget();
  await depot.stop();
  expect(depot.commands()).toEqual(["bay-01 release"]);
  depot.forget();
  depot.start();
  await depot.passes(1000);
  expect(depot.commands().at(-1)).toBe("bay-01 10 A");
});

test.each(["release", "pause"])(
  "after a stop that does %s a start within the event sends each charger one message",
  async (onStop) => {
    const depot = await acting(onStop).running();
    await depot.until("08:10:30");
    await depot.stop();
    depot.forget();
    depot.start();
    await depot.passes(1000);
    expect(depot.messages().map((line) => line.slice(13))).toEqual(["bay-01 10 A"]);
  },
);

test("a stop that pauses is undone by a start after the event has ended", async () => {
  const depot = await acting("pause").running();
  await depot.until("08:10:30");
  depot.forget();
  await depot.stop();
  expect(depot.commands()).toEqual(["bay-01 pause"]);
  await depot.until("09:30");
  depot.forget();
  depot.start();
  await depot.passes(1000);
  expect(depot.commands()).toEqual(["bay-01 release"]);
});

test("a stop's command follows the publish in flight, and so is the last", async () => {
  const depot = await acting("release").running();
  depot.floor.publishing("bay-01", { takesMs: 60_000 });
  await depot.until("08:00:30");
  depot.floor.publishing("bay-01", "works");
  await depot.stop();
  expect(depot.commands()).toEqual(["bay-01 10 A", "bay-01 release"]);
  expect(depot.floor.breaches).toEqual([]);
});

test("a stop names the chargers that it could not reach, and until when they stay limited", async () => {
  const depot = await aDepot()
    .withControl({ onStop: "release" })
    .withVehicles(3)
    .withEvent({ start: "08:00", minutes: 60, amperes: 10 })
    .running();
  await depot.until("08:10:30");
  depot.forget();
  await depot.online("bay-02", false);
  depot.floor.publishing("bay-03", "fails");
  await depot.stop();
  expect(depot.commands()).toEqual(["bay-01 release"]);
  expect(depot.warnings.toSorted()).toEqual([
    "bay-02 stays at 10 A until 08:13:00, then it goes back to its own limits by itself",
    "bay-03 stays at 10 A until 08:13:00, then it goes back to its own limits by itself",
  ]);
});

test("F05: a stop that cannot be recorded sends nothing, and names every charger that stays limited", async () => {
  const depot = await acting("release").running();
  await depot.until("08:10:30");
  depot.forget();
  await depot.stop({ full: true });
  expect(depot.messages()).toEqual([]);
  expect(depot.warnings).toEqual([
    expect.stringMatching(/^the stop could not be recorded: .*full/),
    "bay-01 stays at 10 A until 08:13:00, then it goes back to its own limits by itself",
  ]);
});

test("a stop names no time that is past, and none for a charger that holds its level without end", async () => {
  const depot = await acting("keep")
    .equippedWith({ whenSilent: { kind: "holds" }, refresh: null })
    .running();
  await depot.until("08:30:30");
  await depot.stop();
  expect(depot.warnings).toEqual([
    "bay-01 stays at 10 A until it is freed: it holds its last level without end",
  ]);
  const leased = await acting("keep").running();
  await leased.until("08:10:30");
  leased.brokerGoes();
  await leased.until("08:30");
  leased.warnings.length = 0;
  await leased.stop();
  expect(leased.warnings).toEqual([]);
});

test.each([
  ["pause", "pauses by itself until it is freed"],
  ["own limits", "goes back to its own limits by itself"],
] as const)("a stop reports the effect of the charger's own time-out (%s)", async (effect, words) => {
  const whenSilent = { kind: "timeout", after: seconds(90), effect } as const;
  const depot = await acting("keep").equippedWith({ whenSilent }).running();
  await depot.until("08:10:30");
  await depot.stop();
  expect(depot.warnings).toEqual([`bay-01 stays at 10 A until 08:12:00, then it ${words}`]);
});

test("a stop at a broker that hangs ends in time, and names the chargers that stay limited", async () => {
  const depot = await acting("release").running();
  await depot.until("08:10:30");
  depot.forget();
  depot.floor.publishing("bay-01", "hangs");
  await depot.stop({ patience: 2_600 });
  expect(depot.warnings).toEqual([
    "bay-01 stays at 10 A until 08:13:00, then it goes back to its own limits by itself",
  ]);
});
