import { expect, test } from "vitest";

import { instant } from "../../src/domain/units.ts";
import { rebootApi } from "../../src/operator/chargerActions.ts";
import { aDepot } from "../support/aDepot.ts";
import { aPicture } from "../support/aPicture.ts";

const WHY = { reason: "it does not follow" };
const NONE = { id: null, identity: null };

/** v1 at bay-01 is under an event from 08:00 to 12:00, v2 at bay-02 is not. */
const limited = (control = {}) =>
  aDepot()
    .withControl(control)
    .withVehicles(2)
    .startingAt("08:00")
    .withEvent({ start: "08:00", minutes: 240, amperes: 8, vehicles: ["v1"] });

test("a setpoint is sent again once, with its own number, and the person and the reason are on record", async () => {
  const depot = await limited().running();
  await depot.until("08:10");
  const before = depot.messages().length;
  expect(await depot.resendCommand("bay-01", WHY)).toMatchObject({
    ok: true,
    value: {
      charger: "bay-01",
      vehicle: "v1",
      level: { currentA: 8 },
      command: expect.stringMatching(/^\d+-\d+$/),
      sentence: "bay-01 is sent 8 A again",
    },
  });
  expect(depot.messages().slice(before)).toEqual(["08:10:00.001 bay-01 8 A"]);
  expect(depot.audit("operator")).toEqual([
    expect.stringContaining("bay-01 is sent 8 A again by anna: it does not follow"),
  ]);
  expect(depot.audit("decision").filter((row) => row.includes("bay-01"))).toHaveLength(1);
});

test.each([
  ["bay-02", "it has had no command yet"],
  ["bay-01", "the charger is offline", { online: false }],
])("nothing is sent to %s: %s", async (charger, detail, { online } = { online: true }) => {
  const depot = await limited().running();
  await depot.until("08:10");
  if (!online) await depot.online(charger, false);
  depot.forget();
  expect(await depot.resendCommand(charger, WHY)).toMatchObject({
    ok: false,
    problem: { status: 409, detail: expect.stringContaining(detail) },
  });
  expect([depot.commands(), depot.audit("operator")]).toEqual([[], []]);
});

test("a charger that has followed its release gets nothing more", async () => {
  const depot = await limited().running();
  await depot.until("12:05");
  await depot.telemetry("bay-01", {
    state: "connected",
    powerW: 0,
    currentsA: [0, 0, 0],
    limitA: 32,
    ...NONE,
  });
  await depot.until("12:10");
  expect(await depot.resendCommand("bay-01", WHY)).toMatchObject({
    problem: { status: 409, detail: expect.stringContaining("a release") },
  });
});

test("in observe mode nothing is sent again", async () => {
  const depot = await limited({ mode: "observe" }).running();
  await depot.until("08:10");
  expect(await depot.resendCommand("bay-01", WHY)).toMatchObject({
    problem: { status: 409, detail: expect.stringContaining("mode observe") },
  });
});

test("a reason is required, a mistake names its member and what it holds, and the charger must be one of the site", async () => {
  const depot = await limited().running();
  const refused = async (body: unknown) => {
    const answer = await depot.resendCommand("bay-01", body);
    return answer.ok ? [] : answer.problem.errors.map(({ path, found }) => [path, found]);
  };
  const long = "x".repeat(201);
  expect(await refused({})).toEqual([["reason", null]]);
  expect(await refused({ reason: " " })).toEqual([["reason", " "]]);
  expect(await refused({ reason: long })).toEqual([["reason", long]]);
  expect(await refused({ ...WHY, who: "anna" })).toEqual([["who", "anna"]]);
  expect(await refused(null)).toEqual([["", null]]);
  expect(await depot.resendCommand("bay-9", WHY)).toMatchObject({ problem: { status: 404 } });
});

test("a reboot that the database refused is not under way afterwards", async () => {
  const reboots = rebootApi({
    state: aPicture(),
    request: async () => ({
      ok: false,
      reason: "the database cannot be reached",
      dropped: [],
      stored: null,
    }),
    isReady: () => true,
    now: () => instant(0),
    isLinked: () => true,
    chargers: { cannotReboot: () => null, reboot: async () => ({ ok: true }) },
  });
  for (let tries = 0; tries < 2; tries += 1)
    expect(await reboots.start("bay-01", WHY, "anna")).toMatchObject({ problem: { status: 503 } });
  expect(reboots.get("bay-01")).toMatchObject({
    value: { hindrance: null, last: { progress: "failed" } },
  });
});
