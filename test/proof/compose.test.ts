import { expect, test } from "vitest";

import type { AuditEntry, RecordRow } from "../../src/domain/audit.ts";
import type { ProofInput } from "../../src/proof/compose.ts";
import { chargerId, eventId, instant, millis, minutes, seconds, vehicleId } from "../../src/domain/units.ts";
import { aContext } from "../support/aCharger.ts";
import { anEvent, at, live, targetsOf, withdrawn } from "../support/anEvent.ts";
import { anEntry, CLAIM, factsOf, recordOf, rowsOf, STORY } from "../support/aProof.ts";
import { charging, from } from "../support/aReading.ts";

/** `decided 16 A [3]: words`, of one section or of one kind. */
function told(wanted: string, changes: Partial<ProofInput> = {}): readonly string[] {
  return factsOf(changes)
    .filter(({ section, what }) => section === wanted || what === wanted)
    .map(({ what, from, until, value, unit, words, seq }) =>
      [
        what,
        ...(value === null ? [] : [value]),
        ...(unit === null ? [] : [unit]),
        ...[from, until].flatMap((moment) => (moment === null ? [] : [moment.slice(11, 16)])),
        ...(words === null ? [] : [`"${words}"`]),
        ...(seq === null ? [] : [`[${seq}]`]),
      ].join(" "),
    );
}

const of = (...entries: readonly AuditEntry[]): Partial<ProofInput> => recordOf(rowsOf(entries));

test("a proof names its event and site, its time of creation and its period", () => {
  expect(told("proof").slice(1)).toEqual([
    'event "EV-7731"',
    'of site "depot"',
    'time zone "Europe/Oslo"',
    "made 07:00",
    "period 04:00 06:02",
  ]);
});

test("every revision is listed with receipt time, source and row", () => {
  expect(told("asked")).toEqual([
    'new 04:00 "event EV-7731 is new (webhook): 16 A" [1]',
    'source "webhook" [1]',
    "modified 04:00 [1]",
    "level 16 A [1]",
    "period 05:00 06:00 [1]",
    "random start within 600 s [1]",
    "priority 1 [1]",
    "targets that are not ours 2 vehicles [1]",
    'report asked for "USAGE (DIRECT_READ)" [1]',
    "content [1]",
  ]);
});

test("a withdrawal, a contradiction, a rejected version and an unknown payload are listed too", () => {
  const asked = told(
    "asked",
    of(
      anEntry("04:00", "event", "is new", {
        outcome: "new",
        start: "2026-11-21T05:00:00.000Z",
        durationMs: 8.64e15,
        ask: { kind: "unknown", payloadType: "Unknown" },
      }),
      anEntry("04:10", "event", "changed", {
        outcome: "changed",
        start: "2026-11-21T05:00:00.000Z",
        durationMs: 60_000,
        ask: { kind: "power", level: 7.4 },
      }),
      anEntry("04:20", "event", "came twice", { warning: "came twice" }),
      anEntry("04:30", "rejected", "was set aside", { path: "duration" }),
      anEntry("04:40", "event", "was withdrawn (list)", { outcome: "withdrawn", source: "list" }),
    ),
  );
  expect(asked.filter((line) => !/^(modified|period|random|content|priority)/.test(line))).toEqual([
    'new 04:00 "is new" [1]',
    'level "payload type Unknown" [1]',
    'changed 04:10 "changed" [2]',
    "level 7.4 kW [2]",
    'warning 04:20 "came twice" [3]',
    'rejected 04:30 "was set aside" [4]',
    'withdrawn 04:40 "was withdrawn (list)" [5]',
    'source "list" [5]',
  ]);
  expect(asked).toContain('priority "none" [1]');
});

test("a vehicle has its window, every step of its commands, its figures and its outcome", () => {
  expect(told("vehicle")).toEqual([
    'name "Bus 214"',
    'random start offset 0 s "of at most 0 s, derived from event, vehicle and the site\'s key"',
    'window 05:00 06:00 "16 A"',
    'decided 16 A 05:02 "bay-01 (Bus 214) to 16 A" [3]',
    "sent 05:02 [4]",
    'acknowledged 05:03 "acknowledged by the broker after 12 ms" [4]',
    'accepted 05:04 "accepted by the charger" [5]',
    'followed 05:05 "followed: draws 15.8 A" [6]',
    'released 06:02 "bay-01 released: event EV-7731 has ended" [7]',
    'end "followed"',
    'energy 11 kWh 05:00 06:00 "by the charger\'s meter: complete"',
    'mean power 11 kW 05:00 06:00 "over time, complete"',
    'peak power 11 kW 05:00 06:00 "of single readings, complete"',
    'baseline kWh 05:00 06:00 "no comparable days"',
  ]);
  expect(told("summary")).toEqual(["vehicles 1", "followed 1 vehicles"]);
});

test("gaps are listed with their length, and figures over them are marked", () => {
  const readings = [
    ...charging(from("05:00", "05:20"), 6000),
    ...charging(from("05:40", "06:00"), 6000, { register: 104_000 }),
  ];
  const lines = told("vehicle", { evidence: () => ({ readings: readings, leftOut: 0 }) });
  expect(lines).toContain('gap 1200 s 05:20 05:40 "no reading"');
  expect(lines).toContain('mean power 6 kW 05:00 06:00 "over time, with 1 gap"');
});

test("without readings the figures are marked as missing", () => {
  const lines = told("vehicle", { evidence: () => ({ readings: [], leftOut: 0 }) });
  expect(lines).toContain('mean power kW 05:00 06:00 "no readings"');
  expect(lines).toContain('energy kWh 05:00 06:00 "by the charger\'s meter: MISSING: no readings"');
});

test("readings that another program changed are counted beside the figures that lack them", () => {
  expect(told("readings left out")).toEqual([]);
  expect(told("readings left out", { evidence: () => ({ readings: [], leftOut: 3 }) })).toEqual([
    expect.stringContaining("3 messages"),
  ]);
});

test("the baseline has the number of days in its mean", () => {
  const day = minutes(24 * 60);
  const shifted = (days: number) => ({
    from: instant(at("05:00") - days * day),
    until: instant(at("06:00") - days * day),
  });
  const readings = [...charging(from("05:00", "06:00"), 6000), ...charging(shifted(7), 9000)];
  expect(told("baseline", { evidence: () => ({ readings: readings, leftOut: 0 }) })).toEqual([
    'baseline 9 kWh 05:00 06:00 "mean of the same hours of 1 comparable day"',
  ]);
  const twice = [...readings, ...charging(shifted(6), 7000)];
  expect(told("baseline", { evidence: () => ({ readings: twice, leftOut: 0 }) })).toEqual([
    'baseline 8 kWh 05:00 06:00 "mean of the same hours of 2 comparable days"',
  ]);
});

test("an open window is measured up to now, a future window not at all", () => {
  expect(told("energy", { now: at("05:30") })).toEqual([
    'energy 5.5 kWh 05:00 05:30 "by the charger\'s meter: complete"',
  ]);
  expect(told("energy", { now: at("05:00") })).toEqual([]);
});

test("an event that only the record has gets its window from the decisions", () => {
  const cut = { ...CLAIM, asked: "10 A", cutAt: "2026-11-21T05:30:00.000Z" };
  const later = anEntry("05:31", "decision", "to 10 A", { winner: cut, overruled: [] });
  const odd = anEntry("05:32", "decision", "to 9 A", { winner: { event: "EV-7731" }, overruled: [] });
  const facts = { known: null, ...of(...STORY, later, odd) };
  expect(told("window", facts)).toEqual([
    'window 05:02 06:02 "16 A"',
    'window 05:02 06:02 "10 A; the event was withdrawn or changed at 2026-11-21T05:30:00.000Z"',
  ]);
  expect(told("random start offset", facts)[0]).toBe(
    'random start offset 137 s "of at most 600 s, derived from event, vehicle and the site\'s key"',
  );
  expect(told("period", { known: null })).toContain("period 04:00 06:02");
});

test("a vehicle without any window has no figures", () => {
  const news = anEntry("05:03", "outcome", "acknowledged", { progress: "acknowledged" });
  expect(told("vehicle", { known: null, ...of(news) })).toEqual([
    'name "Bus 214"',
    'acknowledged 05:03 "acknowledged" [1]',
    'end "nothing done"',
  ]);
});

test("a withdrawn event shows the shortened windows", () => {
  const event = anEvent();
  const ending = { revision: { event, start: at("05:00") }, at: at("05:30") };
  const [window] = told("window", { known: withdrawn(event, at("05:30"), [ending]) });
  expect(window).toMatch(/"16 A; the event was withdrawn or changed at 2026-11-21T05:30:00.000Z"$/);
});

const decided = (overruled: boolean): AuditEntry => ({
  ...anEntry("05:02", "decision", "to 8 A", {
    winner: overruled ? { ...CLAIM, event: "EV-9" } : CLAIM,
    overruled: overruled ? [CLAIM] : [],
    told: { kind: "current", value: 8, unit: "A" },
  }),
  ...(overruled ? { event: eventId("EV-9") } : {}),
});

test("an unknown kind of outcome does not affect the vehicle", () => {
  expect(told("end", of(outcome("sideways")))).toEqual(['end "nothing done"']);
});
const outcome = (progress: string | null, more: object = {}): AuditEntry =>
  anEntry("05:03", "outcome", "came so far", { ...(progress === null ? {} : { progress }), ...more });
const missed = anEntry("06:10", "missed", "nobody looked", {
  from: "2026-11-21T05:00:00.000Z",
  until: "2026-11-21T06:00:00.000Z",
});

test.each([
  ["followed", [decided(false), outcome("followed")]],
  ["not followed", [decided(false), outcome("followed"), outcome("notFollowed", { alarm: true })]],
  ["refused", [decided(false), outcome("refused")]],
  ["not sent", [decided(false), outcome("failed")]],
  ["not sent", [decided(false), outcome(null, { sent: false })]],
  ["sent, not measured", [decided(false), outcome("acknowledged")]],
  ["sent, not measured", [decided(false), outcome(null, { sent: true })]],
  ["decided, not sent", [decided(false)]],
  ["overruled", [decided(true)]],
  ["missed", [missed]],
  ["nothing done", []],
] as const)("a vehicle ends as %s", (end, entries) => {
  const news = STORY.slice(0, 1);
  expect(told("end", of(...news, ...entries))).toEqual([`end "${end}"`]);
  expect(told("summary", of(...news, ...entries))).toContain(`${end} 1 vehicles`);
});

test("a missed window has its times, an overruled one the winner", () => {
  expect(told("missed", of(missed))).toContain('missed 05:00 06:00 "nobody looked" [1]');
  expect(told("missed", of({ ...missed, facts: null }))).toContain('missed 06:10 "nobody looked" [1]');
  expect(told("overruled", of(decided(true)))).toContain('overruled 8 A 05:02 "to 8 A" [1]');
});

const crowded = (moment: string): AuditEntry => ({
  ...anEntry(moment, "decision", "to 8 A", {
    winner: { ...CLAIM, event: "EV-9" },
    overruled: Array.from({ length: 5 }, () => ({ ...CLAIM, event: "EV-8" })),
    overruledCount: 459,
    told: { kind: "current", value: 8, unit: "A" },
  }),
  event: eventId("EV-9"),
});

test("a decision that counts the event without its name has overruled it", () => {
  const news = STORY.slice(0, 1);
  expect(told("end", of(...news, crowded("05:02")))).toEqual(['end "overruled"']);
  expect(told("overruled", of(...news, crowded("06:30")))).toEqual([]);
  expect(told("overruled", of(...news, { ...crowded("05:02"), vehicle: null }))).toEqual([]);
  const elsewhere = { ...crowded("05:02"), vehicle: vehicleId("veh-9") };
  expect(told("overruled", of(...news, elsewhere))).toEqual([]);
});

test("vehicles are sorted by id, those that only the record has included", () => {
  const other = { ...decided(false), vehicle: vehicleId("veh-1"), charger: chargerId("bay-02") };
  const known = live(anEvent({ targets: targetsOf("veh-214", "veh-300") }));
  const input = { known, expansion: aContext(["veh-214", "veh-300"]), ...of(...STORY, other) };
  expect(told("name", input)).toEqual(['name "not configured any more"', 'name "Bus 214"', 'name "Bus 214"']);
  expect(told("vehicles", input)).toEqual(["vehicles 3"]);
  expect(told("summary", input)).toEqual([
    "vehicles 3",
    "decided, not sent 1 vehicles",
    "followed 1 vehicles",
    "nothing done 1 vehicles",
  ]);
  expect(told("vehicle", { known: null, ...of() })).toEqual([]);
  expect(told("period", { known: null, ...of() })).toEqual([]);
});

test("an event of lower priority takes over where this one ended", () => {
  const next = {
    ...anEntry("06:02", "decision", "bay-01 to 20 A", { winner: { event: "EV-9" }, overruled: [] }),
    event: eventId("EV-9"),
  };
  expect(told("taken over", of(...STORY, next))).toEqual(['taken over 06:02 "bay-01 to 20 A" [8]']);
});

test("incidents of the site are listed and belong to no vehicle", () => {
  const byHand = anEntry("05:40", "operator", "bay-01 freed by an operator");
  const input = of(...STORY, byHand);
  expect(told("vehicles", input)).toEqual(["vehicles 1"]);
  expect(told("site", input)).toEqual([
    'daemon 04:30 "setpointd started" [2]',
    'operator 05:40 "bay-01 freed by an operator" [8]',
  ]);
  expect(told("row", input)).toHaveLength(STORY.length + 1);
});

const cost = (clock: string, words: string, facts: object, event = "EV-7731") => ({
  ...anEntry(clock, "operator", words, { hold: "hold-7-1", ...facts }),
  event: eventId(event),
});

test("energy that holds take from the event is listed as estimated and as measured, not that from another", () => {
  const input = of(
    ...STORY,
    cost("05:10", "takes", { cost: "estimated", estimatedWh: 12_345, measuredWh: null }),
    cost("05:10", "takes", { cost: "estimated", estimatedWh: null, measuredWh: null }),
    cost("05:10", "of another", { cost: "estimated", estimatedWh: 1, measuredWh: null }, "EV-9"),
    cost("05:45", "took", { cost: "measured", estimatedWh: 12_345, measuredWh: 9_876 }),
  );
  expect(told("hold", input)).toEqual([
    'energy taken, estimated 12.345 kWh 05:10 "takes" [8]',
    'energy taken, estimated 05:10 "takes" [9]',
    'energy taken, measured 9.876 kWh 05:45 "took" [11]',
  ]);
});

test("a period in which the site only observed is a section of the proof, with its beginning and its end", () => {
  const since = "2026-11-21T05:20:00.000Z";
  const until = "2026-11-21T05:50:00.000Z";
  const begun = anEntry("05:20", "operator", "mode observe of anna", { mode: "observe", since, until });
  const ended = anEntry("05:40", "operator", "mode drive: ended", { mode: "drive", since });
  expect(told("observe", of(...STORY, begun, ended))).toEqual([
    'period begun 05:20 05:50 "mode observe of anna" [8]',
    'period ended 05:20 05:40 "mode drive: ended" [9]',
  ]);
});

test("pruned rows are mentioned with the checkpoint that continues the chain", () => {
  const [checkpoint = null] = rowsOf([
    anEntry("06:30", "checkpoint", "pruned", { through: 12, hash: "cd".repeat(32) }),
  ]).map((row): RecordRow => ({ ...row, event: null }));
  expect(told("pruned", recordOf(rowsOf(STORY), checkpoint))).toEqual([
    'pruned 12 "rows 1 to 12 are no longer kept: if they said anything of this event, it is not here" [1]',
  ]);
});

const outage = (
  time: string,
  who: string,
  facts: object = {},
  charger: string | null = null,
): AuditEntry => ({
  ...anEntry(time, "daemon", `${who} at ${time}`, { outage: who, ...facts }),
  charger: charger === null ? null : chargerId(charger),
});
const since = (time: string) => ({ since: `2026-11-21T${time}:00.000Z` });

test("outages are listed with the figures they concern, cut to the window", () => {
  const input = of(
    outage("03:00", "partner"),
    ...STORY.slice(0, 3),
    outage("04:50", "broker"),
    outage("05:10", "broker", { ...since("04:40"), over: true }),
    outage("05:20", "setpointd", { ...since("05:15"), over: true }),
    outage("05:30", "charger", since("05:25"), "bay-01"),
    outage("05:30", "charger", since("05:25"), "bay-02"),
    outage("05:40", "charger", { over: true }, "bay-01"),
    outage("05:50", "clock", { over: true }),
    outage("06:30", "broker"),
  );
  expect(told("outage", input)).toEqual([
    'outage 3600 s 05:00 06:00 "partner: partner at 03:00" [1]',
    'outage 600 s 05:00 05:10 "broker: broker at 05:10" [6]',
    'outage 300 s 05:15 05:20 "setpointd: setpointd at 05:20" [7]',
    'outage 900 s 05:25 05:40 "charger: charger at 05:40" [10]',
    'outage 0 s 05:50 05:50 "clock: clock at 05:50" [11]',
  ]);
  expect(told("outage", { ...input, now: at("05:20") }).at(-1)).toContain('"setpointd: setpointd at 05:20"');
});

test("outages that begin together are listed in the order of the record, whichever charger they are of", () => {
  const entries = [
    outage("05:30", "charger", since("05:25"), "bay-01"),
    outage("05:31", "clock", since("05:25")),
    outage("05:32", "phase", since("05:25"), "bay-01"),
  ];
  expect(
    told("outage", of(...STORY.slice(0, 3), ...entries)).map((line) => line.match(/"(\w+):/)?.[1]),
  ).toEqual(["charger", "clock", "phase"]);
});

test("a start ends open outages; an outage that continues counts from its detection by the new run", () => {
  const input = of(
    ...STORY.slice(0, 3),
    outage("05:10", "partner"),
    outage("05:10", "clock"),
    outage("05:20", "setpointd", { ...since("05:15"), over: true, epoch: 7 }),
    outage("05:22", "partner", since("05:20")),
    outage("05:30", "partner", { over: true }),
  );
  expect(told("outage", input)).toEqual([
    'outage 600 s 05:10 05:20 "partner: partner at 05:10" [4]',
    'outage 600 s 05:10 05:20 "clock: clock at 05:10" [5]',
    'outage 300 s 05:15 05:20 "setpointd: setpointd at 05:20" [6]',
    'outage 600 s 05:20 05:30 "partner: partner at 05:30" [8]',
  ]);
});

test("an event shorter than the interval of readings gets its energy from the readings around it", () => {
  const event = anEvent({ start: at("05:00:20"), duration: seconds(20), randomizeStart: millis(0) });
  const readings = charging(from("04:50", "05:10"), 6000, { every: 60 });
  const input = { known: live(event), evidence: () => ({ readings, leftOut: 0 }) };
  expect(told("energy", input)[0]).toContain("MISSING: gap in the readings");
  expect(told("estimated energy", input)).toEqual([
    'estimated energy 0.033 kWh 05:00 05:00 "by power and by meter readings around it: ESTIMATED"',
  ]);
  expect(told("estimated energy")).toEqual([]);
});

test("a descriptor that ended without a report is listed with the reason (L3)", () => {
  const flagged = anEntry("06:10", "report", "report descriptor 0: no report", { descriptor: "EV-7731/0" });
  const composed = anEntry("06:01", "report", "report composed", { report: "EV-7731/1/0" });
  expect(told("report", of(...STORY, composed, flagged))).toEqual([
    'flagged 06:10 "report descriptor 0: no report" [9]',
  ]);
});

const RECORD = {
  name: "EV-7731/0/0",
  event: eventId("EV-7731"),
  descriptor: 0,
  k: 0,
  payloadType: "USAGE",
  span: from("05:00", "06:00"),
  summary: "1 vehicle, 11 kWh",
  flags: [],
  composedAt: at("06:01"),
  since: at("06:01"),
  state: "sent",
  nextTry: null,
  attempts: 1,
  status: 201,
  reason: null,
  receipt: '{"id":"R-1"}',
  sentAt: at("06:02"),
} as const;

test("each report is listed with its content, a hash of its body, and its receipt", () => {
  const waiting = {
    ...RECORD,
    name: "EV-7731/0/1",
    state: "waiting",
    status: null,
    sentAt: null,
    receipt: null,
    composedAt: at("06:30"),
    reason: "HTTP 503",
  } as const;
  const reports = [
    { record: waiting, body: null },
    { record: RECORD, body: "{}" },
  ];
  expect(told("report", { reports })).toEqual([
    'report 05:00 06:00 "EV-7731/0/0 (USAGE): 1 vehicle, 11 kWh"',
    'composed 06:01 "SHA-256 of its body"',
    "sent 1 tries 06:02",
    'acknowledged 201 HTTP status 06:02 "{"id":"R-1"}"',
    'report 05:00 06:00 "EV-7731/0/1 (USAGE): 1 vehicle, 11 kWh"',
    'composed 06:30 "SHA-256 of its body"',
    'waiting "HTTP 503"',
  ]);
  const composed = factsOf({ reports }).filter(({ what }) => what === "composed");
  expect(composed.map(({ hash }) => hash)).toEqual([
    "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
    null,
  ]);
});

const STEPS = ["decided", "sent", "acknowledged", "accepted", "followed", "released"];

test("a proof reads the record in parts, and is the same for many vehicles as for one", () => {
  const vehicles = Array.from({ length: 1_000 }, (_, index) => index + 1_000);
  const commands = STORY.filter(({ vehicle }) => vehicle !== null);
  const many = vehicles.flatMap((vehicle) =>
    commands.map((entry) => ({ ...entry, vehicle: vehicleId(`veh-${vehicle}`) })),
  );
  const changes = recordOf(rowsOf([...STORY, ...many]));
  const asked: number[] = [];
  const requestRows = (seqs: readonly number[]): void => {
    asked.push(seqs.length);
    changes.requestRows(seqs);
  };
  const facts = factsOf({ ...changes, requestRows });
  const steps = Map.groupBy(
    facts.filter(({ section, seq }) => section === "vehicle" && seq !== null),
    ({ vehicle }) => vehicle,
  );
  expect(steps.size).toBe(1_001);
  for (const own of steps.values()) expect(own.map(({ what }) => what)).toEqual(STEPS);
  const summary = facts.filter(({ section }) => section === "summary");
  expect(summary.map(({ what, value }) => `${value} ${what}`)).toEqual(["1001 vehicles", "1001 followed"]);
  expect(facts.filter(({ what }) => what === "row")).toHaveLength(STORY.length + many.length);
  expect(Math.max(...asked)).toBeLessThanOrEqual(5_000);
});
