import { expect, test } from "vitest";

import type { Charger } from "../../../src/domain/charger.ts";
import { chargerId, instant, minutes } from "../../../src/domain/units.ts";
import { aDepot } from "../../support/aDepot.ts";
import { virtualNow } from "../../support/virtualTime.ts";

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

test("a charger has the ramp time to reach the setpoint, and is then judged as following", async () => {
  const depot = await charging();
  await depot.telemetry("bay-01", { limitA: 16, currentsA: [31, 31, 31] });
  await depot.until("08:00:31");
  await depot.telemetry("bay-01", { limitA: 16, currentsA: [15.8, 15.8, 15.8] });
  await depot.passes(1000);
  expect(outcomes(depot).at(-1)).toBe("followed: reports a limit of 16 A and draws 15.8 A");
  expect(outcomes(depot).filter((words) => words.startsWith("not followed"))).toEqual([]);
});

test("a charger that draws little before its ramp time has passed does not count as following yet", async () => {
  const depot = await charging();
  await depot.telemetry("bay-01", { limitA: 16, currentsA: [0, 0, 0] });
  expect(judgements(depot)).toEqual([]);
  await depot.until("08:00:31");
  await depot.telemetry("bay-01", { limitA: 16, currentsA: [0, 0, 0] });
  expect(judgements(depot)).toHaveLength(1);
});

/** bay-01 follows 16 A. The gateway is away from 08:00:31 to 08:10, and bay-01 draws more right after its return. */
const drawingMoreAfterAbsence = async (whenSilent: Charger["whenSilent"]) => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .equippedWith({ whenSilent })
    .withEvent({ start: "08:00", minutes: 60, amperes: 16 })
    .running();
  await depot.until("08:00:31");
  await depot.telemetry("bay-01", { limitA: 16, currentsA: [15.8, 15.8, 15.8] });
  await depot.stop();
  await depot.until("08:10");
  depot.start();
  await depot.until("08:10:02");
  await depot.telemetry("bay-01", { limitA: 16, currentsA: [28, 28, 28] });
  return depot;
};

test.each<Charger["whenSilent"]>([
  { kind: "lease" },
  { kind: "timeout", after: minutes(2), effect: "own limits" },
])(
  "a charger that left its setpoint while the gateway was away has the ramp time again before it counts as not following: %o",
  async (whenSilent) => {
    const depot = await drawingMoreAfterAbsence(whenSilent);
    expect(judgements(depot)).toHaveLength(1);
    await depot.until("08:10:31");
    await depot.telemetry("bay-01", { limitA: 32, currentsA: [32, 32, 32] });
    expect(judgements(depot).at(-1)).toContain("not followed: setpoint 16 A, reports a limit of 32 A");
  },
);

test.each<Charger["whenSilent"]>([
  { kind: "holds" },
  { kind: "timeout", after: minutes(15), effect: "pause" },
])(
  "a charger that stays at its setpoint while the gateway is away counts as not following at once: %o",
  async (whenSilent) => {
    const depot = await drawingMoreAfterAbsence(whenSilent);
    expect(judgements(depot).at(-1)).toContain("not followed: setpoint 16 A");
  },
);

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
    "not followed: setpoint 16 A, reports a limit of 32 A and draws 32 A; sent again (1 of 3)",
    "not followed: setpoint 16 A, reports a limit of 32 A and draws 32 A; sent again (2 of 3)",
    "not followed: setpoint 16 A, reports a limit of 32 A and draws 32 A; sent again (3 of 3)",
    "still not followed after 3 more tries: setpoint 16 A, reports a limit of 32 A and draws 32 A; something else controls it, or it is broken",
  ]);
});

test("a charger whose publishes are refused is not said to be sent its setpoint again", async () => {
  const depot = await charging();
  depot.floor.publishing("bay-01", "fails");
  await depot.until("08:01:30");
  await depot.telemetry("bay-01", { limitA: 32 });
  await depot.until("08:05");
  await depot.telemetry("bay-01", { limitA: 32 });
  await depot.passes(1000);
  expect(judgements(depot)).toEqual([
    "not followed: setpoint 16 A, reports a limit of 32 A; not sent again while its publishes fail",
  ]);
  depot.floor.publishing("bay-01", "works");
  await depot.until("08:08");
  await depot.telemetry("bay-01", { limitA: 32 });
  expect(judgements(depot).at(-1)).toContain("sent again (1 of 3)");
});

test("a charger that drifts after it followed is sent the setpoint again, and its return is on record", async () => {
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
    "not followed: setpoint 16 A, reports a limit of 32 A; sent again (1 of 3)",
    "followed: reports a limit of 16 A",
  ]);
});

test("a charger that followed for a while after its third try is sent the setpoint again when it drifts anew", async () => {
  const depot = await charging();
  for (const minute of ["08:02", "08:05", "08:10"]) {
    await depot.until(minute);
    await depot.telemetry("bay-01", { limitA: 32 });
  }
  for (const minute of ["08:20", "08:25", "08:30", "08:40"]) {
    await depot.until(minute);
    await depot.telemetry("bay-01", { limitA: 16 });
  }
  await depot.until("08:45");
  await depot.telemetry("bay-01", { limitA: 32 });
  expect(judgements(depot).slice(-3)).toEqual([
    "not followed: setpoint 16 A, reports a limit of 32 A; sent again (3 of 3)",
    "followed: reports a limit of 16 A",
    "not followed: setpoint 16 A, reports a limit of 32 A; sent again (1 of 3)",
  ]);
});

/** Something else sets bay-01 to 32 A each 40 s, and lets a re-send of ours win for a moment. */
async function contested(depot: Awaited<ReturnType<typeof charging>>, until: string): Promise<void> {
  while (virtualNow() < Date.parse(`2026-11-21T${until}Z`)) {
    await depot.passes(20_000);
    await depot.telemetry("bay-01", { limitA: 32 });
    await depot.passes(20_000);
    await depot.telemetry("bay-01", { limitA: 16 });
  }
}

test("another controller that overrides us again and again, with short pauses, is an alarm (F92)", async () => {
  const depot = await charging();
  depot.forget();
  await contested(depot, "08:50:00");
  const seen = judgements(depot);
  expect(seen.filter((words) => words.includes("sent again"))).toHaveLength(3);
  expect(seen.at(-1)).toContain("still not followed after 3 more tries");
  expect(seen).toHaveLength(8);
});

test("an alarm is over once its charger has followed for ten ramp times, and then tries count anew (F92)", async () => {
  const depot = await charging();
  await contested(depot, "08:20:00");
  for (let minute = 21; minute <= 30; minute += 1) {
    await depot.until(`08:${minute}`);
    await depot.telemetry("bay-01", { limitA: minute === 23 ? 32 : 16 });
  }
  const followedAgain = judgements(depot).slice(8);
  expect(followedAgain).toEqual(["followed: reports a limit of 16 A"]);
  await depot.until("08:32");
  await depot.telemetry("bay-01", { limitA: 32 });
  expect(judgements(depot).at(-1)).toContain("sent again (1 of 3)");
});

test("re-sends against foreign control count as writes, and wait for room", async () => {
  const depot = await aDepot()
    .withCharger("bay-01", { writesPerHour: 3 })
    .withVehicle("v1", "bay-01")
    .equippedWith({ refresh: null })
    .withEvent({ start: "08:00", minutes: 90, amperes: 16 })
    .running();
  await depot.until("08:00:05");
  await contested(depot, "08:20:00");
  expect(depot.messages()).toHaveLength(3);
  expect(judgements(depot).filter((words) => words.includes("next try"))).toEqual([
    "not followed: setpoint 16 A, reports a limit of 32 A; the next try is at 09:00:00, it allows 3 writes an hour",
  ]);
  await depot.until("09:00:01");
  await depot.telemetry("bay-01", { limitA: 32 });
  await depot.passes(1000);
  expect(depot.messages()).toHaveLength(4);
});

test("a charger that follows at last is recorded at once, and judged again only when that is due", async () => {
  const depot = await charging();
  await depot.until("08:02");
  await depot.telemetry("bay-01", { limitA: 32 });
  await depot.until("08:02:05");
  await depot.telemetry("bay-01", { limitA: 16 });
  await depot.telemetry("bay-01", { limitA: 32 });
  await depot.until("08:02:20");
  await depot.telemetry("bay-01", { limitA: 32 });
  expect(judgements(depot)).toEqual([
    "not followed: setpoint 16 A, reports a limit of 32 A; sent again (1 of 3)",
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

test("a charger without limit or current in its telemetry is not judged", async () => {
  const depot = await charging();
  await depot.until("08:05");
  await depot.telemetry("bay-01", { state: "charging", soc: 40 });
  await depot.passes(1000);
  expect(outcomes(depot).filter((words) => words.includes("followed"))).toEqual([]);
});

/** What bay-01 measured so many ms ago. */
const measured = (depot: Awaited<ReturnType<typeof charging>>, ago: number, limitA: number) =>
  depot.hears({
    kind: "telemetry",
    charger: chargerId("bay-01"),
    telemetry: { at: instant(virtualNow() - ago), limitA },
  });

const judgements = (depot: Awaited<ReturnType<typeof charging>>) =>
  outcomes(depot).filter((words) => words.includes("followed"));

test("telemetry measured before the command does not judge it: an emptied buffer, or a retained message", async () => {
  const depot = await charging();
  await depot.until("08:05");
  for (const ago of [9_500_000, 3_500_000, 1_800_000, 600_000, 400_000]) await measured(depot, ago, 32);
  expect(judgements(depot)).toEqual([]);
  await measured(depot, 0, 16);
  expect(judgements(depot)).toEqual(["followed: reports a limit of 16 A"]);
});

test("late telemetry measured during the ramp time judges nothing", async () => {
  const depot = await charging();
  await depot.until("08:12");
  const since = virtualNow() - Date.parse("2026-11-21T08:00:00Z");
  for (const ago of [since - 2_000, since - 4_000, since - 8_000]) await measured(depot, ago, 32);
  expect(judgements(depot)).toEqual([]);
});

test("a retained message judges nothing, and is no sign of life", async () => {
  const depot = await charging();
  await depot.until("08:05");
  const telemetry = { at: instant(virtualNow() - 5 * 86_400_000), limitA: 32 };
  await depot.hears({ kind: "telemetry", charger: chargerId("bay-01"), telemetry, snapshot: true });
  expect(judgements(depot)).toEqual([]);
  await depot.until("08:20");
  await depot.hears({ kind: "telemetry", charger: chargerId("bay-01"), telemetry, snapshot: true });
  expect(depot.warnings.concat(depot.audit("silence")).join()).not.toContain("sends messages again");
});

test("a charger whose clock is months behind is judged by the receipt of its messages", async () => {
  const depot = await charging();
  await depot.until("08:05");
  await measured(depot, 90 * 86_400_000, 16);
  expect(judgements(depot)).toEqual(["followed: reports a limit of 16 A"]);
});

test.each([
  ["half an hour", 1_800_000],
  ["two days", 2 * 86_400_000],
])(
  "a clock that is %s behind is late alike each time, and its charger is judged all the same",
  async (_, ago) => {
    const depot = await charging();
    await depot.until("08:05");
    await measured(depot, ago, 16);
    expect(judgements(depot)).toEqual([]);
    await depot.passes(10_000);
    await measured(depot, ago + 200, 16);
    expect(judgements(depot)).toEqual(["followed: reports a limit of 16 A"]);
  },
);

test("a charger that returns has the ramp time once more, and is sent its setpoint once", async () => {
  const depot = await charging();
  await depot.until("08:01");
  await depot.telemetry("bay-01", { limitA: 16 });
  await depot.online("bay-01", false);
  await depot.passes(3_000);
  depot.forget();
  await depot.online("bay-01", true);
  await depot.telemetry("bay-01", { limitA: 32 });
  await depot.passes(1_000);
  expect(depot.messages()).toHaveLength(1);
  expect(judgements(depot)).toEqual(["followed: reports a limit of 16 A"]);
  await depot.until("08:02");
  await depot.telemetry("bay-01", { limitA: 32 });
  expect(judgements(depot)).toHaveLength(2);
});

test("a charger that refuses each refresh is recorded once as refused, and once as what it then does", async () => {
  const depot = await charging();
  depot.floor.answers = "refuses";
  for (let minute = 1; minute < 10; minute += 1) {
    await depot.until(`08:0${minute}:45`);
    await depot.telemetry("bay-01", { currentsA: [0, 0, 0] });
  }
  expect(outcomes(depot).filter((words) => !words.startsWith("acknowledged"))).toEqual([
    "accepted by the charger after 25 ms",
    "refused by the charger: busy",
    "followed: draws 0 A",
  ]);
});

test("in observe mode a release that is not followed is not sent again, and the record does not claim it", async () => {
  const depot = await charging();
  await depot.until("09:00:01");
  await depot.mode({ mode: "observe", reason: "work on the panel", until: "2026-11-21T12:00:00Z" });
  depot.forget();
  for (const time of ["09:05", "09:10", "09:20", "09:40"]) {
    await depot.until(time);
    await depot.telemetry("bay-01", { limitA: 16, currentsA: [16, 16, 16] });
  }
  await depot.passes(1000);
  expect(depot.commands()).toEqual([]);
  expect(judgements(depot).slice(-1)).toEqual([
    expect.stringMatching(/^not followed: .*; not sent again while observing$/),
  ]);
});

test("a command from before a restore that its charger ignores without an answer is sent again under a higher number", async () => {
  const depot = await charging();
  depot.floor.answers = "silent";
  await depot.restart();
  await depot.until("08:02");
  const before = depot.floor.published.at(-1);
  for (const time of ["08:03", "08:04", "08:05"]) {
    await depot.telemetry("bay-01", { limitA: 32, currentsA: [32, 32, 32] });
    await depot.until(time);
  }
  const after = depot.floor.published.at(-1);
  expect(after?.words).toBe("bay-01 16 A");
  expect(after?.id).not.toBe(before?.id);
  expect(depot.audit("decision")).toHaveLength(2);
  expect(judgements(depot).slice(-2)).toEqual([
    expect.stringContaining("sent again (1 of 3)"),
    expect.stringContaining("sent again (2 of 3)"),
  ]);
});
