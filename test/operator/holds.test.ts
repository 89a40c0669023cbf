import { expect, test } from "vitest";

import { iso, millis } from "../../src/domain/units.ts";
import { holdBody } from "../../src/operator/holdRequest.ts";
import { OperatorHolds } from "../../src/operator/holds.ts";
import { aDepot } from "../support/aDepot.ts";
import { at } from "../support/anEvent.ts";
import { aPicture } from "../support/aPicture.ts";

const request = {
  scope: { charger: "bay-01" },
  kind: "level",
  level: { currentA: 8 },
  until: { at: "2026-11-21T02:00:00Z" },
  reason: "leaves early",
};
const value = (answer: unknown) => (answer as { readonly value: Record<string, never> }).value;
const aSite = () => aDepot().withVehicle("v1", "bay-01", { name: "Bus 1" }).withCharger("bay-02").running();

test.each([
  ["a text", ""],
  [null, ""],
  [[], ""],
  [{ ...request, scope: {} }, "scope"],
  [{ ...request, scope: { charger: "bay-01", site: true } }, "scope"],
  [{ ...request, scope: { site: false } }, "scope"],
  [{ ...request, kind: "freeze" }, "kind"],
  [{ ...request, level: undefined }, "level"],
  [{ ...request, level: { currentA: 0 } }, "level"],
  [{ ...request, level: { currentA: "8" } }, "level"],
  [{ ...request, kind: "exempt" }, "level"],
  [{ ...request, until: { at: "05:40" } }, "until"],
  [{ ...request, until: undefined }, "until"],
  [{ ...request, reason: "  " }, "reason"],
  [{ ...request, who: "anna" }, "who"],
])("the body %j is refused with the path %s, and nothing is opened", (body, path) => {
  expect(holdBody(body)).toMatchObject({
    ok: false,
    problem: { status: 400, errors: [{ path, expected: expect.any(String) }] },
  });
});

test("an exemption may say that it has no level, as the list of holds does", () => {
  expect(holdBody({ ...request, kind: "exempt", level: null })).toHaveProperty("body");
  expect(holdBody({ ...request, level: null })).toMatchObject({ problem: { errors: [{ path: "level" }] } });
});

test.each([
  [{ scope: { charger: "bay-1" } }, "scope.charger", "one of bay-01, bay-02"],
  [{ scope: { vehicle: "v2" } }, "scope.vehicle", "one of v1"],
  [{ until: { at: "2026-11-20T23:00:00Z" } }, "until.at", "later than"],
  [{ until: { at: "2026-11-23T00:00:00Z" } }, "until.at", "at most 24 h ahead"],
  [{ until: { events: true } }, "until.events", "no event is in force for bay-01"],
  [{ scope: { site: true }, until: { unplugged: true } }, "until.unplugged", "for the site"],
  [{ until: { energyWh: 5000 } }, "until.energyWh", "has reported no energy"],
])("%j cannot be held: the path is %s", async (change, path, expected) => {
  const depot = await aSite();
  expect(await depot.hold({ ...request, ...change })).toMatchObject({
    ok: false,
    problem: { status: 400, errors: [{ path, expected: expect.stringContaining(expected) }] },
  });
  expect(depot.holds()).toEqual({ ok: true, value: [] });
});

test("an exemption until events names the events that it sets aside", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ id: "EV-1", start: "00:00", minutes: 60, amperes: 10 })
    .running();
  const exempt = { kind: "exempt", until: { events: true }, reason: "leaves early" };
  expect(await depot.hold({ scope: { charger: "bay-01" }, ...exempt })).toMatchObject({
    ok: true,
    value: { effect: [{ charger: "bay-01", level: { release: true }, overrules: ["EV-1"] }] },
  });
});

test("a vehicle at no charger can be held by a time, not until it is unplugged", async () => {
  const depot = await aDepot().withCharger("bay-01").withVehicle("v1", null).running();
  const scope = { vehicle: "v1" };
  expect(await depot.hold({ ...request, scope, until: { unplugged: true } })).toMatchObject({
    problem: { errors: [{ path: "until.unplugged", expected: "another end: v1 is at no charger" }] },
  });
  expect(await depot.hold({ ...request, scope })).toMatchObject({ ok: true, value: { effect: [] } });
});

test("a repeated key gets the first answer, also after a restart, and another request with it is refused", async () => {
  const depot = await aSite();
  const [first, second] = await Promise.all([
    depot.hold(request, "anna", "k1"),
    depot.hold(request, "anna", "k1"),
  ]);
  expect(second).toEqual(first);
  const conflict = { ok: false, problem: { status: 409, errors: [{ path: "Idempotency-Key" }] } };
  expect(await depot.hold({ ...request, reason: "other" }, "anna", "k1")).toMatchObject(conflict);
  expect(await depot.hold(request, "ben", "k1")).toMatchObject(conflict);
  await depot.restart();
  expect(await depot.hold(request, "anna", "k1")).toMatchObject({ value: { id: value(first)["id"] } });
  expect(await depot.hold({ ...request, reason: "other" }, "anna", "k1")).toMatchObject(conflict);
  expect(value(depot.holds())).toHaveLength(1);
  const refused = await depot.hold({ ...request, scope: { charger: "x" } }, "anna", "k2");
  expect([refused.ok, (await depot.hold(request, "anna", "k2")).ok]).toEqual([false, true]);
});

test("a hold that could not be stored is no answer to a repeated key while it waits to be taken back", async () => {
  const state = aPicture();
  const now = at("05:00");
  let isAway = true;
  const holds = new OperatorHolds({
    state,
    request: async (change) => {
      change(state, now);
      return isAway ? { ok: false, reason: "the database is away", dropped: [], stored: null } : { ok: true };
    },
    now: () => now,
    isReady: () => true,
    monotonic: () => millis(0),
    departureUnder: () => null,
  });
  const body = { ...request, scope: { site: true }, until: { at: iso(at("06:00")) } };
  const open = () => holds.open(body, "anna", "k1");
  const refused = { ok: false, problem: { status: 503, detail: "the database is away" } };
  expect([await open(), await open()]).toMatchObject([refused, refused]);
  const end = () => holds.end("hold-of-the-next-leader", { reason: "over" }, "anna");
  expect(await end()).toMatchObject(refused);
  isAway = false;
  const opened = await open();
  expect(opened).toMatchObject({ ok: true });
  expect(await end()).toMatchObject({ ok: false, problem: { status: 404 } });
  isAway = true;
  const { id } = value(opened);
  const endIt = () => holds.end(id ?? "", { reason: "over" }, "anna");
  expect([await endIt(), await endIt()]).toMatchObject([refused, refused]);
  isAway = false;
  expect(await endIt()).toMatchObject({ ok: false, problem: { status: 409 } });
});

test("two people who open a hold over one vehicle in the same moment both see the other's", async () => {
  const depot = await aSite();
  const answers = await Promise.all([
    depot.hold(request, "anna"),
    depot.hold({ ...request, scope: { vehicle: "v1" } }, "ben"),
  ]);
  expect(answers).toMatchObject([
    { value: { others: [{ sentence: expect.stringContaining("of ben on v1") }] } },
    { value: { others: [{ sentence: expect.stringContaining("of anna on bay-01") }] } },
  ]);
});

test("the second person sees the hold of the first, and cannot end it twice", async () => {
  const depot = await aSite();
  const { id } = value(await depot.hold(request, "anna"));
  expect(await depot.hold({ ...request, scope: { vehicle: "bus 1" } }, "ben")).toMatchObject({
    value: {
      scope: { vehicle: "v1" },
      others: [{ id, sentence: expect.stringContaining("of anna on bay-01") }],
    },
  });
  expect(await depot.endHold(id ?? "", "back", "ben")).toMatchObject({
    value: { state: "ended", ended: { by: "ben", why: "back" } },
  });
  expect(await depot.endHold(id ?? "", "back", "anna")).toMatchObject({
    problem: { status: 409, detail: expect.stringMatching(/^ended \d\d:\d\d:\d\d by ben: back$/) },
  });
  expect(await depot.endHold("hold-1-1")).toMatchObject({ problem: { status: 404 } });
  expect(await depot.endHold(id ?? "", "")).toMatchObject({ problem: { status: 400 } });
});

test("the list has pages, and only open holds where that is asked", async () => {
  const depot = await aSite();
  const ids: (string | undefined)[] = [];
  for (const charger of ["bay-01", "bay-02", "bay-01"])
    ids.unshift(value(await depot.hold({ ...request, scope: { charger } }))["id"]);
  await depot.endHold(ids[0] ?? "");
  const listed = (query: Record<string, string>) =>
    (value(depot.holds(query)) as never as { id: string }[]).map(({ id }) => id);
  expect([listed({ limit: "2" }), listed({ after: ids[1] ?? "" }), listed({ state: "open" })]).toEqual([
    ids.slice(0, 2),
    ids.slice(2),
    ids.slice(1),
  ]);
  for (const limit of ["0", "0x10", "1e1", "", "-1"])
    expect(depot.holds({ limit })).toMatchObject({ problem: { errors: [{ path: "limit", found: limit }] } });
  expect(depot.holds({ after: "hold-9-9" })).toMatchObject({
    problem: { errors: [{ path: "after", found: "hold-9-9" }] },
  });
  expect(depot.holds({ state: "old" })).toMatchObject({ problem: { errors: [{ path: "state" }] } });
});

test("why a charger has its level names the hold, and what it overrules", async () => {
  const depot = await aSite();
  await depot.deliver({ start: "00:00", minutes: 240, amperes: 16 });
  await depot.hold({ ...request, scope: { site: true }, kind: "exempt", level: undefined });
  const { id } = value(await depot.hold(request));
  expect(value(await depot.explain({ charger: "bay-01" }))).toMatchObject({
    sentence: expect.stringMatching(
      /^bay-01 \(Bus 1\) to 8 A until 02:00:00: hold \S+ of anna, until 02:00:00: leaves early; overrules EV-1$/,
    ),
    claims: [
      { kind: "hold", source: id, level: { currentA: 8 }, status: "wins", because: "by anna: leaves early" },
      { kind: "event", source: "EV-1", status: "overruled", because: "priority 1; a hold beats every event" },
      { kind: "hold", status: "overruled", because: expect.stringContaining("on the site: exempt") },
      { kind: "default" },
    ],
    without: { level: { currentA: 8 } },
  });
  expect(value(await depot.explain({ charger: "bay-01", at: "2026-11-21T03:00Z" }))).toMatchObject({
    claims: [{ kind: "event", source: "EV-1", status: "wins" }, { kind: "default" }],
  });
});
