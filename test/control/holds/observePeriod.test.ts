import { expect, test } from "vitest";

import { advanceMode, beginObserving } from "../../../src/control/holds/observePeriod.ts";
import { SiteMode } from "../../../src/control/decide/gate.ts";
import { instant, iso } from "../../../src/domain/units.ts";
import { aDepot } from "../../support/aDepot.ts";
import { anHour } from "../../support/aHold.ts";
import { aPicture } from "../../support/aPicture.ts";

const OBSERVE = { mode: "observe", reason: "work on the panel", until: "2026-11-21T10:00:00Z" } as const;
const DRIVE = { mode: "drive", reason: "work is done" } as const;
const value = (answer: unknown) => (answer as { readonly value: Record<string, unknown> }).value;

/** An event holds v1 from 08:00 to 12:00. */
const limited = (control = {}) =>
  aDepot()
    .withControl(control)
    .withVehicles(2)
    .startingAt("08:00")
    .withEvent({ start: "08:00", minutes: 240, amperes: 8, vehicles: ["v1"] });

test("observe releases what is limited once, sends nothing more, ends by itself, and then what holds is sent again", async () => {
  const depot = await limited().running();
  await depot.until("09:00");
  depot.forget();
  const answer = value(await depot.mode(OBSERVE));
  expect(answer).toMatchObject({
    mode: "observe",
    configured: "drive",
    observing: { by: "anna", reason: "work on the panel", until: "2026-11-21T10:00:00.000Z" },
    sentence: "mode observe until 10:00:00, by anna: work on the panel",
    replaced: null,
    limited: ["bay-01"],
    onObserve: "release",
  });
  expect([depot.commands(), depot.keepalives]).toEqual([["bay-01 release"], ["paused"]]);
  await depot.deliver({ id: "EV-2", start: "09:10", minutes: 180, amperes: 10, vehicles: ["v2"] });
  await depot.until("09:59");
  expect(depot.commands()).toEqual(["bay-01 release"]);
  expect(depot.audit("decision").slice(-3)).toEqual([
    expect.stringContaining("setpointd observes from now on"),
    expect.stringMatching(/^observing, not sent: bay-01 .*to 8 A/),
    expect.stringMatching(/^observing, not sent: bay-02 .*to 10 A/),
  ]);
  await depot.until("10:01");
  expect(depot.timedCommands().slice(1).toSorted()).toEqual([
    "10:00:00.000 bay-01 8 A",
    "10:00:00.000 bay-02 10 A",
  ]);
  expect([depot.currentMode(), depot.keepalives]).toEqual([
    { mode: "drive", configured: "drive", onObserve: "release", observing: null, sentence: "mode drive" },
    ["paused", "resumed"],
  ]);
  expect(depot.audit("operator")).toEqual([
    "mode observe until 10:00:00, by anna: work on the panel",
    "mode drive: observe, which began 09:00:00 by anna, ended: its time has come",
  ]);
});

test("with onObserve keep the level stays at the charger, and drive sends it once more", async () => {
  const depot = await limited({ onObserve: "keep" }).running();
  await depot.until("09:00");
  depot.forget();
  await depot.mode(OBSERVE);
  await depot.until("09:30");
  expect(depot.messages()).toEqual([]);
  expect(value(await depot.mode(DRIVE, "ben"))).toMatchObject({
    mode: "drive",
    replaced: { by: "anna" },
    limited: ["bay-01"],
  });
  expect(depot.messages()).toEqual(["09:30:00.001 bay-01 8 A"]);
});

test("an event that starts under observe with onObserve keep ends the same level when drive returns", async () => {
  const depot = await limited({ onObserve: "keep" }).running();
  await depot.until("09:00");
  await depot.mode(OBSERVE);
  await depot.withdraw("EV-1");
  await depot.until("09:30");
  depot.forget();
  await depot.mode(DRIVE);
  expect(depot.commands()).toEqual(["bay-01 release"]);
});

test("observe survives a restart with its end; one that ended meanwhile does not come back", async () => {
  const depot = await limited().running();
  await depot.until("09:00");
  await depot.mode(OBSERVE);
  depot.forget();
  await depot.restart();
  expect(depot.currentMode()).toMatchObject({ mode: "observe", observing: { by: "anna" } });
  await depot.until("09:50");
  expect(depot.commands()).toEqual([]);
  await depot.restart({ after: 20 * 60_000 });
  expect(depot.currentMode()).toMatchObject({ mode: "drive", observing: null });
  expect(depot.commands()).toEqual(["bay-01 8 A"]);
  expect(depot.audit("operator").at(-1)).toBe(
    "mode drive: observe, which began 09:00:00 by anna, ended: its time has come",
  );
  await depot.restart();
  expect(depot.audit("operator").filter((words) => words.includes("ended"))).toHaveLength(1);
});

test("a restart under observe names what it releases, or what stays and how to free it", async () => {
  const depot = await limited({ onObserve: "keep" })
    .equippedWith({ whenSilent: { kind: "holds" }, refresh: null })
    .running();
  await depot.until("09:00");
  await depot.mode(OBSERVE);
  await depot.restart();
  expect(depot.warnings.at(-1)).toMatch(
    /^bay-01 stays at 8 A .*end the period with setpointd mode drive --reason TEXT$/,
  );
});

test("a release that did not arrive before the restart is named with the person who asked for observe", async () => {
  const depot = await limited().running();
  await depot.until("09:00");
  depot.floor.publishing("bay-01", "fails");
  await depot.mode(OBSERVE);
  await depot.restart();
  expect(depot.warnings.at(-1)).toMatch(/released now, once, as mode observe until 10:00:00, by anna/);
});

test("a command that waits for its broker when observe begins is not sent any more", async () => {
  const depot = await limited({ onObserve: "keep" }).running();
  await depot.until("09:00");
  depot.forget();
  depot.brokerGoes();
  await depot.deliver({ id: "EV-2", start: "09:00", minutes: 60, amperes: 10, vehicles: ["v2"] });
  await depot.passes(60_000);
  await depot.mode(OBSERVE);
  depot.brokerReturns();
  await depot.until("09:30");
  expect(depot.messages()).toEqual([]);
});

test("a second person's observe replaces the first, and each answer names the other", async () => {
  const depot = await limited().running();
  await depot.until("09:00");
  await depot.mode(OBSERVE);
  const second = value(await depot.mode({ ...OBSERVE, until: "2026-11-21T09:30:00Z" }, "ben"));
  expect(second).toMatchObject({
    observing: { by: "ben", until: "2026-11-21T09:30:00.000Z" },
    replaced: { by: "anna", until: "2026-11-21T10:00:00.000Z" },
  });
  await depot.until("09:31");
  expect(depot.currentMode()).toMatchObject({ mode: "drive" });
  expect(value(await depot.mode(DRIVE))).toMatchObject({ mode: "drive", replaced: null });
});

test("each mistake is named: mode, reason, an end that is missing, past, too late or not wanted, and a stray member", async () => {
  const depot = await limited().running();
  const problemOf = async (body: unknown) => {
    const answer = await depot.mode(body);
    return answer.ok
      ? "accepted"
      : `${answer.problem.status} ${answer.problem.errors.map(({ path }) => path).join()}`;
  };
  expect([
    await problemOf(null),
    await problemOf({ mode: "off", reason: "", until: 5, extra: true }),
    await problemOf({ ...DRIVE, constructor: 1, toString: 2 }),
    await problemOf({ mode: "observe", reason: "why" }),
    await problemOf({ ...OBSERVE, until: "2026-11-21T07:59:00Z" }),
    await problemOf({ ...OBSERVE, until: "2026-11-22T09:00:00" }),
    await problemOf({ ...DRIVE, until: OBSERVE.until }),
  ]).toEqual([
    "400 ",
    "400 extra,mode,reason,until",
    "400 constructor,toString",
    "400 until",
    "400 until",
    "400 until",
    "400 until",
  ]);
  expect(depot.currentMode()).toMatchObject({ mode: "drive" });
  expect(await problemOf({ ...OBSERVE, until: "2026-11-21T09:00:00" })).toBe("accepted");
});

test("the end of a mode may be spelled as that of a hold, and null is no end", async () => {
  const depot = await limited().running();
  const answer = value(await depot.mode({ ...OBSERVE, until: { at: OBSERVE.until } }));
  expect(answer).toMatchObject({ observing: { until: "2026-11-21T10:00:00.000Z" } });
  expect(value(await depot.mode({ ...DRIVE, until: null }))).toMatchObject({ mode: "drive" });
  expect(await depot.mode({ ...OBSERVE, until: { at: "10:00" } })).toMatchObject({
    problem: { status: 400, errors: [{ path: "until" }] },
  });
});

test("a site that is configured to observe may not be driven by request", async () => {
  const depot = await limited({ mode: "observe" }).running();
  for (const body of [DRIVE, OBSERVE])
    expect(await depot.mode(body)).toMatchObject({
      problem: {
        status: 409,
        detail: expect.stringContaining("control.mode in the configuration is observe"),
      },
    });
  expect(depot.currentMode()).toMatchObject({ sentence: "mode observe, by the configuration" });
});

test("a mode that cannot be stored changes nothing; an end that cannot is tried until it is stored", async () => {
  const depot = await limited().running();
  await depot.until("09:00");
  depot.disk.full = true;
  depot.forget();
  expect(await depot.mode(OBSERVE)).toMatchObject({ problem: { status: 503 } });
  depot.disk.full = false;
  expect([depot.currentMode(), depot.commands()]).toMatchObject([{ mode: "drive" }, []]);
  await depot.mode(OBSERVE);
  depot.forget();
  await depot.until("09:59");
  depot.disk.full = true;
  await depot.until("10:01");
  const looks = depot.looks;
  await depot.passes(60_000);
  expect(depot.looks - looks).toBeLessThan(100);
  expect(depot.commands()).toEqual([]);
  depot.disk.full = false;
  await depot.passes(60_000);
  expect(depot.commands()).toEqual(["bay-01 8 A"]);
  expect(depot.currentMode()).toMatchObject({ mode: "drive" });
});

test("a period of which the disk says that it is not stored, and it is, releases what is limited all the same", async () => {
  const depot = await limited().running();
  await depot.until("09:00");
  depot.disk.doubtful = true;
  depot.forget();
  expect(await depot.mode(OBSERVE)).toMatchObject({ problem: { status: 503 } });
  await depot.until("09:01");
  expect([depot.currentMode(), depot.commands()]).toMatchObject([{ mode: "observe" }, ["bay-01 release"]]);
  depot.disk.doubtful = false;
  await depot.until("09:30");
  const releases = depot
    .audit("decision")
    .filter((words) => words.includes("setpointd observes from now on"));
  expect(releases).toHaveLength(1);
  await depot.restart();
  expect([depot.currentMode(), depot.commands()]).toMatchObject([{ mode: "observe" }, ["bay-01 release"]]);
});

test("explain and the answer to a hold name the period that keeps commands from the charger", async () => {
  const depot = await limited().running();
  await depot.mode(OBSERVE);
  const explained = value(await depot.explain({ charger: "bay-01" }));
  expect(explained["claims"]).toContainEqual(
    expect.objectContaining({
      kind: "limit",
      source: "observing",
      until: "2026-11-21T10:00:00.000Z",
      because: "mode observe until 10:00:00, by anna: work on the panel; decided and recorded, not sent",
    }),
  );
  expect(await depot.free("bay-01")).toEqual({ ok: true });
});

test("a clock that is set back ends a period a day after its begin in real time, and not before its time", () => {
  const noon = instant(Date.parse("2026-11-21T12:00:00Z"));
  const later = (hours: number) => instant(noon + hours * anHour);
  const depot = aPicture();
  const period = { since: noon, until: later(20), cap: later(24), by: "anna", reason: "work on the panel" };
  beginObserving(depot, period, noon);
  expect(advanceMode(depot, 0, later(1))).toBeNull();
  // At 13:00 it becomes 03:00: what is left of the day ends at 02:00.
  const capped = { ...period, cap: later(14) };
  expect(advanceMode(depot, -10 * anHour, later(-9))).toEqual({
    changes: [{ kind: "observePeriod", period: capped }],
    reevaluations: [],
  });
  expect(advanceMode(depot, 0, later(13))).toBeNull();
  expect(advanceMode(depot, 0, later(14))?.changes[1]).toMatchObject({
    entry: {
      words: expect.stringMatching(
        /^mode drive: observe, which began .* by anna, ended: it has lasted for a day$/,
      ),
    },
  });
  expect(depot.mode.current).toBe("drive");
});

test("a clock that was ahead leaves no period longer than a day, and its end is due after a failed commit only later", () => {
  const noon = instant(Date.parse("2026-11-21T12:00:00Z"));
  const later = (hours: number) => instant(noon + hours * anHour);
  const mode = new SiteMode("drive");
  const period = { since: later(48), until: later(60), cap: later(72), by: "anna", reason: "tried" };
  mode.restore(period, noon);
  expect([mode.current, iso(mode.next() ?? noon)]).toEqual(["observe", iso(later(24))]);
  mode.rollBack({ ...period, until: later(-1) }, noon);
  expect([mode.current, mode.period, mode.due(noon)]).toEqual(["drive", null, null]);
  expect(mode.due(later(1))).toMatchObject({ by: "anna" });
  mode.restore(null, noon);
  expect([mode.current, mode.next()]).toEqual(["drive", undefined]);
});
