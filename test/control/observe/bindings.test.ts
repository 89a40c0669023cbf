import { expect, test } from "vitest";

import { rollBackBindings, unbindVehicle } from "../../../src/control/observe/bindings.ts";
import { chargerId, vehicleId } from "../../../src/domain/units.ts";
import { OperatorBindings } from "../../../src/operator/bindings.ts";
import { at } from "../../support/anEvent.ts";
import { aDepot } from "../../support/aDepot.ts";
import { aPicture, rememberedOf, restoreState } from "../../support/aPicture.ts";
import type { TestDepot } from "../../support/testDepot.ts";

const CONNECTED = { state: "connected", vehicle: null, identity: null } as const;
const BY_ANNA = { vehicle: "v9", by: "anna", reason: "it stands there" };

/** v9 is fixed to no charger, v1 to bay-01. An event asks both for 10 A from 08:00 to 12:00. bay-05 has a vehicle. */
async function site(): Promise<TestDepot> {
  const depot = await aDepot()
    .withVehicle("v9", null)
    .withVehicle("v1", "bay-01")
    .withCharger("bay-05")
    .withCharger("bay-06")
    .withEvent({ start: "08:00", minutes: 240, amperes: 10, vehicles: ["v9", "v1"] })
    .startingAt("08:00")
    .running();
  await depot.until("08:10");
  await depot.telemetry("bay-05", CONNECTED);
  await depot.telemetry("bay-06", { state: "unplugged" });
  depot.forget();
  return depot;
}

/** Commands since the last call. */
function fresh(depot: TestDepot): readonly string[] {
  const commands = depot.commands();
  depot.forget();
  return commands;
}

/** A charging vehicle with a card that no vehicle has. */
const card = (value: string) => ({ state: "charging", identity: { kind: "rfid", value } }) as const;

const ofPersons = (depot: TestDepot): readonly string[] => depot.audit("operator").map((words) => words);

test("a charger that cannot tell its vehicle gets the setpoint of the one that a person names, by name and reason", async () => {
  const depot = await site();
  expect(await depot.bind("bay-05", "v9")).toMatchObject({
    ok: true,
    value: {
      ...BY_ANNA,
      charger: "bay-05",
      from: null,
      level: { currentA: 10 },
      sentence: "v9 is assigned to bay-05; bay-05 gets 10 A",
    },
  });
  expect(fresh(depot)).toEqual(["bay-05 10 A"]);
  expect(ofPersons(depot)).toEqual(["v9 is at bay-05, says anna: it stands there"]);
  // The charger goes on without an identity.
  for (const state of ["connected", "charging", "finished"] as const)
    await depot.telemetry("bay-05", { ...CONNECTED, state });
  await depot.telemetry("bay-05", { state: "charging", powerW: 6_900 });
  await depot.until("11:59");
  expect(fresh(depot)).toEqual([]);
  await depot.until("12:00:01");
  expect(fresh(depot)).toContain("bay-05 release");
});

test.each([
  ["unplugged", { state: "unplugged" }, "bay-05 reports unplugged: that v9 is there, as anna said, is over"],
  [
    "another vehicle",
    { state: "charging", vehicle: "stranger" },
    "bay-05 names another vehicle itself: that v9 is there, as anna said, is over",
  ],
] as const)(
  "it is over once the charger reports %s, and does not come back",
  async (_case, reported, words) => {
    const depot = await site();
    await depot.bind("bay-05", "v9");
    await depot.telemetry("bay-05", reported);
    expect(fresh(depot)).toEqual(["bay-05 10 A", "bay-05 release"]);
    expect(ofPersons(depot).at(-1)).toBe(words);
    await depot.telemetry("bay-05", CONNECTED);
    await depot.restart();
    await depot.until("09:00");
    expect(fresh(depot)).toEqual([]);
  },
);

test("a person takes it back: the charger is released, and both names are on record", async () => {
  const depot = await site();
  await depot.bind("bay-05", "v9");
  expect(await depot.unbind("bay-05")).toMatchObject({
    ok: true,
    value: { sentence: "v9 is no longer assigned to bay-05; bay-05 decides by itself" },
  });
  expect(fresh(depot)).toEqual(["bay-05 10 A", "bay-05 release"]);
  expect(ofPersons(depot).at(-1)).toBe("bert takes back that v9 is at bay-05: a mistake");
  expect(await depot.unbind("bay-05")).toMatchObject({
    ok: false,
    problem: { status: 409, detail: "nobody has named the vehicle at bay-05" },
  });
});

test("a restart keeps it, though the charger reports no identity", async () => {
  const depot = await site();
  await depot.bind("bay-05", "v9", "anna", "key-1");
  await depot.restart();
  await depot.telemetry("bay-05", CONNECTED);
  await depot.until("09:00");
  expect(fresh(depot)).toEqual(["bay-05 10 A"]);
  // A repeated request is answered as before, not with "already there".
  expect(await depot.bind("bay-05", "v9", "anna", "key-1")).toMatchObject({ ok: true, value: BY_ANNA });
  expect(ofPersons(depot)).toHaveLength(1);
  await depot.until("12:00:01");
  expect(fresh(depot)).toContain("bay-05 release");
});

test("a restart without its vehicle in the configuration forgets it", async () => {
  const depot = await site();
  await depot.bind("bay-05", "v9");
  await depot.restart({ without: "v9" });
  expect(ofPersons(depot).at(-1)).toBe(
    "that v9 is at bay-05, as anna said, is over: the configuration lacks one of them",
  );
  await depot.restart();
  expect(ofPersons(depot)).toHaveLength(2);
});

test("an identity that no vehicle has does not contradict the person; another identity does", async () => {
  const depot = await site();
  await depot.telemetry("bay-05", card("AB"));
  await depot.bind("bay-05", "v9");
  expect(fresh(depot)).toEqual(["bay-05 10 A"]);
  await depot.telemetry("bay-05", card("AB"));
  await depot.until("08:12");
  expect(fresh(depot)).toEqual([]);
  await depot.unbind("bay-05");
  expect(fresh(depot)).toEqual(["bay-05 release"]);
  await depot.bind("bay-05", "v9");
  await depot.telemetry("bay-05", card("CD"));
  expect(ofPersons(depot).at(-1)).toContain("names another vehicle itself");
});

test("a vehicle that counts elsewhere moves, and the bay that it leaves keeps its limit until it reports unplugged", async () => {
  const depot = await site();
  await depot.telemetry("bay-01", { state: "charging", currentsA: [10, 10, 10] });
  expect(await depot.bind("bay-05", "v1")).toMatchObject({
    ok: true,
    value: { from: "bay-01", sentence: "v1 is assigned to bay-05, no longer to bay-01; bay-05 gets 10 A" },
  });
  expect(fresh(depot)).toEqual(["bay-05 10 A"]);
  expect(depot.audit("outcome").at(-1) ?? "").toMatch(/keeps 10 A: v1 is reported at bay-05, but bay-01 /);
  await depot.telemetry("bay-01", { state: "unplugged" });
  await depot.passes(1000);
  expect(fresh(depot)).toEqual(["bay-01 release"]);
});

test("at a fixed bay the person's word counts before the fixed vehicle, which is back after unplugged", async () => {
  const depot = await site();
  await depot.telemetry("bay-01", { state: "charging", currentsA: [10, 10, 10] });
  await depot.deliver({
    id: "EV-9",
    start: "08:20",
    minutes: 60,
    amperes: 16,
    vehicles: ["v9"],
    priority: 0,
  });
  await depot.until("08:30");
  await depot.telemetry("bay-01", { state: "charging" });
  await depot.bind("bay-01", "v9");
  expect(fresh(depot)).toEqual(["bay-01 16 A"]);
  await depot.telemetry("bay-01", { state: "unplugged" });
  expect(fresh(depot)).toEqual(["bay-01 10 A"]);
});

test("a second person corrects the first, who is named", async () => {
  const depot = await site();
  await depot.bind("bay-05", "v9");
  await depot.bind("bay-05", "v1", "bert");
  expect(ofPersons(depot).at(-1)).toBe("v1 is at bay-05, says bert, not v9 as anna said: it stands there");
  const both = await Promise.all([depot.bind("bay-05", "v9"), depot.bind("bay-05", "v9", "bert")]);
  expect(both.map(({ ok }) => ok)).toEqual([true, false]);
  expect(both[1]).toMatchObject({
    problem: { detail: "it is assigned there already: a person has said so" },
  });
});

test.each([
  ["bay-05", "v99", 400, "vehicle: did you mean v9?"],
  ["bay-05", "the green one", 400, "vehicle: the id or the name of a vehicle of this site"],
  ["bay-06", "v9", 409, "nothing is plugged in at bay-06"],
  ["bay-99", "v9", 404, "one of bay-01, bay-05, bay-06"],
])("%s with %s is refused", async (charger, vehicle, status, detail) => {
  const depot = await site();
  expect(await depot.bind(charger, vehicle)).toMatchObject({ ok: false, problem: { status, detail } });
  expect([fresh(depot), ofPersons(depot)]).toEqual([[], []]);
});

test("a charger that names its vehicle, that is gone, or that never reported, is not bound", async () => {
  const depot = await site();
  const detail = async (vehicle: string) => {
    const answer = await depot.bind("bay-05", vehicle);
    return answer.ok ? null : answer.problem.detail;
  };
  await depot.telemetry("bay-05", { state: "charging", vehicle: "v1" });
  expect([await detail("v1"), await detail("v9")]).toEqual([
    "it is assigned there already: the charger reports it",
    "bay-05 itself reports v1",
  ]);
  await depot.online("bay-05", false);
  expect(await detail("v9")).toBe("bay-05 is offline: what is plugged in there is not known");
  expect(await depot.bind("bay-01", "v9")).toMatchObject({
    ok: false,
    problem: { detail: "bay-01 has not reported yet that a vehicle is plugged in" },
  });
});

test("while the disk is full it does not count, and nothing is left of it", async () => {
  const depot = await site();
  depot.disk.full = true;
  expect(await depot.bind("bay-05", "v9")).toMatchObject({ ok: false, problem: { status: 503 } });
  depot.disk.full = false;
  await depot.until("08:13");
  expect(fresh(depot)).toEqual([]);
  expect(await depot.bind("bay-05", "v9")).toMatchObject({ ok: true });
});

test("what the charger ends while the disk is full stays over, also after a restart", async () => {
  const depot = await site();
  await depot.bind("bay-05", "v9");
  depot.disk.full = true;
  await depot.telemetry("bay-05", { state: "unplugged" });
  await depot.passes(1000);
  depot.disk.full = false;
  await depot.telemetry("bay-05", CONNECTED);
  await depot.until("08:13");
  await depot.restart();
  await depot.until("08:30");
  expect(fresh(depot)).toEqual(["bay-05 10 A", "bay-05 release"]);
  expect(ofPersons(depot).at(-1)).toContain("bay-05 reports unplugged");
});

test("what a person takes back while the disk is full still counts", async () => {
  const depot = await site();
  await depot.bind("bay-05", "v9");
  depot.disk.full = true;
  expect(await depot.unbind("bay-05")).toMatchObject({ ok: false, problem: { status: 503 } });
  depot.disk.full = false;
  await depot.until("08:13");
  expect(await depot.unbind("bay-05")).toMatchObject({ ok: true });
});

test("while the database refuses, a person is not answered that nobody has named the vehicle", async () => {
  const bindings = new OperatorBindings({
    state: aPicture(),
    request: async () => ({
      ok: false,
      reason: "the database cannot be reached",
      dropped: [],
      stored: null,
    }),
    now: () => at("05:00"),
    isReady: () => true,
  });
  expect(await bindings.unbind("bay-01", { reason: "a mistake" }, "bert")).toMatchObject({
    problem: { status: 503, detail: "the database cannot be reached" },
  });
});

test("a bay that kept the limit of a vehicle that left keeps it where the word of a person cannot be stored", async () => {
  const depot = await site();
  await depot.telemetry("bay-01", { state: "charging", currentsA: [10, 10, 10] });
  await depot.telemetry("bay-05", { state: "charging", vehicle: "v1" });
  expect(fresh(depot)).toEqual(["bay-05 10 A"]);
  depot.disk.full = true;
  expect(await depot.bind("bay-01", "v9")).toMatchObject({ ok: false, problem: { status: 503 } });
  depot.disk.full = false;
  await depot.telemetry("bay-01", { state: "charging", currentsA: [10, 10, 10] });
  await depot.until("08:14");
  expect(fresh(depot)).toEqual([]);
});

test("what was said of a charger or a vehicle that the configuration lacks counts nowhere, and can be taken back", () => {
  const said = { identity: null, by: "anna", reason: "it stands there", since: at("05:00"), key: null };
  const noCharger = { ...said, charger: chargerId("bay-99"), vehicle: vehicleId("veh-214") };
  const noVehicle = { ...said, charger: chargerId("bay-02"), vehicle: vehicleId("veh-99") };
  const state = aPicture();
  restoreState(state, rememberedOf({ bindings: [noCharger] }), at("05:10"));
  expect(state.occupancy.bindingAt(noCharger.charger)).toBeNull();
  expect(rollBackBindings(state, [noVehicle.charger], [noVehicle], at("05:10"))).toEqual([]);
  expect(state.occupancy.bindingAt(noVehicle.charger)).toBeNull();
  // Of a charger without a message since the start, what is stored counts.
  const stored = { ...noVehicle, vehicle: vehicleId("veh-214") };
  expect(rollBackBindings(state, [stored.charger], [stored], at("05:10"))).toEqual([]);
  expect(state.occupancy.bindingAt(stored.charger)).toEqual(stored);
  const { changes } = unbindVehicle(state, noVehicle, { by: "bert", reason: "it was sold" }, at("05:10"));
  expect(changes).toContainEqual(
    expect.objectContaining({
      entry: expect.objectContaining({
        words: "bert takes back that veh-99 is at bay-02: it was sold",
      }),
    }),
  );
});
