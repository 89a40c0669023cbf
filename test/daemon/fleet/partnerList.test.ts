import { setImmediate as nextTurn } from "node:timers/promises";
import { pino } from "pino";
import { describe, expect, test } from "vitest";

import { FleetPoller, ListFeed } from "../../../src/daemon/fleet/partnerList.ts";
import { Entries, eventsIn } from "../../../src/daemon/fleet/routing.ts";
import type { Fetched, Notice } from "../../../src/domain/delivery.ts";
import { eventId, instant, millis, minutes } from "../../../src/domain/units.ts";
import { failed } from "../../../src/vtn/http.ts";
import { aFleetOf } from "../../store/postgres/fleetRows.ts";
import { aCluster } from "../../store/postgres/state.ts";
import { anEvent } from "../../support/anEvent.ts";
import { postgresMissing } from "../../support/postgres.ts";
import { waitFor } from "../../support/waitFor.ts";

const event = (id: string, ...vehicles: readonly string[]) =>
  anEvent({ id: eventId(id), targets: [{ type: "vehicle", values: vehicles }] });
const notice = (id: string, ...vehicles: readonly string[]): Notice => ({
  kind: "event",
  event: event(id, ...vehicles),
});
const valuesOf = (given: Notice | undefined): readonly string[] =>
  given?.kind === "event" ? given.event.targets.flatMap(({ values }) => values) : [];

const neverAsked = async () => {
  throw new Error("not asked");
};

const unread = (id: string | null, reason: string, ...vehicles: readonly string[]) =>
  ({
    kind: "rejected",
    id: id === null ? null : eventId(id),
    path: "[0]",
    reason,
    raw: JSON.stringify({ id, targets: [{ type: "vehicle", values: vehicles }] }),
  }) as const;
const deletion = (id: string) => ({ kind: "deleted", id: eventId(id), revision: instant(1) }) as const;
const wallClock = () => instant(Date.now());
/** The clock of the site is that of its machine. */
const sameClock = () => millis(0);

describe("the list for each site", () => {
  const at = instant(1);
  const answer = { kind: "read", at, askedAt: at, complete: true, skew: millis(0) } as const;
  const asked = (ms: number) => ({ ...answer, at: instant(ms), askedAt: instant(ms) });
  const north = ["n1", "n2"];
  let now = 0;
  test("a site reads its own entries once, then the list is unchanged until its entries change", async () => {
    const feed = new ListFeed(() => now);
    const site = feed.siteOf(north, neverAsked, sameClock);
    const waiting = site.list();
    feed.push(1, answer, [notice("E", "n1", "s1"), notice("F", "s1"), notice("G")]);
    const first = await waiting;
    if (first.kind !== "read") throw new Error(first.kind);
    expect(eventsIn(first.delivery.notices)).toEqual(["G", "E"]);
    // Not settled: it is read again.
    feed.push(2, answer, null);
    const second = await site.list();
    if (second.kind !== "read") throw new Error(second.kind);
    site.settled(first.delivery);
    site.settled(second.delivery);
    feed.push(3, answer, [notice("E", "n1", "s1"), notice("G")]);
    expect((await site.list()).kind).toBe("unchanged");
    feed.push(4, answer, [notice("E", "n1", "n2", "s1"), notice("G")]);
    expect((await site.list()).kind).toBe("read");
    feed.push(5, { kind: "failed", asked: true, reason: "away", status: null, retryAfter: null }, null);
    expect(await site.list()).toMatchObject({ kind: "failed", reason: "away" });
    expect(feed.number).toBe(5);
  });

  test("a listed event whose targets no longer have a vehicle of the site is given with a foreign one, and is not missing", async () => {
    const feed = new ListFeed(() => now);
    const site = feed.siteOf(north, async () => failed("the partner answered 502", 502, null), sameClock);
    const listed = async (number: number, ...notices: readonly Notice[]) => {
      feed.push(number, answer, notices);
      const fetched = await site.list();
      return fetched.kind === "read"
        ? fetched.delivery.notices.map((given) => `${eventsIn([given]).join()} ${valuesOf(given).join()}`)
        : fetched.kind;
    };
    expect(await listed(1, notice("E", "n1", "s1"), notice("F", "s1"))).toEqual(["E n1,s1"]);
    expect(await listed(2, notice("E", "s1"), notice("F", "s1"))).toEqual(["E s1"]);
    expect(await listed(3, notice("E", "s1"), notice("F", "s1"))).toEqual(["E s1"]);
    // An event that came by webhook.
    const delivery = { at, askedAt: at, complete: false, notices: [notice("F", "n1")] } as const;
    site.settled({ ...delivery, source: "webhook" });
    expect(await listed(4, notice("E", "s1"), notice("F", "s1"))).toEqual(["E s1", "F s1"]);
    // It is not listed any more, so it is missing. It cannot be read in the next list, and is known still after that.
    expect(await listed(5, notice("F", "s1"))).toEqual(["F s1"]);
    const rejected = { kind: "rejected", id: eventId("F"), path: "", reason: "no start", raw: "{}" } as const;
    expect(await listed(6, rejected)).toEqual(["F "]);
    expect(await listed(7, notice("F", "s1"))).toEqual(["F s1"]);
    // Lists lacked it since a start, and the fetch by its id fails.
    await site.event(eventId("G"));
    expect(await listed(8, notice("G", "s1"))).toEqual(["G s1"]);
  });

  test("a site whose clock is in doubt compares its own clock with the partner's, not that of the machine", async () => {
    const feed = new ListFeed(() => now);
    const delivery = { source: "fetch", at, askedAt: at, complete: false, notices: [] } as const;
    let skew = millis(-5_000);
    let ahead = millis(600_000);
    const site = feed.siteOf(
      north,
      async () => ({ kind: "read", delivery, skew }),
      () => ahead,
    );
    const skews = async (): Promise<readonly unknown[]> => {
      feed.push(feed.number + 1, { ...answer, skew }, []);
      const [list, event] = [await site.list(), await site.event(eventId("E"))];
      if (list.kind === "read") site.settled(list.delivery);
      return [list, event].map((fetched) =>
        fetched.kind === "failed" ? fetched : [fetched.kind, fetched.skew],
      );
    };
    expect(await skews()).toEqual([
      ["read", 595_000],
      ["read", 595_000],
    ]);
    // It is believed again.
    ahead = millis(0);
    skew = millis(-4_000);
    expect(await skews()).toEqual([
      ["unchanged", -4_000],
      ["read", -4_000],
    ]);
  });

  test("of an event that is listed twice, a site gets both entries: the later one decides", () => {
    const twice = [notice("E", "n1"), notice("E", "s1")];
    expect(new Entries(twice).of(new Set(north), new Set()).map(valuesOf)).toEqual([["n1"], ["s1"]]);
  });

  test("after a delivery of another source, the next list that was requested since is read by the site again", async () => {
    const feed = new ListFeed(() => now);
    const site = feed.siteOf(north, neverAsked, sameClock);
    let number = 0;
    /** The next list holds E. `seconds`: of its request. True: the site ingests it. */
    const reads = async (seconds: number): Promise<boolean> => {
      const moment = instant(seconds * 1_000);
      number += 1;
      feed.push(number, { ...answer, at: moment, askedAt: moment }, [notice("E", "n1")]);
      const fetched = await site.list();
      if (fetched.kind === "read") site.settled(fetched.delivery);
      return fetched.kind === "read";
    };
    expect([await reads(10), await reads(20)]).toEqual([true, false]);
    const deleted: Notice = { kind: "deleted", id: eventId("E"), revision: instant(1) };
    const moment = instant(25_000);
    const delivery = { at: moment, askedAt: moment, complete: false, notices: [deleted] } as const;
    site.settled({ ...delivery, source: "webhook" });
    // A list that is older than the delete does not revive the event, so it settles nothing.
    expect([await reads(24), await reads(30), await reads(40)]).toEqual([true, true, false]);
  });

  test("a delete that arrived after the request for a list comes with its event, to a site that did not have it", async () => {
    const feed = new ListFeed(() => now);
    const [site, other] = [
      feed.siteOf(north, neverAsked, sameClock),
      feed.siteOf(["s1"], neverAsked, sameClock),
    ];
    const kindsOf = async ({ list, settled }: typeof site): Promise<unknown> => {
      const fetched = await list();
      if (fetched.kind !== "read") return fetched.kind;
      settled(fetched.delivery);
      return fetched.delivery.notices.map((given) => `${given.kind} ${eventsIn([given]).join()}`);
    };
    const deleted = { kind: "deleted", id: eventId("E"), revision: instant(1) } as const;
    const entries = [notice("F", "n1"), notice("E", "n1")];
    feed.push(1, asked(1), entries, new Map([["E", deleted]]));
    expect(await kindsOf(site)).toEqual(["deleted E", "event F", "event E"]);
    expect(await kindsOf(other)).toEqual([]);
    // A later list that holds the event still revives it, so it is read again.
    feed.push(2, asked(2), null);
    expect(await kindsOf(site)).toEqual(["event F", "event E"]);
    expect(await kindsOf(other)).toBe("unchanged");
    // The site knows the event now, and gets further deletes by their own deliveries.
    feed.push(3, asked(3), entries, new Map([["E", deleted]]));
    expect(await kindsOf(site)).toBe("unchanged");
  });

  test("an entry that cannot be read is recorded by the sites that have its event, or a vehicle that it names, and listed for all", async () => {
    const feed = new ListFeed(() => now);
    const site = feed.siteOf(north, neverAsked, sameClock);
    const read = async (...notices: readonly Notice[]): Promise<unknown> => {
      const moment = instant(feed.number + 1);
      feed.push(feed.number + 1, { ...answer, at: moment, askedAt: moment }, notices);
      const fetched = await site.list();
      if (fetched.kind !== "read") return fetched.kind;
      site.settled(fetched.delivery);
      const given = fetched.delivery.notices.map((each) =>
        each.kind === "rejected" ? `${each.id} ${each.reason}` : eventsIn([each]).join(),
      );
      return [...given, fetched.delivery.unchanged?.ids ?? "all here"];
    };
    expect(await read(notice("E", "n1"))).toEqual(["E", "all here"]);
    const foreign = unread("S", "no start", "s1");
    // Its own event without a vehicle that can be read, and two that name its vehicles.
    const own = [unread("E", "no targets"), unread("N", "no start", "x", "n2"), unread(null, "no id", "n1")];
    expect(await read(foreign, ...own)).toEqual(["E no targets", "N no start", "null no id", ["S"]]);
    expect(await read(foreign, ...own)).toBe("unchanged");
    expect(await read(unread("S", "no end", "s1"), ...own)).toBe("unchanged");
    // Another mistake in its own entry is news.
    expect(await read(foreign, unread("E", "no start"))).toEqual(["E no start", ["S"]]);
    expect(await read(notice("E", "n1"))).toEqual(["E", "all here"]);
  });

  test("a list that is not complete is never unchanged, and neither is one with other unreadable entries", async () => {
    const feed = new ListFeed(() => now);
    const site = feed.siteOf(north, neverAsked, sameClock);
    const rejected = {
      kind: "rejected",
      id: eventId("R"),
      path: "[1]",
      reason: "no start",
      raw: "{}",
    } as const;
    let number = 0;
    const kindOf = async (notices: readonly Notice[], complete = true): Promise<string> => {
      number += 1;
      const moment = instant(number);
      feed.push(number, { ...answer, at: moment, askedAt: moment, complete }, notices);
      const fetched = await site.list();
      if (fetched.kind === "read") site.settled(fetched.delivery);
      return fetched.kind;
    };
    const E = notice("E", "n1");
    expect(await kindOf([E, rejected])).toBe("read");
    expect(await kindOf([E, rejected])).toBe("unchanged");
    expect(await kindOf([E, { ...rejected, reason: "no duration" }])).toBe("unchanged");
    expect(await kindOf([E])).toBe("read");
    expect(await kindOf([E])).toBe("unchanged");
    expect(await kindOf([E, { ...rejected, id: null }], false)).toBe("read");
    expect(await kindOf([E, { ...rejected, id: null }], false)).toBe("read");
    expect(await kindOf([E])).toBe("read");
    expect(await kindOf([E])).toBe("unchanged");
  });

  test("a site that starts later reads the last list at once; an unreadable entry counts as listed", async () => {
    const feed = new ListFeed(() => now);
    expect(feed.number).toBe(0);
    feed.push(1, answer, [
      { kind: "rejected", id: eventId("R"), path: "[0]", reason: "no start", raw: "{}" },
    ]);
    const read = await feed.siteOf(north, neverAsked, sameClock).list();
    expect(read).toMatchObject({
      kind: "read",
      delivery: { notices: [], unchanged: { ids: ["R"], rejected: 0 } },
    });
    const empty = new ListFeed(() => now);
    empty.push(1, answer, null);
    expect(await empty.siteOf(north, neverAsked, sameClock).list()).toMatchObject({
      kind: "read",
      delivery: { notices: [] },
    });
  });

  test("the same failure is answered once a minute, another one and the next list at once", async () => {
    const feed = new ListFeed(() => now);
    const { list } = feed.siteOf(north, neverAsked, sameClock);
    const answers: string[] = [];
    const read = async (): Promise<void> => {
      for (;;) {
        const fetched = await list();
        answers.push(fetched.kind === "failed" ? fetched.reason : fetched.kind);
      }
    };
    void read();
    let number = 0;
    const push = async (reason: string | null): Promise<readonly string[]> => {
      number += 1;
      const failed = {
        kind: "failed",
        asked: true,
        reason: reason ?? "",
        status: 503,
        retryAfter: null,
      } as const;
      feed.push(number, reason === null ? answer : failed, null);
      // Answers are given within the microtasks of this turn.
      await nextTurn();
      return answers.splice(0);
    };
    expect(await push("503")).toEqual(["503"]);
    now += 59_000;
    expect(await push("503")).toEqual([]);
    now += 1_000;
    expect(await push("503")).toEqual(["503"]);
    expect(await push("no route")).toEqual(["no route"]);
    expect(await push(null)).toEqual(["read"]);
    expect(await push("no route")).toEqual(["no route"]);
  });

  test("a fetch by id is reduced to the site as well", async () => {
    const feed = new ListFeed(() => now);
    const gone = { kind: "gone", id: eventId("F") } as const;
    const fetched = {
      kind: "read",
      delivery: {
        source: "fetch",
        at,
        askedAt: at,
        complete: false,
        notices: [notice("E", "s1", "n1"), gone],
      },
      skew: null,
    } as const;
    const site = feed.siteOf(
      north,
      async (id) =>
        id === "E" ? fetched : { kind: "failed", asked: false, reason: "no", status: null, retryAfter: null },
      sameClock,
    );
    const own = await site.event(eventId("E"));
    expect(own.kind === "read" ? own.delivery.notices.map(valuesOf) : []).toEqual([["n1", "s1"], []]);
    expect((await site.event(eventId("X"))).kind).toBe("failed");
    expect(new Entries([]).of(new Set(north), new Set())).toEqual([]);
  });
});

/** Polls once a second, as the loop of the process does. `asked`: seconds of the requests. */
function aPoller(random: number) {
  const at = instant(1);
  const partner = {
    answer: failed("the partner answered 502", 502, null) as Fetched,
    wanted: 0,
    isAway: false,
  };
  const asked: number[] = [];
  const lines: unknown[] = [];
  let second = 0;
  const poller = new FleetPoller({
    inbox: {
      polls: async () => instant(second * 1_000),
      whilePolling: (step) => step(),
      time: async () => instant(second * 1_000),
      store: async () => {},
      list: async () => null,
      deletedSince: async () => new Map(),
      wantList: async () => {
        if (partner.isAway) throw new Error("the database is away");
        partner.wanted += 1;
      },
    },
    feed: new ListFeed(() => second * 1_000),
    partner: {
      list: async () => {
        asked.push(second);
        return partner.answer;
      },
      event: neverAsked,
    },
    pollEvery: minutes(1),
    now: () => instant(second * 1_000),
    monotonic: () => second * 1_000,
    random: () => random,
    log: pino({}, { write: (line) => void lines.push(JSON.parse(line)) }),
  });
  const passes = async (seconds: number): Promise<readonly number[]> => {
    for (let left = seconds; left > 0; left -= 1) {
      await poller.poll(partner.wanted);
      second += 1;
    }
    return asked.splice(0);
  };
  const answers = (): void => {
    partner.answer = { kind: "unchanged", at, skew: null };
  };
  return { poller, partner, passes, answers, logged: () => lines.splice(0) };
}

describe("the process that polls", () => {
  test("the back-off of a failing partner doubles up to five minutes, and a hint does not shorten it", async () => {
    const { partner, passes, answers } = aPoller(0.999);
    const times = await passes(1_200);
    expect(times.slice(0, 8)).toEqual([0, 2, 6, 14, 30, 62, 126, 254]);
    expect(times.slice(8)).toEqual([510, 810, 1110]);
    partner.wanted += 1;
    expect(await passes(200)).toEqual([]);
    answers();
    expect(await passes(70)).toEqual([1410]);
  });

  test("entries of the list that cannot be read are logged once, and again when they change", async () => {
    const { partner, passes, logged } = aPoller(0.5);
    const rejected = {
      kind: "rejected",
      id: eventId("R"),
      path: "[0]",
      reason: "no start",
      raw: "{}",
    } as const;
    const listed = async (...notices: readonly Notice[]): Promise<readonly unknown[]> => {
      const at = instant(1);
      const delivery = { source: "list", at, askedAt: at, complete: true, notices } as const;
      partner.answer = { kind: "read", delivery, skew: null };
      await passes(60);
      return logged();
    };
    const line = {
      msg: "the list has entries that cannot be read: the sites that they concern record them",
      count: 1,
    };
    expect(await listed(notice("E", "n1"), rejected)).toEqual([
      expect.objectContaining({ ...line, entries: [{ event: "R", path: "[0]", reason: "no start" }] }),
    ]);
    expect(await listed(rejected)).toEqual([]);
    expect(await listed(rejected, { ...rejected, id: null })).toEqual([expect.objectContaining(line)]);
    expect(await listed(rejected, { ...rejected, id: null })).toEqual([]);
  });

  test("a hint brings the next list forward, at most once in ten seconds", async () => {
    const { partner, passes, answers } = aPoller(0.5);
    answers();
    expect(await passes(20)).toEqual([0]);
    partner.wanted += 1;
    expect(await passes(5)).toEqual([20]);
    partner.wanted += 1;
    expect(await passes(20)).toEqual([30]);
    expect(await passes(60)).toEqual([90]);
  });
});

test("the list that many sites want at once is requested once for all of them, also where the database was away", async () => {
  const { poller, partner, passes, answers } = aPoller(0.5);
  answers();
  expect(await passes(20)).toEqual([0]);
  for (let site = 0; site < 1_000; site += 1) poller.wantList();
  partner.isAway = true;
  await expect(passes(1)).rejects.toThrow("the database is away");
  partner.isAway = false;
  expect([await passes(5), partner.wanted]).toEqual([[21], 1]);
  expect(await passes(30)).toEqual([]);
});

const timing = {
  pollEvery: minutes(1),
  monotonic: () => 0,
  random: () => 0.5,
  log: pino({ level: "silent" }),
};

describe.skipIf(postgresMissing() !== null)("two processes and one partner", () => {
  const cluster = aCluster();

  test("a list that takes longer than the claim of its process is stored: the claim is renewed meanwhile", async () => {
    const { process, sql } = await aFleetOf(cluster());
    const [one, two] = [process("one", 1_500).inbox, process("two", 1_500).inbox];
    const at = instant(1);
    const answered = Promise.withResolvers<Fetched>();
    const poller = new FleetPoller({
      inbox: one,
      feed: new ListFeed(() => 0),
      partner: { list: () => answered.promise, event: neverAsked },
      now: wallClock,
      ...timing,
    });
    const polled = poller.poll(0);
    const claim = async () => String((await sql("SELECT until FROM fleet_poller"))[0]?.["until"]);
    await waitFor(async () => (await claim()) !== "null");
    const first = await claim();
    await waitFor(async () => (await claim()) !== first);
    expect(await two.polls()).toBeNull();
    const delivery = { source: "list", at, askedAt: at, complete: true, notices: [] } as const;
    answered.resolve({ kind: "read", delivery, skew: null });
    await polled;
    expect(await two.list(-1)).toMatchObject({ number: 1, body: "[]" });
    // The claim ends as usual after that.
    await sql("UPDATE fleet_poller SET until = clock_timestamp() - interval '1 ms'");
    expect(await two.polls()).not.toBeNull();
  });

  test("each process compares its own clock with the partner's, not that of the process that polls", async () => {
    const { process } = await aFleetOf(cluster());
    /** A machine whose clock is ahead of the true time of the partner and the database. */
    const poller = (name: string, aheadMs: number) => {
      const clock = () => instant(Date.now() + aheadMs);
      const feed = new ListFeed(() => 0);
      const list = async (): Promise<Fetched> => {
        const at = clock();
        const delivery = { source: "list", at, askedAt: at, complete: true, notices: [] } as const;
        return { kind: "read", delivery, skew: millis(aheadMs) };
      };
      const site = feed.siteOf([], neverAsked, sameClock);
      const parts = { ...timing, now: clock, inbox: process(name).inbox, feed };
      const own = new FleetPoller({ ...parts, partner: { list, event: neverAsked } });
      const skew = async (): Promise<number> => {
        await own.read(1);
        const fetched = await site.list();
        const skewMs = fetched.kind === "read" ? (fetched.skew ?? Number.NaN) : Number.NaN;
        // Never -0.
        return Math.round(skewMs / 60_000) + 0;
      };
      return { own, skew };
    };
    const [wrong, right, late] = [poller("one", 600_000), poller("two", 0), poller("three", -420_000)];
    await wrong.own.poll(0);
    expect([await wrong.skew(), await right.skew(), await late.skew()]).toEqual([10, 0, -7]);
  });

  test("a delete that arrives while the list is on its way comes with the list, and one from before does not", async () => {
    const { process, sql } = await aFleetOf(cluster());
    const { inbox } = process("one");
    await inbox.put([], [], [deletion("E")]);
    await sql("UPDATE fleet_deleted SET at = at - interval '1 min'");
    const at = instant(1);
    const notices = [notice("E", "n1"), notice("F", "n1")];
    const feed = new ListFeed(() => 0);
    const list = async (): Promise<Fetched> => {
      await inbox.put([], [], [deletion("F")]);
      return {
        kind: "read",
        delivery: { source: "list", at, askedAt: at, complete: true, notices },
        skew: null,
      };
    };
    const partner = { list, event: neverAsked };
    const poller = new FleetPoller({ ...timing, now: wallClock, inbox, feed, partner });
    await poller.poll(0);
    await poller.read(1);
    const fetched = await feed.siteOf(["n1"], neverAsked, sameClock).list();
    const kinds = fetched.kind === "read" ? fetched.delivery.notices.map(({ kind }) => kind) : fetched;
    expect(kinds).toEqual(["deleted", "event", "event"]);
    expect(fetched).toMatchObject({ delivery: { notices: [deletion("F"), {}, {}] } });
  });

  test("beside a process of an earlier release no clock is compared with that of another machine", async () => {
    const { process, sql } = await aFleetOf(cluster());
    const { inbox } = process("one");
    const feed = new ListFeed(() => 0);
    const skewOf = async (): Promise<unknown> => {
      const fetched = await feed.siteOf([], neverAsked, sameClock).list();
      return fetched.kind === "read" ? fetched.skew : fetched;
    };
    const at = instant(1);
    const delivery = { source: "list", at, askedAt: at, complete: true, notices: [] } as const;
    const list = async (): Promise<Fetched> => ({ kind: "read", delivery, skew: millis(600_000) });
    const own = new FleetPoller({
      ...timing,
      now: wallClock,
      inbox,
      feed,
      partner: { list, event: neverAsked },
    });
    // The earlier release stores and reads the skew of the machine that polls.
    await inbox.polls();
    const stored = { kind: "read", at, askedAt: at, complete: true, skew: 600_000 };
    await inbox.store(JSON.stringify(stored), "[]");
    await own.read(1);
    expect(await skewOf()).toBeNull();
    await own.poll(0);
    const [row] = await sql("SELECT answer FROM fleet_poller");
    expect(JSON.parse(String(row?.["answer"]))).toMatchObject(stored);
    await own.read(2);
    expect(await skewOf()).toBeCloseTo(600_000, -4);
  });
});
