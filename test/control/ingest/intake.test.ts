import * as fc from "fast-check";
import { expect, test } from "vitest";

import { type EventNotice, type Intake, intake, latestNotices } from "../../../src/control/ingest/intake.ts";
import type { Notice } from "../../../src/domain/delivery.ts";
import type { CoordinationEvent, KnownEvent } from "../../../src/domain/event.ts";
import { type EventId, eventId, type Instant, instant, minutes, seconds } from "../../../src/domain/units.ts";
import { anEvent, at, live, targetsOf } from "../../support/anEvent.ts";

type Source = "webhook" | "fetch";

/** Takes in one event or notice, at a time of day. */
function take(
  known: KnownEvent | undefined,
  said: CoordinationEvent | Exclude<EventNotice, { kind: "event" }>,
  when = "04:10",
  source: Source = "webhook",
): Intake {
  const notice: EventNotice = "kind" in said ? said : { kind: "event", event: said };
  return intake(known, notice, { source, at: at(when), askedAt: at(when) });
}

const deleted = (revision: string | null = null) =>
  ({ kind: "deleted", id: eventId("EV-7731"), revision: revision === null ? null : at(revision) }) as const;
const gone = { kind: "gone", id: eventId("EV-7731") } as const;
const rev = (revision: string, name = "Evening peak") => anEvent({ revision: at(revision), name });

test("a fetch that was requested before an event arrived by webhook does not withdraw it", () => {
  const known = live(rev("04:00"), { receivedAt: at("04:10"), source: "webhook" });
  const missing = (askedAt: string, when = "04:11") =>
    intake(known, gone, { source: "fetch", at: at(when), askedAt: at(askedAt) }).outcome;
  expect([missing("04:09"), missing("04:10")]).toEqual(["stale", "withdrawn"]);
  // The clock was set back since.
  expect(missing("03:00", "03:01")).toBe("withdrawn");
});

test("an unknown event is new", () => {
  const { outcome, known, warning, fetchById: ask } = take(undefined, rev("04:00"));
  expect([outcome, warning, ask]).toEqual(["new", null, false]);
  expect(known).toEqual(live(rev("04:00"), { receivedAt: at("04:10"), source: "webhook" }));
});

test("F51: a newer revision replaces, an older one is stale and changes nothing", () => {
  const known = live(rev("04:00"));
  expect(take(known, rev("04:05"))).toMatchObject({
    outcome: "changed",
    known: { revision: { event: { revision: at("04:05") } } },
  });
  const stale = take(known, rev("03:55"), "04:10", "fetch");
  expect([stale.outcome, stale.known === known]).toEqual(["stale", true]);
});

test("an event stored by an earlier release keeps its offsets when it comes again, and when it is edited", () => {
  const stored = live(anEvent({ wireStart: "2026-11-21T06:00:00+01:00" }));
  const event = anEvent({ wireStart: "2026-11-21T05:00:00.000Z" });
  for (const source of ["webhook", "fetch"] as const) {
    const again = take({ ...stored, source: "webhook" }, event, "05:10", source);
    expect(again).toMatchObject({ outcome: "repeat", warning: null, fetchById: false });
    expect(again.known).toMatchObject({
      source,
      endings: [],
      revision: { event: { wireStart: "2026-11-21T06:00:00+01:00", hash: event.hash } },
    });
    expect(take(again.known, event, "05:11", source).known).toBe(again.known);
  }
  const wireStartAfter = (changes: Parameters<typeof anEvent>[0]) => {
    const edited = anEvent({ wireStart: "2026-11-21T05:00:00.000Z", revision: at("04:05"), ...changes });
    const { known } = take(stored, edited, "05:10");
    return known?.kind === "live" ? known.revision.event.wireStart : null;
  };
  expect(wireStartAfter({ duration: minutes(5) })).toBe("2026-11-21T06:00:00+01:00");
  expect(wireStartAfter({ randomizeStart: minutes(5) })).toBe("2026-11-21T05:00:00.000Z");
  expect(wireStartAfter({ start: at("05:01"), wireStart: "2026-11-21T05:01:00.000Z" })).toBe(
    "2026-11-21T05:01:00.000Z",
  );
});

test("F50: the same event again is a repeat and changes nothing, by webhook or fetch", () => {
  const known = live(rev("04:00"));
  for (const source of ["webhook", "fetch"] as const) {
    const again = take(known, rev("04:00"), "04:10", source);
    expect([again.outcome, again.known === known]).toEqual(["repeat", true]);
  }
});

test("F50: a fetch that repeats a webhook marks the event as fetched", () => {
  const known = live(rev("04:00"), { source: "webhook" });
  expect(take(known, rev("04:00"), "04:10", "fetch")).toMatchObject({
    outcome: "repeat",
    known: { ...known, source: "fetch" },
  });
});

test("F51: same time, other content: a fetch wins over a webhook, with a warning", () => {
  const known = live(rev("04:00", "by webhook"), { source: "webhook" });
  const fetched = take(known, rev("04:00", "fetched"), "04:10", "fetch");
  expect(fetched).toMatchObject({
    outcome: "changed",
    fetchById: false,
    known: { revision: { event: { name: "fetched" } }, source: "fetch" },
  });
  expect(fetched.warning).toMatch(/EV-7731 came with the same modification time.*what was fetched wins/);
});

test("F51: same time, other content by webhook after a fetch: the fetched content stays until a fetch by id decides, with a warning", () => {
  const known = live(rev("04:00"));
  const later = take(known, rev("04:00", "other"));
  expect([later.outcome, later.known === known, later.fetchById]).toEqual(["stale", true, true]);
  expect(later.warning).toMatch(/what was fetched before stays/);
});

test("F51: between two webhooks with the same time a fetch by id decides", () => {
  const known = live(rev("04:00"), { source: "webhook" });
  const second = take(known, rev("04:00", "other"));
  expect([second.known === known, second.fetchById]).toEqual([true, true]);
  expect(second.warning).toMatch(/a fetch decides/);
});

test("an explicit delete withdraws, and leaves the highest revision as its tombstone", () => {
  for (const notice of [deleted("04:00"), gone]) {
    expect(take(live(rev("04:00")), notice)).toMatchObject({
      outcome: "withdrawn",
      known: { kind: "withdrawn", watermark: at("04:00"), receivedAt: at("04:10") },
    });
  }
  expect(take(live(rev("04:00")), deleted("04:05"))).toMatchObject({ known: { watermark: at("04:05") } });
});

test("F51: a delete that is older than the known revision is stale", () => {
  const known = live(rev("04:05"));
  const late = take(known, deleted("04:00"));
  expect([late.outcome, late.known === known]).toEqual(["stale", true]);
});

test("a delete without a revision changes nothing: it may be a replay, and a fetch by id decides", () => {
  const known = live(rev("04:00"));
  for (const before of [known, undefined]) {
    const unproven = take(before, deleted());
    expect([unproven.outcome, unproven.known, unproven.fetchById]).toEqual(["unproven", before, true]);
  }
  expect(take(known, gone, "04:11", "fetch").outcome).toBe("withdrawn");
});

test("a withdrawal of an unknown event leaves a tombstone: earlier revisions arrive too late", () => {
  const askedAt = at("04:09");
  const confirmed = intake(undefined, gone, { source: "fetch", at: at("04:10"), askedAt });
  expect([confirmed.outcome, confirmed.known]).toEqual([
    "withdrawn",
    {
      kind: "withdrawn",
      id: "EV-7731",
      watermark: askedAt,
      anchor: null,
      receivedAt: at("04:10"),
      deletedAt: at("04:10"),
      endings: [],
      descriptors: 0,
    },
  ]);
  expect(take(confirmed.known, rev("04:00"), "04:11").outcome).toBe("stale");
  const dated = take(undefined, deleted("04:05")).known;
  expect([take(dated, rev("04:05")).outcome, take(dated, rev("04:06")).outcome]).toEqual(["stale", "new"]);
});

test("a second delete only raises the tombstone", () => {
  const { known } = take(live(rev("04:00")), deleted("04:00"));
  const same = take(known, deleted("04:00"));
  expect([same.outcome, same.known === known]).toEqual(["repeat", true]);
  expect(take(known, deleted())).toMatchObject({ outcome: "repeat", known: { watermark: at("04:00") } });
  expect(take(known, deleted("04:07"))).toMatchObject({
    outcome: "repeat",
    known: { watermark: at("04:07") },
  });
});

test("a 404 for a withdrawn event changes nothing", () => {
  const { known } = take(live(rev("04:00")), deleted("04:00"));
  expect(take(known, gone)).toMatchObject({ outcome: "repeat", known });
});

test("only a newer revision revives a withdrawn event by webhook", () => {
  const { known } = take(live(rev("04:00")), deleted("04:00"), "04:10");
  expect(take(known, rev("04:00"), "04:11").outcome).toBe("stale");
  expect(take(known, rev("04:01"), "04:11").outcome).toBe("new");
});

test("a fetch requested after the withdrawal revives the event, one in flight does not", () => {
  const { known } = take(live(rev("04:00")), deleted("04:00"), "04:10");
  const fetched = (askedAt: string) =>
    intake(
      known,
      { kind: "event", event: rev("04:00") },
      { source: "fetch", at: at("04:12"), askedAt: at(askedAt) },
    );
  expect(fetched("04:09").outcome).toBe("stale");
  expect(fetched("04:10").outcome).toBe("new");
});

test("F51: a repeated delete is final for fetches requested before the second one", () => {
  const first = take(live(rev("04:00")), deleted("04:00"), "04:10").known;
  for (const again of [deleted("04:00"), deleted()]) {
    const second = take(first, again, "04:12").known;
    expect(second).toMatchObject({ kind: "withdrawn", receivedAt: at("04:10"), deletedAt: at("04:12") });
    const fetched = (askedAt: string) =>
      intake(
        second,
        { kind: "event", event: rev("04:00") },
        { source: "fetch", at: at("04:13"), askedAt: at(askedAt) },
      ).outcome;
    expect([fetched("04:11"), fetched("04:12")]).toEqual(["stale", "new"]);
  }
});

test("F22: an event that returns by a clock behind its withdrawal was gone until then", () => {
  const cut = take(live(rev("04:00")), deleted("04:00"), "05:30").known;
  const back = take(cut, rev("04:01"), "01:00").known;
  expect(back).toMatchObject({ receivedAt: at("01:00"), goneUntil: at("05:30") });
  // It stays so through edits and a second withdrawal, until the clock is right.
  const edited = take(back, rev("04:02"), "01:10").known;
  expect(edited).toMatchObject({ goneUntil: at("05:30") });
  const again = take(edited, deleted("04:02"), "01:20").known;
  expect(again).toMatchObject({ deletedAt: at("01:20"), goneUntil: at("05:30") });
  expect(take(again, rev("04:03"), "01:30").known).toMatchObject({ goneUntil: at("05:30") });
  for (const known of [cut, again, edited])
    expect(take(known, rev("04:04"), "05:30").known).not.toHaveProperty("goneUntil");
});

test("F22: an edit by a clock at 1970 counts from the receipt before it, unless a clock that was ahead dated that", () => {
  const first = live(rev("04:00"), { receivedAt: at("05:30") });
  const edit = { kind: "event", event: rev("04:01") } as const;
  const edited = (now: Instant) => intake(first, edit, { source: "fetch", at: now, askedAt: now }).known;
  expect(edited(instant(100_000))).toMatchObject({ goneUntil: at("05:30") });
  expect(edited(at("05:00"))).not.toHaveProperty("goneUntil");
  expect(edited(at("06:00"))).not.toHaveProperty("goneUntil");
});

test("a start of 'now' is the first receipt, and stays it in later revisions", () => {
  const first = take(undefined, anEvent({ start: "now", revision: at("04:00") }), "04:10").known;
  expect(first).toMatchObject({ revision: { start: at("04:10") } });
  const second = take(first, anEvent({ start: "now", revision: at("04:20") }), "04:21").known;
  expect(second).toMatchObject({ revision: { start: at("04:10") } });
});

test("a start of 'now' stays the first receipt when the event is withdrawn and comes back (F53)", () => {
  const now = anEvent({ start: "now", revision: at("04:00") });
  const first = take(undefined, now, "04:10").known;
  const cut = take(first, deleted("04:00"), "04:20").known;
  const back = take(cut, now, "04:30", "fetch");
  expect(back).toMatchObject({ outcome: "new", known: { revision: { start: at("04:10") } } });
  const again = take(take(back.known, gone, "04:40", "fetch").known, now, "04:50", "fetch").known;
  expect(again).toMatchObject({ revision: { start: at("04:10") } });
  const timed = take(take(cut, rev("04:30"), "04:30").known, deleted("04:30"), "04:31").known;
  expect(timed).toMatchObject({ kind: "withdrawn", anchor: null });
});

test("a start of 'now' is the receipt again where the event is created again after its withdrawal (F53)", () => {
  const first = take(undefined, anEvent({ start: "now", revision: at("04:00") }), "04:10").known;
  const cut = take(first, deleted("04:05"), "04:20").known;
  const anew = take(cut, anEvent({ start: "now", revision: at("04:29") }), "04:30").known;
  expect(anew).toMatchObject({ revision: { start: at("04:30") } });
});

test("a start that becomes 'now' is the receipt of that revision, and one that becomes a time is that time", () => {
  const now = take(live(rev("04:00")), anEvent({ start: "now", revision: at("04:20") }), "04:21").known;
  expect(now).toMatchObject({ revision: { start: at("04:21") } });
  expect(take(now, rev("04:30"), "04:31")).toMatchObject({ known: { revision: { start: at("05:00") } } });
});

const endingsAfter = (when: string, event = rev("04:00")) =>
  take(live(event), anEvent({ revision: at("07:59") }), when).known?.endings.map((ending) => ending.at);

test("F52: a revision that may have been acting is kept as an ending, another is forgotten", () => {
  expect(endingsAfter("04:59")).toEqual([]);
  expect(endingsAfter("05:00")).toEqual([at("05:00")]);
  expect(endingsAfter("06:09")).toEqual([at("06:09")]);
  expect(endingsAfter("06:10")).toEqual([]);
  expect(endingsAfter("05:30", anEvent({ ask: { kind: "unknown", payloadType: "X" } }))).toEqual([]);
});

test("endings are kept for ten minutes, until no remainder is possible", () => {
  const cut = take(live(rev("04:00")), deleted("04:00"), "05:30").known;
  expect(cut?.endings).toHaveLength(1);
  expect(take(cut, rev("05:31"), "05:39").known?.endings).toHaveLength(1);
  expect(take(cut, rev("05:31"), "05:40").known?.endings).toEqual([]);
});

test("a revision after an ending is kept with it, as it may have taken over", () => {
  const cut = take(
    live(rev("04:00")),
    anEvent({ revision: at("05:30"), duration: minutes(0) }),
    "05:30",
  ).known;
  const then = take(cut, anEvent({ revision: at("05:31"), start: at("09:00") }), "05:31").known;
  expect(take(then, rev("05:32"), "05:32").known?.endings.map((ending) => ending.at)).toEqual([
    at("05:30"),
    at("05:31"),
    at("05:32"),
  ]);
});

test("when the first endings are dropped, the next counts as received with them if its windows begin as theirs", () => {
  const { targets } = rev("04:00");
  const receiptAfter = (changes: Parameters<typeof anEvent>[0], gap = minutes(0)) => {
    const edited = take(
      live(rev("04:00")),
      anEvent({ revision: at("05:10"), targets, ...changes }),
      "05:10",
    ).known;
    const back =
      edited?.kind === "live" ? { ...edited, receivedAt: instant(edited.receivedAt + gap) } : edited;
    // Ten minutes later nothing of the first revision is in force any more.
    return take(back, anEvent({ revision: at("05:30"), targets }), "05:30").known?.endings[0]?.receivedAt;
  };
  expect(receiptAfter({ ask: { kind: "current", level: 8 } })).toBe(at("04:00"));
  expect(receiptAfter({}, minutes(1))).toBe(at("05:11"));
  for (const change of [
    { start: at("05:01") },
    { randomizeStart: minutes(5) },
    { targets: targetsOf("veh-2") },
  ])
    expect(receiptAfter(change)).toBe(at("05:10"));
});

test("F59: an event that is edited every second keeps a bounded number of endings", () => {
  let known: KnownEvent | undefined = live(rev("04:00"));
  for (let edit = 1; edit <= 100; edit += 1) {
    const event = anEvent({ revision: instant(at("05:10") + seconds(edit)) });
    known = intake(
      known,
      { kind: "event", event },
      { source: "webhook", at: event.revision, askedAt: event.revision },
    ).known;
  }
  expect(known?.endings).toHaveLength(32);
});

/** What the partner did to one event, oldest first: revisions with one or two contents, and deletes. */
const history = fc
  .array(
    fc.record({
      kind: fc.constantFrom("event", "event", "delete"),
      contents: fc.integer({ min: 1, max: 2 }),
    }),
    {
      minLength: 1,
      maxLength: 6,
    },
  )
  .chain((steps) => fc.record({ steps: fc.constant(steps), lost: fc.array(fc.nat(5)) }));

function partnerSays(
  id: string,
  { steps, lost }: { steps: readonly { kind: string; contents: number }[]; lost: readonly number[] },
): { readonly notices: readonly Notice[]; readonly truth: CoordinationEvent | null } {
  let truth: CoordinationEvent | null = null;
  const notices = steps.flatMap(({ kind, contents }, index): Notice[] => {
    const revision = instant(index + 1);
    if (kind === "delete") {
      truth = null;
      return [{ kind: "deleted", id: eventId(id), revision }];
    }
    const variants = Array.from({ length: contents }, (_, n) =>
      anEvent({ id, revision, name: `${index}/${n}` }),
    );
    truth = variants.at(-1) ?? null;
    const said = variants.map((event): Notice => ({ kind: "event", event }));
    return lost.includes(index) && index < steps.length - 1 ? [] : said;
  });
  return { notices, truth };
}

function after(deliveries: readonly Notice[], list: readonly CoordinationEvent[]): Map<EventId, string> {
  const known = new Map<EventId, KnownEvent>();
  const takeIn = (notice: Notice, source: Source, index: number): void => {
    if (notice.kind === "rejected") return;
    const id = notice.kind === "event" ? notice.event.id : notice.id;
    const when = instant(1_000 + index);
    const next = intake(known.get(id), notice, { source, at: when, askedAt: when }).known;
    if (next !== undefined) known.set(id, next);
  };
  deliveries.forEach((notice, index) => takeIn(notice, "webhook", index));
  const listed = list.map((event): Notice => ({ kind: "event", event }));
  for (const notice of latestNotices(listed)) takeIn(notice, "fetch", deliveries.length);
  const live = [...known.values()].flatMap((each) =>
    each.kind === "live" ? [[each.id, each.revision.event.hash] as const] : [],
  );
  return new Map(live);
}

test("F50 F51: any order and duplication of deliveries, then one complete fetch, gives what the partner has", () => {
  fc.assert(
    fc.property(
      fc.array(history, { minLength: 1, maxLength: 3 }).chain((histories) => {
        const each = histories.map((steps, index) => partnerSays(`EV-${index}`, steps));
        const notices = each.flatMap((one) => one.notices);
        return fc.record({
          truth: fc.constant(each.flatMap(({ truth }) => truth ?? [])),
          notices: fc.constant(notices),
          repeats: fc.array(fc.nat(Math.max(0, notices.length - 1)), { maxLength: 6 }),
          seed: fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })),
        });
      }),
      ({ truth, notices, repeats, seed }) => {
        const deliveries = [...notices, ...repeats.flatMap((index) => notices[index] ?? [])]
          .map((notice) => ({ notice, place: seed.next().value }))
          .toSorted((a, b) => a.place - b.place)
          .map(({ notice }) => notice);
        expect(after(deliveries, truth)).toEqual(new Map(truth.map(({ id, hash }) => [id, hash])));
      },
    ),
    { numRuns: 2_000 },
  );
});

const AHEAD = "2026-11-22T04:30:00Z";
const dated = (revision: string, name: string) => anEvent({ revision: instant(Date.parse(revision)), name });

test("a revision dated more than a day ahead is replaced by what a later fetch returns, whatever its date", () => {
  const known = take(undefined, dated(AHEAD, "wrong date")).known;
  const fetched = take(known, rev("04:20", "edited"), "04:20", "fetch");
  expect([fetched.outcome, fetched.warning]).toEqual([
    "changed",
    expect.stringContaining("more than a day ahead"),
  ]);
  // A fetch requested before the webhook came shows what was.
  expect(take(known, rev("04:20", "edited"), "04:05", "fetch").outcome).toBe("stale");
  // The date is right a day later.
  expect(take(known, rev("04:20", "edited"), "23:59", "fetch").outcome).toBe("stale");
});

test("a webhook with an earlier date than one that lies far ahead is decided by a fetch", () => {
  const known = take(undefined, dated(AHEAD, "wrong date")).known;
  const edit = take(known, rev("04:20", "edited"), "04:20");
  expect([edit.outcome, edit.known === known, edit.fetchById]).toEqual(["stale", true, true]);
  const decided = take(known, rev("04:20", "edited"), "04:21", "fetch").known;
  // The partner sends the wrong date once more.
  const again = take(decided, dated(AHEAD, "wrong date"), "04:22");
  expect([again.outcome, again.fetchById]).toEqual(["changed", true]);
  expect(take(known, dated("2026-11-22T05:30:00Z", "next"), "04:22").fetchById).toBe(false);
  expect(take(decided, dated(AHEAD, "wrong date"), "04:22", "fetch").fetchById).toBe(false);
});

test("a delete with an earlier date than one that lies far ahead is decided by a fetch, and so is an event after it", () => {
  const known = take(undefined, dated(AHEAD, "wrong date")).known;
  const deletion = take(known, deleted("04:20"), "04:20");
  expect([deletion.outcome, deletion.fetchById]).toEqual(["unproven", true]);
  const tombstone = take(known, gone, "04:21", "fetch").known;
  const anew = take(tombstone, rev("04:22"), "04:22");
  expect([anew.outcome, anew.fetchById]).toEqual(["stale", true]);
  expect(take(tombstone, rev("04:22"), "04:22", "fetch").outcome).toBe("new");
  expect(take(tombstone, rev("04:22"), "04:20", "fetch")).toMatchObject({
    outcome: "stale",
    fetchById: false,
  });
});
