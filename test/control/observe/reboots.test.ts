import { expect, test, vi } from "vitest";

import { hasStarted, rebootSentence } from "../../../src/control/observe/reboots.ts";
import type { StartMark } from "../../../src/domain/telemetry.ts";
import { chargerId, instant } from "../../../src/domain/units.ts";
import { aDepot } from "../../support/aDepot.ts";
import { virtualNow } from "../../support/virtualTime.ts";

const WHY = { reason: "it hangs" };
const BAY = chargerId("bay-01");

/** v1 at bay-01 charges with 8 A under an event from 08:00 to 12:00; v2 at bay-02 is not under it. */
async function charging(control = {}) {
  const depot = await aDepot()
    .withControl(control)
    .withVehicle("v1", "bay-01", { name: "Bus 214" })
    .withVehicle("v2", "bay-02")
    .startingAt("08:00")
    .withEvent({ start: "08:00", minutes: 240, amperes: 8, vehicles: ["v1"] })
    .running();
  await depot.until("08:10");
  await depot.online("bay-01", true);
  await depot.telemetry("bay-01", { state: "charging", powerW: 5520, currentsA: [8, 8, 8], limitA: 8 });
  depot.forget();
  return depot;
}

type Depot = Awaited<ReturnType<typeof charging>>;

/** The row of a charger, and the ids of its restarts. */
const shown = (depot: Depot, charger = "bay-01") => depot.chargerRow(charger);
const rows = (depot: Depot): readonly string[] => depot.audit("operator");

test("a charger gets the reboot, is away, and gets its level again when it is back", async () => {
  const depot = await charging();
  expect(await depot.reboot("bay-01", WHY)).toMatchObject({
    ok: true,
    value: {
      charger: "bay-01",
      vehicle: "v1",
      hindrance: expect.stringContaining("a reboot is under way"),
      last: { by: "anna", reason: "it hangs", progress: "sent", withinS: 300 },
    },
  });
  expect(depot.floor.reboots).toEqual([["bay-01", expect.stringMatching(/^reboot-\d+-1$/)]]);
  await depot.passes(2000);
  await depot.online("bay-01", false);
  expect(shown(depot)).toMatchObject({ reboot: { progress: "away" } });
  await depot.passes(10_000);
  const before = depot.messages().length;
  await depot.online("bay-01", true);
  expect(shown(depot)).toMatchObject({
    reboot: { progress: "back", sentence: "bay-01 is back 12 s after the reboot by anna" },
    restarts: { counted: "returns", count: 1 },
  });
  expect(depot.messages().slice(before)).toEqual([expect.stringContaining("bay-01 8 A")]);
  expect(rows(depot)).toEqual([
    "reboot of bay-01 by anna: it hangs",
    "bay-01 is back 12 s after the reboot by anna",
  ]);
});

test("before a reboot a person reads who charges there, and what follows", async () => {
  const depot = await charging();
  const will = () => {
    const answer = depot.rebootPreview("bay-01");
    return answer.ok ? (answer.value as { will: readonly string[] }).will : [];
  };
  expect(will()).toEqual([
    "Bus 214 charges there now with 5.5 kW: that is interrupted.",
    "A charger with several outlets reboots as a whole.",
    "When it is back, it is sent its level again: 8 A. Until then its own settings apply.",
  ]);
  await depot.telemetry("bay-01", { state: "charging", powerW: 0 });
  expect(will()[0]).toBe("Bus 214 charges there now: that is interrupted.");
  await depot.telemetry("bay-01", { state: "connected", powerW: 0 });
  expect(will()[0]).toBe("Bus 214 is plugged in and does not charge now.");
  await depot.telemetry("bay-01", {
    state: "connected",
    powerW: 0,
    vehicle: null,
    identity: { kind: "mac", value: "x" },
  });
  expect(will()[0]).toBe("A vehicle is plugged in and does not charge now.");
  await depot.telemetry("bay-01", { state: "unplugged", powerW: 0 });
  expect(will()[0]).toBe("No vehicle is plugged in.");
  await depot.telemetry("bay-01", { state: "unknown", powerW: 0 });
  expect(will()[0]).toMatch(/^Whether a vehicle charges there is not known/);
  const other = depot.rebootPreview("bay-02");
  expect(other).toMatchObject({
    value: {
      hindrance: null,
      last: null,
      will: [expect.stringMatching(/is not known/), expect.any(String), expect.stringMatching(/as now/)],
    },
  });
  expect(depot.rebootPreview("bay-9")).toMatchObject({ problem: { status: 404 } });
});

test("a charger that the configuration names without a name for its vehicle is called by the vehicle's id", async () => {
  const depot = await charging();
  await depot.telemetry("bay-02", { state: "charging", powerW: 11_000 });
  expect(depot.rebootPreview("bay-02")).toMatchObject({
    value: {
      will: [
        "v2 charges there now with 11.0 kW: that is interrupted.",
        expect.any(String),
        expect.any(String),
      ],
    },
  });
});

test.each([
  ["the mode is observe", "mode observe: nothing is sent to a charger"],
  ["the charger is offline", "the charger is offline: a reboot cannot reach it"],
  ["its make has no such message", "go-e cannot reboot"],
  ["its broker is away", "its broker is not connected"],
  ["commissioning has it", "commissioning has the charger"],
])("nothing is sent and nothing is on record while %s", async (why, detail) => {
  const depot = await charging(why === "the mode is observe" ? { mode: "observe" } : {});
  if (why === "the charger is offline") await depot.online("bay-01", false);
  if (why === "its make has no such message") depot.floor.cannotReboot = detail;
  if (why === "its broker is away") depot.brokerGoes();
  if (why === "commissioning has it") depot.lends("bay-01");
  depot.forget();
  expect(await depot.reboot("bay-01", WHY)).toMatchObject({ ok: false, problem: { status: 409, detail } });
  expect([depot.floor.reboots, shown(depot)["reboot"]]).toEqual([[], null]);
  expect(depot.audit("operator").filter((row) => row.includes("reboot"))).toEqual([]);
});

test("a reason is required, the charger must be one of the site, and a second press restarts nothing", async () => {
  const depot = await charging();
  for (const body of [{}, { reason: " " }, { reason: "x".repeat(201) }])
    expect(await depot.reboot("bay-01", body)).toMatchObject({
      problem: { status: 400, errors: [{ path: "reason" }] },
    });
  expect(await depot.reboot("bay-01", { ...WHY, hard: true })).toMatchObject({
    problem: { status: 400, errors: [{ path: "hard", found: true }] },
  });
  expect(await depot.reboot("bay-9", WHY)).toMatchObject({ problem: { status: 404 } });
  await depot.reboot("bay-01", WHY);
  expect(await depot.reboot("bay-01", WHY, "ben")).toMatchObject({
    problem: { status: 409, detail: "a reboot is under way: the reboot of bay-01 by anna is sent" },
  });
  expect(depot.floor.reboots).toHaveLength(1);
});

test("a reboot that no broker took, or that is not on record, is told at once", async () => {
  const depot = await charging();
  depot.floor.publishing("bay-01", "fails");
  expect(await depot.reboot("bay-01", WHY)).toMatchObject({ problem: { status: 409, detail: "refused" } });
  expect(rows(depot).at(-1)).toBe("the reboot of bay-01 by anna was not sent: refused");
  expect(shown(depot)).toMatchObject({ reboot: { progress: "failed" } });
  depot.floor.publishing("bay-01", "works");
  depot.disk.full = true;
  expect(await depot.reboot("bay-01", WHY)).toMatchObject({ problem: { status: 503 } });
  depot.disk.full = false;
  expect(depot.floor.reboots).toEqual([]);
  await depot.passes(5000);
  expect(await depot.reboot("bay-01", WHY)).toMatchObject({ ok: true });
});

test("the answer of a charger counts: accepted, or refused with its reason", async () => {
  const depot = await charging();
  const answer = async (accepted: boolean, reason: string | null = null, id?: string) =>
    depot.hears({
      kind: "ack",
      charger: BAY,
      id: id ?? depot.floor.reboots.at(-1)?.[1] ?? "",
      accepted,
      value: null,
      reason,
    });
  await depot.reboot("bay-01", WHY);
  await answer(false, null, "reboot-0-9");
  expect(shown(depot)).toMatchObject({ reboot: { progress: "sent" } });
  await answer(true);
  expect(shown(depot)).toMatchObject({
    reboot: { progress: "accepted", sentence: "bay-01 accepted the reboot by anna" },
  });
  // What comes late changes nothing.
  await answer(false, "Rejected");
  await depot.online("bay-01", false);
  await depot.online("bay-01", true);
  expect(shown(depot)).toMatchObject({ reboot: { progress: "back" } });
  for (const reason of ["Reset is Rejected", null]) {
    await depot.reboot("bay-01", WHY);
    await answer(false, reason);
    expect(shown(depot)).toMatchObject({
      reboot: {
        progress: "refused",
        sentence: `bay-01 refused the reboot by anna: ${reason ?? "it gave no reason"}`,
      },
    });
  }
});

test("a charger that stays away is missed after five minutes, and its late return is told as well", async () => {
  const depot = await charging();
  await depot.reboot("bay-01", WHY);
  await depot.online("bay-01", false);
  await depot.online("bay-01", false);
  await depot.passes(299_000);
  expect(shown(depot)).toMatchObject({ reboot: { progress: "away" } });
  await depot.passes(2000);
  expect(shown(depot)).toMatchObject({
    reboot: {
      progress: "missing",
      sentence: "bay-01 was not heard again within 300 s after the reboot by anna",
    },
  });
  await depot.passes(100_000);
  await depot.online("bay-01", true);
  expect(shown(depot)).toMatchObject({ reboot: { progress: "back" } });
  expect(rows(depot).slice(1)).toEqual([
    expect.stringContaining("not heard again within 300 s"),
    expect.stringMatching(/is back 40\d s after/),
  ]);
});

test("a charger that was never away is told as one that may not have restarted", async () => {
  const depot = await charging();
  await depot.reboot("bay-01", WHY);
  await depot.reboot("bay-02", WHY);
  for (let minute = 0; minute < 5; minute += 1) {
    await depot.passes(58_000);
    await depot.telemetry("bay-01", { powerW: 5520 });
  }
  await depot.passes(11_000);
  expect(shown(depot)).toMatchObject({
    reboot: {
      progress: "unnoticed",
      sentence: expect.stringContaining("too quickly to be noticed, or not at all"),
    },
  });
  // This one never sent anything.
  expect(shown(depot, "bay-02")).toMatchObject({ reboot: { progress: "missing" } });
});

test("a charger that falls silent is back with its first message", async () => {
  const depot = await charging({ silentAfter: "30s" });
  depot.floor.answers = "silent";
  await depot.reboot("bay-01", WHY);
  await depot.passes(60_000);
  await depot.telemetry("bay-01", { powerW: 0 });
  expect(shown(depot)).toMatchObject({
    reboot: { progress: "back" },
    // It was silent before 08:10 as well.
    restarts: { counted: "returns", count: 2 },
  });
});

test("a charger that reports its own starts: these are counted, and no lost connection", async () => {
  const depot = await charging();
  await depot.online("bay-01", false);
  await depot.online("bay-01", true);
  expect(shown(depot)).toMatchObject({ restarts: { counted: "returns", count: 1 } });
  const started: StartMark = { kind: "count", count: 41 };
  await depot.telemetry("bay-01", { firmware: "1.4.2", started });
  expect(shown(depot)).toMatchObject({
    firmware: "1.4.2",
    restarts: { counted: "starts", count: 0, lastAt: null },
  });
  await depot.online("bay-01", false);
  await depot.online("bay-01", true);
  await depot.reboot("bay-01", WHY);
  await depot.telemetry("bay-01", { started: { kind: "count", count: 42 } });
  await depot.telemetry("bay-01", { powerW: 5520 });
  expect(shown(depot)).toMatchObject({
    firmware: "1.4.2",
    reboot: { progress: "back" },
    restarts: { counted: "starts", count: 1, lastAt: expect.any(String) },
  });
});

test("a start that is reported while the charger counts as offline does not end the reboot", async () => {
  const depot = await charging();
  await depot.telemetry("bay-01", { started: { kind: "count", count: 1 } });
  await depot.reboot("bay-01", WHY);
  await depot.online("bay-01", false);
  await depot.telemetry("bay-01", { started: { kind: "count", count: 2 } });
  expect(shown(depot)).toMatchObject({ reboot: { progress: "away" } });
  await depot.online("bay-01", true);
  expect(shown(depot)).toMatchObject({ reboot: { progress: "back" }, restarts: { count: 1 } });
});

test("the messages of a charger that the configuration lacks count for nothing", async () => {
  const depot = await charging();
  await depot.hears({ kind: "online", charger: chargerId("bay-9"), online: true, snapshot: false });
  await depot.hears({
    kind: "ack",
    charger: chargerId("bay-02"),
    id: "reboot-1",
    accepted: true,
    value: null,
    reason: null,
  });
  expect(shown(depot, "bay-02")).toMatchObject({ reboot: null });
});

test("a clock that is set back prolongs no reboot", async () => {
  const depot = await charging();
  await depot.reboot("bay-01", WHY);
  await depot.online("bay-01", false);
  const at = virtualNow();
  vi.setSystemTime(at - 3_600_000);
  await depot.passes(310_000);
  expect(virtualNow()).toBeLessThan(at);
  expect(shown(depot)).toMatchObject({ reboot: { progress: "missing" } });
});

test("a reboot that waits for its commit counts as one under way", () => {
  const times = { at: instant(0), changedAt: instant(0) };
  const asked = { id: "reboot-1-1", charger: BAY, by: "anna", ...WHY, ...times, because: null } as const;
  expect(rebootSentence({ ...asked, progress: "asked" })).toBe("the reboot of bay-01 by anna is sent");
});

const time = (at: number): StartMark => ({ kind: "time", at: instant(at) });
const count = (number: number): StartMark => ({ kind: "count", count: number });

test.each<readonly [StartMark | undefined, StartMark | undefined, boolean]>([
  [undefined, count(1), false],
  [count(1), undefined, false],
  [count(1), count(1), false],
  [count(1), count(2), true],
  // A counter that was reset.
  [count(41), count(0), true],
  [time(0), time(3000), false],
  [time(0), time(3001), true],
  [time(20_000), time(0), false],
  [time(0), count(1), false],
  [count(1), time(20_000), false],
])("from %j to %j: a start: %s", (before, next, isStart) => {
  expect(hasStarted(before, next)).toBe(isStart);
});
