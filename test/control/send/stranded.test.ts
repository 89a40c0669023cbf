import { expect, test } from "vitest";

import { aDepot } from "../../support/aDepot.ts";
import { chargerId } from "../../../src/domain/units.ts";
import type { TestDepot } from "../../support/testDepot.ts";

const acting = (control = {}) =>
  aDepot()
    .withControl(control)
    .withVehicles(2)
    .equippedWith({ whenSilent: { kind: "holds" }, refresh: null })
    .withEvent({ start: "08:00", minutes: 60, amperes: 8, vehicles: ["v1"] });

test("a start in observe mode releases chargers that an earlier run left limited, once, names and records them", async () => {
  const depot = await acting().running();
  await depot.until("08:10");
  depot.forget();
  await depot.restart({ mode: "observe" });
  expect(depot.commands()).toEqual(["bay-01 release"]);
  expect(depot.warnings.at(-1)).toBe(
    "bay-01 was left at 8 A by an earlier run: it is released now, once, as control.mode is observe",
  );
  expect(depot.audit("decision")).toContain("bay-01 (v1) released: setpointd observes from now on");
  await depot.until("09:30");
  depot.forget();
  depot.warnings.length = 0;
  await depot.restart();
  expect([depot.messages(), depot.warnings]).toEqual([[], []]);
});

test("a release that did not arrive is tried until it does, also by the next run in observe mode", async () => {
  const depot = await acting().running();
  await depot.until("08:10");
  depot.floor.publishing("bay-01", "fails");
  depot.forget();
  await depot.restart({ mode: "observe" });
  await depot.until("08:20");
  await depot.restart();
  depot.floor.publishing("bay-01", "works");
  await depot.until("08:30");
  expect(depot.commands()).toEqual(["bay-01 release"]);
  expect(depot.messages()).toHaveLength(1);
});

test("with onObserve keep, a start in observe mode names the chargers that stay limited and what frees them", async () => {
  const depot = await acting({ onObserve: "keep" }).running();
  await depot.until("08:10");
  depot.forget();
  await depot.restart({ mode: "observe" });
  await depot.until("09:30");
  expect(depot.messages()).toEqual([]);
  expect(depot.warnings.at(-1)).toBe(
    "bay-01 stays at 8 A until it is freed: it holds its last level without end. To free it, start once with control.onObserve: release or control.mode: drive",
  );
});

test("a charger whose lease is over is not named as limited", async () => {
  const depot = await aDepot()
    .withControl({ onObserve: "keep" })
    .withVehicles(1)
    .withEvent({ start: "08:00", minutes: 60, amperes: 8 })
    .running();
  await depot.until("08:10");
  depot.warnings.length = 0;
  await depot.restart({ mode: "observe", after: 600_000 });
  expect(depot.warnings).toEqual([
    "bay-01 stays at 8 A until 08:12:00, then it goes back to its own limits by itself",
  ]);
});

const observing = { mode: "observe", until: "2026-11-21T12:00:00Z", reason: "works" };

test.each([
  ["a start in observe mode", (depot: TestDepot) => depot.restart({ mode: "observe" })],
  ["the begin of an observe period", (depot: TestDepot) => depot.mode(observing)],
])(
  "a release at %s that its charger refuses is decided again once, with a higher number",
  async (_, observes) => {
    const depot = await aDepot()
      .withVehicle("v1", "bay-01")
      .withEvent({ start: "08:00", minutes: 60, amperes: 8 })
      .running();
    await depot.until("08:10");
    depot.floor.publishing("bay-01", "fails");
    await observes(depot);
    await depot.until("08:20");
    depot.floor.publishing("bay-01", "works");
    depot.floor.answers = "refuses";
    depot.floor.published.length = 0;
    // The release of the last run. The charger has accepted a higher number meanwhile.
    await depot.restart();
    await depot.until("09:30");
    const numbers = [...new Set(depot.floor.published.map(({ id }) => id))];
    expect(depot.floor.published.map(({ words }) => words)).toEqual(["bay-01 release", "bay-01 release"]);
    expect(numbers).toHaveLength(2);
    expect(depot.audit("decision").filter((words) => words.includes("setpointd observes"))).toHaveLength(2);
  },
);

test("a release that its charger refuses late, once observing has decided on, is recorded and decided again", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", minutes: 60, amperes: 8 })
    .running();
  await depot.until("08:10");
  depot.floor.publishing("bay-01", "fails");
  await depot.mode(observing);
  await depot.until("08:20");
  depot.floor.publishing("bay-01", "works");
  depot.floor.answers = "silent";
  await depot.restart();
  await depot.until("08:25");
  await depot.deliver({ id: "EV-2", start: "08:25", minutes: 10, amperes: 6, priority: 0 });
  const [release] = depot.floor.published.filter(({ words }) => words === "bay-01 release");
  expect(depot.audit("decision").at(-1)).toMatch(/^observing, not sent: .*6 A/);
  depot.forget();
  await depot.hears({
    kind: "ack",
    charger: chargerId("bay-01"),
    id: release?.id ?? "",
    accepted: false,
    value: null,
    reason: "a higher number was accepted",
  });
  await depot.passes(1000);
  expect(depot.audit("outcome")).toContain(
    `bay-01 ${release?.id} refused by the charger: a higher number was accepted`,
  );
  expect(depot.commands()).toEqual(["bay-01 release"]);
});

test("a level that its charger refuses after observing began is refused in the record, also after a restart", async () => {
  const depot = await acting({ onObserve: "keep" }).running();
  depot.floor.answers = "silent";
  await depot.until("08:10");
  const [level] = depot.fresh();
  await depot.mode(observing);
  await depot.deliver({ id: "EV-2", start: "08:15", minutes: 10, amperes: 6, priority: 0, vehicles: ["v1"] });
  await depot.until("08:16");
  const refusal = { accepted: false, value: null, reason: "busy" } as const;
  await depot.hears({ kind: "ack", charger: chargerId("bay-01"), id: level?.id ?? "", ...refusal });
  expect(depot.audit("outcome").at(-1)).toBe(`bay-01 ${level?.id} refused by the charger: busy`);
  await depot.restart();
  const [stored] = depot.storedCommands();
  expect([stored?.progress, stored?.standing?.progress]).toEqual(["observed", "refused"]);
});
