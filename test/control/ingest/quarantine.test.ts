import { expect, test } from "vitest";

import { recoverAfterFailedCommit } from "../../../src/control/recovery.ts";
import { type ControlSetup, ControlState } from "../../../src/control/state.ts";
import { scopeOf } from "../../../src/domain/changes.ts";
import { eventId, hours, instant, iso, millis, minutes } from "../../../src/domain/units.ts";
import { advance } from "../../../src/control/schedule/advance.ts";
import { missingAfterList } from "../../../src/control/ingest/ingest.ts";
import { SharedRoom } from "../../../src/platform/cooperative.ts";
import { ingestAtOnce } from "../../support/ingestAtOnce.ts";
import { aPicture, NOTHING_STORED, rememberedOf } from "../../support/aPicture.ts";
import { aCharger, aVehicle, settingsWith, SITE_KEY } from "../../support/aCharger.ts";
import { aDepot } from "../../support/aDepot.ts";
import { anEvent, at, live, targetsOf } from "../../support/anEvent.ts";

const bad = (id: string) => ({ ID: id, intervalPeriod: { start: "soon" }, payload: {} });

test("F39: a single bad event in a list is on record by its id", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  const good = depot.has({ id: "EV-1", start: "08:00" });
  await depot.post([good, bad("EV-2")]);
  expect(depot.audit("rejected")).toEqual([
    expect.stringMatching(/^event EV-2 in a webhook was set aside: \[1\]\.intervalPeriod/),
  ]);
});

test("F12: a body full of malformed entries is counted whole, and takes twenty rows of the record and one for the rest", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  const body = Array.from({ length: 3000 }, (_, index) => bad(`EV-${index}`));
  expect(await depot.post(body)).toMatchObject({ kind: "ingested", ingested: { rejected: 3000 } });
  const rows = depot.audit("rejected");
  expect(rows).toHaveLength(21);
  expect(rows[19]).toContain("event EV-19 ");
  expect(rows[20]).toMatch(/^2980 more in the same webhook were set aside, the next: \[20\]\./);
  // The same again is no news, but for what is new in it.
  await depot.post([...body, bad("EV-new")]);
  expect(depot.audit("rejected").slice(21)).toEqual([expect.stringContaining("event EV-new ")]);
});

test("F05, F39: a bad event that could not be recorded is recorded when it arrives again", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  depot.disk.full = true;
  expect(await depot.post([bad("EV-2")])).toMatchObject({ kind: "refused", status: 503 });
  depot.disk.full = false;
  expect(await depot.post([bad("EV-2")])).toMatchObject({ ingested: { rejected: 1 } });
  await depot.post([bad("EV-2")]);
  expect(depot.audit("rejected")).toEqual([expect.stringContaining("event EV-2 ")]);
});

test("twenty-one bad events are twenty rows and one, also where the last has no id", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  await depot.post([...Array.from({ length: 20 }, (_, index) => bad(`EV-${index}`)), { payload: {} }]);
  expect(depot.audit("rejected").at(-1)).toMatch(/^1 more in the same webhook/);
  expect(depot.audit("rejected")).toHaveLength(21);
});

test("F15: an event that triggers a bug is quarantined, the others and its earlier state stay, and the process goes on", () => {
  const poison = at("07:00");
  const depot = new ControlState({
    chargers: [aCharger()],
    vehicles: [aVehicle()],
    settings: settingsWith(),
    siteKey: SITE_KEY,
    epoch: 1,
    archive: NOTHING_STORED,
    wallClock: (moment) => {
      if (moment === poison) throw new RangeError("no such moment");
      return "some time";
    },
    assertAll: false,
  });
  const comes = (...events: readonly ReturnType<typeof anEvent>[]) => {
    const notices = events.map((event) => ({ kind: "event", event }) as const);
    const now = at("04:30");
    const delivery = { source: "list", at: now, askedAt: now, notices, complete: true } as const;
    return ingestAtOnce(depot, [delivery]);
  };
  comes(anEvent({ id: "EV-1" }));
  const bad = [
    anEvent({ id: "EV-1", start: poison, revision: at("04:20") }),
    anEvent({ id: "EV-2", start: poison }),
  ];
  const { results: taken, changes } = comes(...bad, anEvent({ id: "EV-3" }));
  expect(taken).toEqual([{ accepted: 1, repeats: 0, rejected: 2 }]);
  expect([...depot.known.keys()]).toEqual(["EV-1", "EV-3"]);
  expect(depot.known.get(eventId("EV-1"))).toMatchObject({ revision: { start: at("05:00") } });
  const kept = changes.flatMap((change) => (change.kind === "quarantine" ? [change.rejected] : []));
  expect(kept.map(({ id }) => id)).toEqual(["EV-1", "EV-2"]);
  expect(kept[0]?.reason).toContain("RangeError: no such moment");
});

test("an event that does not fit in memory is set aside once, what is in force goes on, and it is accepted once others have ended", () => {
  const vehicles = ["v1", "v2", "v3"].map((id) => aVehicle({ id, charger: null }));
  const state = aPicture({
    vehicles,
    settings: settingsWith({ untargeted: "all" }),
    room: new SharedRoom(5).part(),
  });
  const listed = (event: Parameters<typeof anEvent>[0], when: string) => {
    const made = anEvent({ targets: [], randomizeStart: millis(0), duration: hours(1), ...event });
    const notices = [{ kind: "event", event: made }] as const;
    const times = { at: at(when), askedAt: at(when) };
    return ingestAtOnce(state, [{ source: "list", notices, complete: false, ...times }]);
  };
  expect(listed({ id: "EV-1" }, "04:00").results).toEqual([{ accepted: 1, repeats: 0, rejected: 0 }]);
  const second = listed({ id: "EV-2" }, "04:01");
  expect(second.results).toEqual([{ accepted: 0, repeats: 0, rejected: 1 }]);
  const reason = expect.stringContaining("3 vehicles of this site, expected");
  expect(second.changes).toMatchObject([
    { kind: "quarantine", rejected: { id: "EV-2", path: "targets", reason } },
    { kind: "audit", entry: { kind: "rejected", event: "EV-2" } },
  ]);
  expect([state.schedule.isFull, state.agenda.size, [...state.known.keys()]]).toEqual([true, 3, ["EV-1"]]);
  expect(listed({ id: "EV-2" }, "04:02").changes).toEqual([]);
  const edit = { id: "EV-1", revision: at("04:10"), priority: 9 };
  expect(listed(edit, "05:10").results).toMatchObject([{ accepted: 1 }]);
  expect(listed({ id: "EV-3", targets: targetsOf("v1", "v2") }, "05:11").results).toMatchObject([
    { accepted: 1 },
  ]);
  expect(listed({ id: "EV-4", start: at("03:00") }, "05:12").results).toMatchObject([{ accepted: 1 }]);
  advance(state, at("06:00"));
  expect(listed({ id: "EV-2", start: at("07:00") }, "06:00").results).toMatchObject([{ accepted: 1 }]);
  expect([state.schedule.isFull, state.agenda.ofEvent(eventId("EV-2")).length]).toEqual([false, 3]);
});

const LISTED = { at: at("04:00"), askedAt: at("04:00") };

/** A site of three vehicles with room for so many dispatches. All events are for all of them, unless named. */
function siteWithRoom(most: number, setup: Partial<ControlSetup> = {}) {
  const vehicles = ["v1", "v2", "v3"].map((id) => aVehicle({ id, charger: null }));
  const room = new SharedRoom(most).part();
  const state = aPicture({ vehicles, settings: settingsWith({ untargeted: "all" }), room, ...setup });
  const listed = (when: string, ...events: readonly Parameters<typeof anEvent>[0][]) => {
    const made = events.map((event) =>
      anEvent({ targets: [], randomizeStart: millis(0), duration: hours(1), ...event }),
    );
    const notices = made.map((event) => ({ kind: "event", event }) as const);
    const { results, changes } = ingestAtOnce(state, [
      { source: "list", notices, complete: true, at: at(when), askedAt: at(when) },
    ]);
    return { ...results[0], changes };
  };
  return { state, listed, known: () => [...state.known.keys()] };
}

test("where not all events of a list fit in memory, those of the best priority are kept, whatever their order", () => {
  const events = [5, 1, 9, 3].map((priority) => ({ id: `EV-${priority}`, priority }));
  for (const list of [events, events.toReversed()]) {
    const { listed, known, state } = siteWithRoom(7);
    const { changes } = listed("05:10", ...list);
    expect(new Set(known())).toEqual(new Set(["EV-1", "EV-3"]));
    const left = changes.flatMap((change) => (change.kind === "eventForgotten" ? [change.id] : []));
    const aside = changes.flatMap((change) => (change.kind === "quarantine" ? [change.rejected.id] : []));
    expect(new Set(aside)).toEqual(new Set(["EV-5", "EV-9"]));
    expect(aside).toEqual(expect.arrayContaining(left));
    expect([state.agenda.size, state.schedule.isFull]).toEqual([6, true]);
    expect(listed("05:11", ...list).accepted).toBe(0);
  }
});

test("an accepted event that begins later gives way to one of a better priority, and one that began does not", () => {
  const { listed, known } = siteWithRoom(6);
  const running = { id: "EV-runs", priority: 9 };
  listed("05:10", running, { id: "EV-later", start: at("09:00"), priority: 8 });
  const urgent = { id: "EV-urgent", priority: 1 };
  const { accepted, rejected, changes } = listed("05:20", urgent);
  expect([accepted, rejected, known()]).toEqual([1, 0, ["EV-runs", "EV-urgent"]]);
  const reason = expect.stringMatching(/^it gives way to an event of a better priority/);
  expect(changes).toContainEqual(
    expect.objectContaining({
      kind: "quarantine",
      rejected: expect.objectContaining({ id: "EV-later", reason }),
    }),
  );
  expect(listed("05:30", { id: "EV-next", priority: 0 })).toMatchObject({ accepted: 0, rejected: 1 });
  expect(known()).toEqual(["EV-runs", "EV-urgent"]);
});

test("of two events of one priority, the one that begins later gives way", () => {
  const { listed, known } = siteWithRoom(6);
  const [nine, ten] = ["09", "10"].map((hour) => ({
    id: `EV-${hour}`,
    start: at(`${hour}:00`),
    priority: 8,
  }));
  listed("05:10", nine, ten);
  expect(listed("05:20", { id: "EV-urgent", priority: 1 }).accepted).toBe(1);
  expect(known()).toEqual(["EV-09", "EV-urgent"]);
});

test("an event that becomes larger and more urgent where memory is full does not give way to itself", () => {
  const { listed, known, state } = siteWithRoom(5);
  const small = { id: "EV-1", start: at("08:00"), priority: 8, targets: targetsOf("v1", "v2") };
  listed("05:10", { id: "EV-2", start: at("09:00"), priority: 7 }, small);
  const larger = { ...small, targets: [], priority: 1, revision: at("05:15") };
  expect(listed("05:20", larger)).toMatchObject({ accepted: 1, rejected: 0 });
  expect([known(), state.agenda.size]).toEqual([["EV-1"], 3]);
});

const urgent = (when: string) => ({ id: `EV-${when}`, start: at(when), priority: 1 });

test("an event that gives way is on record each time, also one whose text is longer than what is kept", () => {
  const { listed, known } = siteWithRoom(3);
  const later = { id: "EV-later", start: at("09:00"), priority: 8, name: "x".repeat(5_000) };
  const aside = ({ changes }: ReturnType<typeof listed>) =>
    changes.flatMap((change) =>
      change.kind === "audit" && change.entry.kind === "rejected" ? [change.entry.event] : [],
    );
  listed("04:00", later);
  expect(aside(listed("04:10", urgent("04:20")))).toEqual(["EV-later"]);
  expect(listed("05:20", { ...urgent("04:20"), revision: at("05:19"), duration: millis(0) })).toMatchObject({
    accepted: 1,
  });
  expect(listed("05:30", later)).toMatchObject({ accepted: 1 });
  expect(aside(listed("05:40", urgent("05:50")))).toEqual(["EV-later"]);
  expect(known()).toEqual(["EV-04:20", "EV-05:50"]);
});

test("F05: an event that gave way holds again where that could not be stored", () => {
  const { listed, known, state } = siteWithRoom(3);
  const later = { id: "EV-later", start: at("09:00"), priority: 8, targets: [], randomizeStart: millis(0) };
  listed("05:10", later);
  const { changes } = listed("05:20", later, { id: "EV-urgent", priority: 1 });
  const stored = rememberedOf({ events: [live(anEvent(later))] });
  recoverAfterFailedCommit(state, scopeOf(changes), stored, new Map(), at("05:20"));
  expect([known(), state.agenda.size]).toEqual([["EV-later"], 3]);
  expect([listed("05:21", later).repeats, state.schedule.isFull]).toEqual([1, false]);
});

test("F15: no accepted event gives way to an urgent one that triggers a bug", () => {
  const poison = at("07:00");
  const wallClock = (moment: number) => {
    if (moment === poison) throw new RangeError("no such moment");
    return "some time";
  };
  const { listed, known, state } = siteWithRoom(3, { wallClock });
  listed("04:00", { id: "EV-later", priority: 8 });
  expect(listed("04:01", { id: "EV-urgent", start: poison, priority: 1 })).toMatchObject({ rejected: 1 });
  expect([known(), state.agenda.size]).toEqual([["EV-later"], 3]);
});

test("an event that an edit makes more urgent, with more vehicles than fit, stays as it was", () => {
  const { listed, known, state } = siteWithRoom(4);
  const edited = { id: "EV-edited", start: at("09:00"), priority: 8, targets: targetsOf("v1", "v2") };
  listed("05:10", { id: "EV-runs", priority: 9, targets: targetsOf("v1", "v2") }, edited);
  const edit = { ...edited, revision: at("05:20"), priority: 1, targets: [] };
  expect(listed("05:20", edit)).toMatchObject({ accepted: 0, rejected: 1 });
  expect([known(), state.agenda.size]).toEqual([["EV-runs", "EV-edited"], 4]);
});

test("an event gives way only to a better priority, and only where that makes room", () => {
  const { listed, known } = siteWithRoom(4);
  listed("04:00", { id: "EV-none", targets: targetsOf("elsewhere"), priority: 9 });
  listed("04:00", { id: "EV-one", targets: targetsOf("v1"), priority: 8, start: at("06:00") });
  listed("04:00", { id: "EV-all", priority: 4 });
  expect(listed("04:01", { id: "EV-same", priority: 8 })).toMatchObject({ rejected: 1 });
  expect(listed("04:01", { id: "EV-better", priority: 7 })).toMatchObject({ rejected: 1 });
  expect(known()).toEqual(["EV-none", "EV-one", "EV-all"]);
  expect(listed("04:02", { id: "EV-best", targets: targetsOf("v2"), priority: 7 })).toMatchObject({
    accepted: 1,
  });
  expect(known()).toEqual(["EV-none", "EV-all", "EV-best"]);
});

test("an edit that shortens an event is taken where memory is full, also once some of its vehicles have ended", () => {
  const { listed, state } = siteWithRoom(6);
  const spread = { id: "EV-1", randomizeStart: minutes(50) };
  listed("04:00", spread);
  const ends = state.agenda.ofEvent(eventId("EV-1")).map(({ until }) => until);
  const afterFirst = iso(instant(Math.min(...ends) + 1)).slice(11, 23);
  listed("04:01", { id: "EV-2", start: at("05:00"), duration: hours(9), targets: targetsOf("v1") });
  listed("04:01", { id: "EV-3", start: at("05:00"), duration: hours(9), targets: targetsOf("v1", "v2") });
  advance(state, at(afterFirst));
  listed(afterFirst, { id: "EV-4", start: at("09:00"), targets: targetsOf("v1") });
  expect([state.agenda.size, state.agenda.ofEvent(eventId("EV-1")).length]).toEqual([6, 2]);
  const edit = { ...spread, revision: at("05:30") };
  expect(listed(afterFirst, { ...edit, duration: minutes(59) })).toMatchObject({ accepted: 1 });
  const longer = { ...edit, revision: at("05:40"), duration: hours(5) };
  expect(listed(afterFirst, longer)).toMatchObject({ accepted: 0, rejected: 1 });
});

test("sites of one process share the room in memory, and a site that stops leaves it to the others", () => {
  const shared = new SharedRoom(5);
  const part = shared.part();
  const siteWith = (room: typeof part) => {
    const vehicles = ["v1", "v2", "v3"].map((id) => aVehicle({ id, charger: null }));
    const state = aPicture({ vehicles, settings: settingsWith({ untargeted: "all" }), room });
    return (id: string) => {
      const notices = [{ kind: "event", event: anEvent({ id, targets: [] }) }] as const;
      return ingestAtOnce(state, [{ source: "list", notices, complete: false, ...LISTED }]).results[0]
        ?.accepted;
    };
  };
  const [first, second] = [siteWith(part), siteWith(shared.part())];
  expect([first("EV-1"), second("EV-1")]).toEqual([1, 0]);
  part[Symbol.dispose]();
  // A list that the site was reading as it stopped.
  expect(first("EV-2")).toBe(1);
  expect([second("EV-1"), second("EV-2")]).toEqual([1, 0]);
});

test("an event that was set aside and left the list, or that has no dispatch, does not have later lists read whole", () => {
  const vehicles = ["v1", "v2", "v3"].map((id) => aVehicle({ id, charger: null }));
  const state = aPicture({
    vehicles,
    settings: settingsWith({ untargeted: "all" }),
    room: new SharedRoom(5).part(),
  });
  const listed = (when: string, ...events: Parameters<typeof anEvent>[0][]) => {
    const notices = events.map((event) => ({
      kind: "event" as const,
      event: anEvent({ targets: [], randomizeStart: millis(0), ...event }),
    }));
    const times = { at: at(when), askedAt: at(when) };
    const { results } = ingestAtOnce(state, [{ source: "list", notices, complete: true, ...times }]);
    return [results[0]?.rejected, state.schedule.isFull];
  };
  expect(listed("04:01", { id: "EV-1" }, { id: "EV-2" })).toEqual([1, true]);
  expect(listed("04:02", { id: "EV-1" }, { id: "EV-2" })).toEqual([1, true]);
  expect(missingAfterList(state, null, at("04:03"))).toEqual([]);
  expect(state.schedule.isFull).toBe(true);
  expect(listed("04:04", { id: "EV-1" })).toEqual([0, false]);
  const unknown = { kind: "unknown", payloadType: "SOMETHING" } as const;
  expect(listed("04:05", { id: "EV-1" }, { id: "EV-3", ask: unknown })).toEqual([0, false]);
  expect([...state.known.keys()]).toEqual(["EV-1", "EV-3"]);
});
