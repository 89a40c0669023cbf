import { expect, test } from "vitest";

import { factOf, type Json, textOf } from "../../src/domain/audit.ts";
import { formatProblem } from "../../src/operator/answer.ts";
import { explainRequest } from "../../src/operator/explanation.ts";
import { aDepot } from "../support/aDepot.ts";

const value = (answer: unknown) => (answer as { readonly value: Record<string, unknown> }).value;

test("the stack of claims has the winner first, the loser with its reason, and the default last", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ id: "EV-1", start: "00:00", minutes: 120, amperes: 10, priority: 1 })
    .withEvent({ id: "EV-2", start: "00:00", minutes: 60, amperes: 16, priority: 2 })
    .running();
  await depot.until("00:00:30");
  const explained = value(await depot.explain({ charger: "bay-01" }));
  expect(explained).toMatchObject({
    charger: "bay-01",
    vehicle: "v1",
    without: { level: { release: true }, most: { currentA: 32 } },
    claims: [
      { kind: "event", source: "EV-1", level: { currentA: 10 }, status: "wins", because: "priority 1" },
      {
        kind: "event",
        source: "EV-2",
        level: { currentA: 16 },
        status: "overruled",
        because: "priority 2; EV-1 has priority 1",
      },
      { kind: "default", level: { release: true }, status: "overruled" },
    ],
  });
  expect(explained["sentence"]).toBe(
    "v1 at bay-01 is limited to 10 A until 02:00:00 because event EV-1 (priority 1) asks for 10 A; started 00:00:00; overrules EV-2. Without any event the charger decides by itself, up to 32 A",
  );
  expect(value(await depot.explain({ vehicle: "V1" }))).toEqual(explained);
});

test("a charger that draws more than its setpoint is named, with its power", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ id: "EV-1", start: "00:00", minutes: 60, amperes: 10 })
    .running();
  const drawing = { powerW: 22_080, currentsA: [32, 32, 32], limitA: 32 };
  for (const at of ["00:00:30", "00:01:00", "00:01:30", "00:02:00"]) {
    await depot.until(at);
    await depot.telemetry("bay-01", { state: "charging", ...drawing });
  }
  const ignored = value(await depot.explain({ charger: "bay-01" }));
  expect(ignored["sentence"]).toBe(
    "v1 at bay-01 should be limited to 10 A until 01:00:00 because event EV-1 (priority 1) asks for 10 A; started 00:00:00; the charger does not follow it, it draws 22.08 kW. Without any event the charger decides by itself, up to 32 A",
  );
  expect(ignored["claims"]).toContainEqual(
    expect.objectContaining({ kind: "limit", source: "notFollowed", status: "limits" }),
  );
});

test("a charger that refuses its setpoint is named, and nothing is claimed of one that is silent", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ id: "EV-1", start: "00:00", minutes: 60, amperes: 10 })
    .running();
  depot.floor.answers = "refuses";
  await depot.deliver({ id: "EV-1", start: "00:00", minutes: 60, amperes: 8 });
  await depot.until("00:00:30");
  const refused = value(await depot.explain({ charger: "bay-01" }));
  expect(refused["sentence"]).toContain("; the charger refuses it (busy). Without any event");
  depot.floor.answers = "silent";
  await depot.until("00:30");
  const silent = value(await depot.explain({ charger: "bay-01" }));
  expect(silent["sentence"]).toContain("; the charger is silent: whether it follows is not known. Without");
});

test("a charger that has sent no message is not called limited", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ id: "EV-1", start: "00:00", minutes: 60, amperes: 0 })
    .running();
  const unheard = value(await depot.explain({ charger: "bay-01" }));
  expect(unheard["sentence"]).toBe(
    "v1 at bay-01 should be paused until 01:00:00 because event EV-1 (priority 1) asks for 0 A; started 00:00:00; 0 A asked: pause; no message of the charger since the start: whether it follows is not known. Without any event the charger decides by itself, up to 32 A",
  );
});

test("while its broker is away, a charger is not called offline, and nothing is claimed of what it does", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ id: "EV-1", start: "00:00", minutes: 60, amperes: 10 })
    .running();
  // The broker publishes the last will of each charger when it stops.
  await depot.telemetry("bay-01", { state: "charging", powerW: 22_080 });
  await depot.online("bay-01", false);
  depot.floor.goDown();
  const away = value(await depot.explain({ charger: "bay-01" }));
  expect(away["sentence"]).toContain("; its broker is not connected: nothing reaches the charger, and");
  expect(away["sentence"]).not.toContain("offline");
  expect(away["claims"]).toContainEqual(expect.objectContaining({ kind: "limit", source: "broker" }));
  expect(await depot.resendCommand("bay-01", { reason: "it does not follow" })).toMatchObject({
    problem: { status: 409, detail: expect.stringContaining("its broker is not connected") },
  });
  depot.floor.comeUp();
  expect(value(await depot.explain({ charger: "bay-01" }))["sentence"]).toContain("the charger is offline");
});

test("a hold until events does not explain a moment after these events", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ id: "EV-1", start: "00:00", minutes: 60, amperes: 10 })
    .running();
  const held = { kind: "level", level: { currentA: 7 }, until: { events: true }, reason: "works" };
  await depot.hold({ scope: { charger: "bay-01" }, ...held });
  const during = await depot.explain({ charger: "bay-01", at: "2026-11-21T00:59:00Z" });
  expect(value(during)).toMatchObject({ claims: [{ kind: "hold", status: "wins" }, { source: "EV-1" }, {}] });
  const later = await depot.explain({ charger: "bay-01", at: "2026-11-21T01:30:00Z" });
  expect(value(later)["claims"]).toMatchObject([{ kind: "default", status: "wins" }]);
});

test("a moment ahead is explained by the plan, and one behind by the record", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ id: "EV-1", start: "01:00", minutes: 60, amperes: 10 })
    .running();
  expect(value(await depot.explain({ vehicle: "v1" }))).toMatchObject({
    claims: [
      { kind: "default", status: "wins" },
      { source: "EV-1", status: "waits", because: "starts 01:00:00" },
    ],
    sentence: "bay-01 (v1) decides by itself, up to 32 A: no event applies; EV-1 starts 01:00:00",
  });
  const inside = { vehicle: "v1", at: "2026-11-21T01:30:00Z" };
  const ahead = value(await depot.explain(inside));
  expect(ahead).toMatchObject({ at: "2026-11-21T01:30:00.000Z", claims: [{ source: "EV-1" }, {}] });
  await depot.until("03:00");
  const behind = value(await depot.explain(inside));
  expect(behind).toMatchObject({ claims: [{ source: "EV-1", status: "wins" }, { kind: "default" }] });
  expect(String(ahead["sentence"])).toContain("; starts 01:00:00. Without");
  expect(behind["sentence"]).toBe(String(ahead["sentence"]).replace("starts", "started"));
  expect(value(await depot.explain({ charger: "bay-01", at: "2026-11-21T02:30" }))).toMatchObject({
    claims: [{ kind: "default", status: "wins" }],
  });
  expect(value(await depot.explain({ charger: "bay-01", at: "2026-11-20T02:30" }))).toMatchObject({
    sentence: "bay-01 (v1): no decision is on record up to 2026-11-20 02:30:00",
    claims: [{ kind: "default", status: "wins" }],
    departure: null,
  });
});

test.each([
  [{ current: 10 }, { currentA: 10 }, "at 10 A"],
  ["pause", { pause: true }, "paused"],
])(
  "after the last event atEnd %j is what is explained, now and by the record",
  async (atEnd, level, text) => {
    const depot = await aDepot()
      .withControl({ atEnd })
      .withVehicle("v1", "bay-01")
      .withEvent({ id: "EV-1", start: "00:00", minutes: 60, amperes: 16 })
      .running();
    await depot.until("02:00");
    for (const when of [{}, { at: "2026-11-21T01:30" }])
      expect(value(await depot.explain({ charger: "bay-01", ...when }))).toMatchObject({
        sentence: `bay-01 (v1) stays ${text} (atEnd): no event applies`,
        claims: [{ kind: "default", level, status: "wins" }],
        without: { level },
      });
  },
);

const onTheDay = (time: string) => ({ at: `2026-11-21T${time}:00Z` });

test("while an event wins, and ahead of its end, the level of atEnd is the one without it", async () => {
  const depot = await aDepot()
    .withControl({ atEnd: { current: 10 } })
    .withVehicle("v1", "bay-01")
    .withEvent({ id: "EV-1", start: "00:00", minutes: 60, amperes: 16 })
    .withEvent({ id: "EV-2", start: "03:00", minutes: 60, amperes: 16 })
    .running();
  const asked = async (when: object) => {
    const { without, claims, sentence } = value(await depot.explain({ charger: "bay-01", ...when }));
    const own = (claims as readonly Json[]).find((claim) => textOf(claim, "kind") === "default");
    return [
      factOf(without as Json, "level"),
      factOf(own ?? null, "level"),
      /stays at 10 A \(atEnd\)/.test(String(sentence)),
    ];
  };
  const stays = [{ currentA: 10 }, { currentA: 10 }, true];
  for (const when of [{}, onTheDay("03:30"), onTheDay("02:00"), onTheDay("05:00")])
    expect(await asked(when)).toEqual(stays);
  await depot.until("02:00");
  for (const when of [onTheDay("00:30"), onTheDay("02:30")]) expect(await asked(when)).toEqual(stays);
  const level = { kind: "level", level: { currentA: 7 }, reason: "works" };
  await depot.hold({ scope: { charger: "bay-01" }, ...level, until: onTheDay("02:30") });
  // The end of a hold frees the charger. An event after it limits it again.
  expect(await asked(onTheDay("02:45"))).toEqual([{ release: true }, { release: true }, false]);
  expect(await asked(onTheDay("05:00"))).toEqual(stays);
});

test("ahead, a charger that no event has limited yet decides by itself until one does", async () => {
  const depot = await aDepot()
    .withControl({ atEnd: { current: 10 } })
    .withVehicle("v1", "bay-01")
    .withVehicle("v2", null)
    .withCharger("bay-02")
    .withEvent({ id: "EV-1", start: "03:00", minutes: 60, amperes: 16 })
    .running();
  const own = { without: { level: { release: true } } };
  for (const subject of [{ charger: "bay-01" }, { charger: "bay-02" }, { vehicle: "v2" }])
    expect(value(await depot.explain({ ...subject, at: "2026-11-21T02:00" }))).toMatchObject(own);
});

test("a vehicle at no charger now may have been at one at a moment without a record", async () => {
  const depot = await aDepot().withCharger("bay-01").withVehicle("v1", null).running();
  expect(value(await depot.explain({ vehicle: "v1", at: "2026-11-20T02:30" }))).toMatchObject({
    sentence: "v1: no decision is on record up to 2026-11-20 02:30:00",
  });
});

test("the past of a charger is about that charger, and that of a vehicle about that vehicle, wherever they are now", async () => {
  const depot = await aDepot()
    .withCharger("bay-01")
    .withCharger("bay-02")
    .withVehicle("v1", null)
    .withVehicle("v2", null)
    .withEvent({ id: "EV-1", start: "00:30", minutes: 60, amperes: 10, vehicles: ["v1"] })
    .withEvent({ id: "EV-2", start: "00:40", minutes: 60, amperes: 16, vehicles: ["v2"] })
    // The places of vehicles are known from readings.
    .reporting()
    .running();
  await depot.telemetry("bay-01", { state: "charging", vehicle: "v1", powerW: 7_000 });
  await depot.telemetry("bay-02", { state: "charging", vehicle: "v2", powerW: 7_000 });
  await depot.until("03:00");
  // v1 has left, and v2 has its place.
  await depot.telemetry("bay-02", { state: "unplugged", powerW: 0 });
  await depot.telemetry("bay-01", { state: "charging", vehicle: "v2", powerW: 7_000 });
  await depot.until("03:05");
  const at = "2026-11-21T01:00Z";
  const ofV1 = { charger: "bay-01", vehicle: "v1", claims: [{ source: "EV-1", status: "wins" }, {}] };
  const ofV2 = { charger: "bay-02", vehicle: "v2", claims: [{ source: "EV-2", status: "wins" }, {}] };
  expect(value(await depot.explain({ vehicle: "v1", at }))).toMatchObject(ofV1);
  expect(value(await depot.explain({ charger: "bay-01", at }))).toMatchObject(ofV1);
  expect(value(await depot.explain({ vehicle: "v2", at }))).toMatchObject(ofV2);
  expect(value(await depot.explain({ charger: "bay-02", at }))).toMatchObject(ofV2);
});

test("observe mode, an offline charger and a deferred increase show as what limits", async () => {
  const observing = await aDepot()
    .withVehicle("v1", "bay-01")
    .withControl({ mode: "observe" })
    .withEvent({ id: "EV-1", start: "00:00", minutes: 120, amperes: 10 })
    .running();
  expect(value(await observing.explain({ charger: "bay-01" }))).toMatchObject({
    claims: [{ status: "wins" }, { kind: "limit", source: "observing", status: "limits" }, {}],
  });
});

test("an increase that waits shows until when", async () => {
  const depot = await aDepot()
    .withCharger("bay-01", { minInterval: "10m" })
    .withVehicle("v1", "bay-01")
    .withEvent({ id: "EV-1", start: "00:00", minutes: 5, amperes: 10 })
    .running();
  await depot.until("00:06");
  expect(value(await depot.explain({ charger: "bay-01" }))).toMatchObject({ claims: [{ status: "wins" }] });
});

test("a vehicle at no charger has its events waiting", async () => {
  const depot = await aDepot()
    .withCharger("bay-01")
    .withVehicle("v1", null)
    .withEvent({ id: "EV-1", start: "00:00", minutes: 120, amperes: 10 })
    .running();
  const query = { vehicle: "v1" };
  expect(value(await depot.explain(query))).toMatchObject({
    charger: null,
    claims: [
      { kind: "default" },
      { source: "EV-1", status: "waits", because: "the vehicle is at no charger" },
    ],
    sentence: "v1 is at no charger: no event acts on it now",
  });
  expect(value(await depot.explain({ ...query, at: "2026-11-21T01:00Z" }))).toMatchObject({ charger: null });
  expect(value(await depot.explain({ ...query, at: "2026-11-20T01:00Z" }))).toMatchObject({ charger: null });
});

test("an unknown name is answered with what is known", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01", { name: "Bus 1" }).running();
  const unknown = await depot.explain({ charger: "bay-1" });
  expect(unknown).toEqual({
    ok: false,
    problem: {
      status: 404,
      title: "there is no charger bay-1",
      detail: "one of bay-01",
      errors: [{ path: "charger", found: "bay-1", expected: "one of bay-01" }],
    },
  });
  expect(await depot.explain({ vehicle: "v2" })).toMatchObject({ problem: { detail: "one of v1, Bus 1" } });
  expect(unknown.ok ? "" : formatProblem(unknown.problem)).toBe("there is no charger bay-1: one of bay-01");
});

test.each([
  [{}, "vehicle"],
  [{ vehicle: "v1", charger: "bay-01" }, "vehicle"],
  [{ vehicle: ["v1", "v2"] }, "vehicle"],
  [{ charger: ["v1", "v2"] }, "charger"],
  [{ charger: "bay-01", when: "now" }, "when"],
  [{ charger: "bay-01", at: "yesterday" }, "at"],
  [{ charger: "bay-01", at: "2026-13-40T00:00Z" }, "at"],
  [{ charger: "bay-01", at: "2026-11-31T00:00Z" }, "at"],
])("the query %j is refused by the path %s", (query, path) => {
  expect(explainRequest(query)).toMatchObject({ ok: false, problem: { status: 400, errors: [{ path }] } });
});

test("a moment without a zone is UTC", () => {
  expect(explainRequest({ charger: "bay-01", at: "2026-11-21T05:30" })).toMatchObject({
    charger: "bay-01",
    at: Date.UTC(2026, 10, 21, 5, 30),
  });
});
