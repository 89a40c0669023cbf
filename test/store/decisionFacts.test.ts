import * as fc from "fast-check";
import { expect, test } from "vitest";

import { type AuditEntry, auditEntry, type Json } from "../../src/domain/audit.ts";
import { chargerId, eventId, vehicleId } from "../../src/domain/units.ts";
import { shownFacts, shownWords, storedFacts, storedWords } from "../../src/store/decisionFacts.ts";
import { aDirectory, opened } from "./sqlite/state.ts";
import { NOON } from "./sqlite/words.ts";

const CLAIM = {
  event: "EV-1",
  priority: 5,
  asked: "10 A",
  from: "2026-11-21T12:00:00.000Z",
  until: "2026-11-21T13:00:00.000Z",
  offsetMs: 0,
  spreadMs: 0,
  cutAt: null,
};

/** Facts of the decision of a fan-out. */
const FACTS = {
  words: "c0 (v0) to 10 A",
  cause: "event",
  until: CLAIM.until,
  held: null,
  winner: CLAIM,
  overruled: [],
  overruledCount: 0,
  limits: [],
  occupant: { kind: "vehicle", vehicle: "v0", source: "fixed" },
  hold: null,
  told: { kind: "current", value: 10, unit: "A" },
};

const decision = (facts: Json, words = FACTS.words): AuditEntry =>
  auditEntry("decision", NOON, words, {
    charger: chargerId("c0"),
    vehicle: vehicleId("v0"),
    event: eventId("EV-1"),
    command: "7-1",
    facts,
  });

/** Read back, as the store does it. */
const readBack = (entry: AuditEntry): Json =>
  shownFacts({ ...entry, facts: JSON.parse(JSON.stringify(storedFacts(entry))) });

test("the stored facts of a decision do without what the row has and what is usual", () => {
  const { words: _words, ...rest } = FACTS;
  expect(storedFacts(decision(FACTS))).toEqual({
    v: 2,
    cause: "event",
    winner: { priority: 5, asked: "10 A", from: CLAIM.from, until: CLAIM.until },
    occupant: "fixed",
    told: FACTS.told,
  });
  const ended = { ...rest, words: FACTS.words, cause: "ended", winner: null, until: null };
  const release = decision({ ...ended, told: { kind: "release", value: null, unit: null } });
  expect(storedFacts(release)).toEqual({ v: 2, cause: "ended", occupant: "fixed", told: "release" });
  expect(readBack(release)).toEqual(release.facts);
});

test("a decision reads as it was written, member by member in the same order, whatever its facts are", () => {
  const claim = fc.record({
    event: fc.constantFrom("EV-1", "EV-2"),
    priority: fc.option(fc.nat(9)),
    asked: fc.string(),
    from: fc.constant(CLAIM.from),
    until: fc.constantFrom(CLAIM.until, CLAIM.from),
    offsetMs: fc.nat(2),
    spreadMs: fc.nat(2),
    cutAt: fc.option(fc.constant(CLAIM.from)),
  });
  const occupant = fc.oneof(
    fc.record({
      kind: fc.constant("vehicle"),
      vehicle: fc.constantFrom("v0", "v1", null),
      source: fc.constantFrom("fixed", "telemetry", null),
    }),
    fc.record({ kind: fc.constant("unknown"), said: fc.string() }),
    fc.constantFrom({ kind: "nobody" }, "nobody"),
  );
  const told = fc.oneof(
    fc.record({
      kind: fc.constantFrom("release", "pause", null),
      value: fc.constant(null),
      unit: fc.constant(null),
    }),
    fc.record({ kind: fc.constant("current"), value: fc.nat(32), unit: fc.constant("A"), phases: fc.nat(3) }),
    fc.constantFrom("release", null),
  );
  const reason = fc.record(
    {
      words: fc.constantFrom(FACTS.words, "other"),
      cause: fc.constantFrom("event", "ended"),
      until: fc.option(fc.constantFrom(CLAIM.until, CLAIM.from)),
      held: fc.option(fc.record({ by: fc.string(), until: fc.string() })),
      winner: fc.option(claim),
      overruled: fc.array(claim, { maxLength: 3 }),
      overruledCount: fc.nat(7),
      limits: fc.array(fc.record({ by: fc.string() }), { maxLength: 2 }),
      occupant,
      hold: fc.option(fc.record({ since: fc.string() })),
      told,
    },
    { noNullPrototype: true },
  );
  const facts = fc.oneof(
    reason,
    reason.map(({ hold: _hold, ...others }) => others),
    reason.map((whole) => ({ ...whole, short: { energyWh: 1 } })),
    fc.jsonValue() as fc.Arbitrary<Json>,
  );
  fc.assert(
    fc.property(facts, (each) => {
      const plain: Json = JSON.parse(JSON.stringify(each));
      // Facts that claim to be a short form are none of ours.
      fc.pre(typeof plain !== "object" || plain === null || !("v" in plain) || Array.isArray(plain));
      expect(JSON.stringify(readBack(decision(plain)))).toBe(JSON.stringify(plain));
    }),
    { numRuns: 1000 },
  );
});

test("a decision of the record shows all facts, its hash covers the stored ones, and rows of earlier versions stay as they are", async () => {
  const directory = aDirectory();
  const { store } = opened(directory);
  const earlier = { ...FACTS, overruledCount: undefined };
  const old: Json = JSON.parse(JSON.stringify(earlier));
  store.write([decision(FACTS), decision(old)].map((entry) => ({ kind: "audit", entry })));
  await store.durable();
  const rows = await store.audit({});
  expect(rows.map(({ facts }) => facts)).toEqual([FACTS, old]);
  expect(await store.verify()).toMatchObject({ ok: true, rows: 2 });
  const record = await store.eventRows(eventId("EV-1"), NOON);
  expect(record).toMatchObject({ ok: true, seqs: [1, 2] });
  expect(await store.recordRows([1, 2])).toMatchObject([{ facts: FACTS }, { facts: old }]);
});

test("the sentence of an outcome is stored without charger and command, which its row has, and read with them", () => {
  const outcome = auditEntry("outcome", NOON, "c0 7-1 followed: draws 10 A", {
    charger: chargerId("c0"),
    command: "7-1",
  });
  const stored = { ...outcome, words: storedWords(outcome) };
  expect(stored.words).toBe(" followed: draws 10 A");
  expect(shownWords(stored)).toBe(outcome.words);
  // A row of an earlier version has the whole sentence.
  expect(shownWords(outcome)).toBe(outcome.words);
});

test("a sentence of another form is stored in full", () => {
  const about = { charger: chargerId("c0"), command: "7-1" };
  for (const row of [
    auditEntry("outcome", NOON, "c1 7-1 followed", about),
    auditEntry("outcome", NOON, "c0 7-11 followed", about),
    auditEntry("outcome", NOON, "21 commands acknowledged by the broker"),
    auditEntry("decision", NOON, "c0 7-1 to 10 A", about),
  ]) {
    expect(storedWords(row)).toBe(row.words);
    expect(shownWords(row)).toBe(row.words);
  }
});
