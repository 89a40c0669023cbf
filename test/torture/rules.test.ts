import { expect, test } from "vitest";

import type { Json, AuditRow } from "../../src/domain/audit.ts";
import { chargerId, eventId, instant, vehicleId } from "../../src/domain/units.ts";
import { fractionOf } from "../simulate/oracle.ts";
import type { SetPayload } from "../support/aFloor.ts";
import { violations } from "./rules.ts";
import type { Story, Told } from "./story.ts";

const MINUTE = 60_000;
const START = Date.parse("2026-11-21T08:00:00Z");
const REVISED = START - MINUTE;
/** When the good story received its event, in ms after START. */
const RECEIVED = -40_001;

const aRow = (kind: AuditRow["kind"], at: number, command: string | null, facts: Json): AuditRow => ({
  // One row a millisecond at most: the order of time is the order of the record.
  seq: at,
  hash: "",
  at: instant(at),
  kind,
  charger: chargerId("bay-01"),
  vehicle: vehicleId("veh-1"),
  event: eventId("EV-1"),
  command,
  words: "",
  facts,
});

const command = (
  seq: number,
  kind: "current" | "release",
  at: number,
  more: Partial<SetPayload> = {},
): Told => ({
  at,
  set: {
    v: 1,
    id: `7-${seq}`,
    epoch: 7,
    seq,
    kind,
    value: kind === "current" ? 16 : null,
    unit: kind === "current" ? "A" : null,
    until: kind === "current" ? new Date(START + MINUTE).toISOString() : null,
    lease: 180,
    vehicle: "veh-1",
    event: "EV-1",
    ...more,
  },
});

const [asked, again, freed] = [
  command(1, "current", START + 10),
  command(1, "current", START + 32_010),
  command(2, "release", START + MINUTE + 10),
];

/** One charger, one event of a minute, and a kill in the middle: told, told again, released. */
const good: Story = {
  site: {
    chargers: [{ id: "bay-01", maxCurrent: 32, belowMinimum: "pause", phases: 3, tells: false }],
    vehicles: [{ id: "veh-1", charger: "bay-01", maxCurrent: null }],
    knobs: {
      priority: "lower",
      priorityZero: "highest",
      ties: "newest",
      randomizedEnd: "shift",
      pollEvery: 1000,
      reports: false,
    },
    siteKey: Buffer.alloc(32),
    midnight: START,
    zone: "UTC",
    writtenIn: "UTC",
  },
  history: new Map([
    [
      "EV-1",
      [
        {
          plan: {
            id: "EV-1",
            start: 0,
            duration: MINUTE,
            spread: 0,
            priority: 1,
            ask: { kind: "current", amperes: 16 },
            vehicles: ["veh-1"],
            reports: [],
          },
          revised: REVISED,
          created: REVISED,
        },
      ],
    ],
  ]),
  lives: [
    {
      startedAt: START - MINUTE,
      connectedAt: START - 51_000,
      readyAt: START - 50_000,
      endedAt: START + 30_000,
      crashed: null,
      reconnects: 0,
    },
    {
      startedAt: START + 30_000,
      connectedAt: START + 31_500,
      readyAt: START + 32_000,
      endedAt: START + 5 * MINUTE,
      crashed: null,
      reconnects: 0,
    },
  ],
  told: new Map([["bay-01", [asked, again, freed]]]),
  refusals: [],
  promised: [{ event: "EV-1", step: 0, at: START - 40_000 }],
  rows: [
    aRow("event", START + RECEIVED, null, { outcome: "new", revision: new Date(REVISED).toISOString() }),
    aRow("decision", START + 1, "7-1", null),
    aRow("decision", START + MINUTE + 1, "7-2", null),
  ],
  damage: null,
  oddAnswers: [],
  delays: [],
};

const telling = (...told: readonly Told[]): Partial<Story> => ({ told: new Map([["bay-01", told]]) });
const without = (command: string | null): Partial<Story> => ({
  rows: good.rows.filter((row) => row.command !== command),
});

test("a story in which all is well breaks no rule", () => {
  expect(violations(good)).toEqual([]);
});

/** The same event with another window, in ms after START, and a row that records it as missed. */
function missing(
  start: number,
  duration: number,
  found: number,
  missedFrom = Math.max(start, RECEIVED),
): Partial<Story> {
  const [said] = good.history.get("EV-1") ?? [];
  if (said == null) throw new Error("nothing was said");
  const facts = {
    from: new Date(START + missedFrom).toISOString(),
    until: new Date(START + start + duration).toISOString(),
  };
  return {
    history: new Map([["EV-1", [{ ...said, plan: { ...said.plan, start, duration } }]]]),
    told: new Map([["bay-01", []]]),
    rows: [...good.rows.slice(0, 1), aRow("missed", START + found, null, facts)],
  };
}

test("a window whose event arrived in its last second may be missed, from the receipt on", () => {
  expect(violations({ ...good, ...missing(-60_000, 20_500, -39_000) })).toEqual([]);
});

test("a window that was missed although the daemon had two seconds for it is found", () => {
  const found = violations({ ...good, ...missing(-60_000, 22_000, -37_000) });
  expect(found).toContain("missed is what nobody could act on: ");
});

/** Withdrawn 40 s after its start, with a spread of 10 s: when its vehicle starts and is let go of, and the story of it. */
function withdrawnInTheMiddle(releasedAt: (moment: number) => number): Story {
  const [said] = good.history.get("EV-1") ?? [];
  if (said == null) throw new Error("nothing was said");
  const spread = 10_000;
  const plan = { ...said.plan, spread };
  const offset = fractionOf(plan, "veh-1", good.site);
  const from = START + Math.floor(offset * (spread + 1));
  const withdrawn = START + 40_000;
  const release = releasedAt(withdrawn + Math.floor(offset * spread));
  const until = new Date(from + MINUTE).toISOString();
  return {
    ...good,
    history: new Map([["EV-1", [{ ...said, plan }, null]]]),
    ...telling(
      command(1, "current", from + 10, { until }),
      command(1, "current", START + 32_010, { until }),
      command(2, "release", release + 10),
    ),
    rows: [
      ...good.rows.slice(0, 1),
      aRow("decision", from + 1, "7-1", null),
      aRow("event", withdrawn, null, { outcome: "withdrawn" }),
      aRow("decision", release + 1, "7-2", null),
    ],
  };
}

test("a withdrawn event is released at its vehicle's own moment, no sooner and no later", () => {
  const onTime = withdrawnInTheMiddle((moment) => moment);
  expect(violations(onTime)).toEqual([]);
  const atOnce = withdrawnInTheMiddle(() => START + 40_001);
  expect(violations(atOnce).join()).toContain("follows from what was known");
  const late = withdrawnInTheMiddle((moment) => moment + 3_000);
  expect(violations(late).join()).toContain("what could be done was done");
});

test("the last publish of a run may arrive when the next one has begun", () => {
  const last = command(1, "current", START + 30_002);
  const lives = good.lives.map((life) => ({ ...life, reconnects: 0 }));
  const [first, second] = lives;
  if (first === undefined || second === undefined) throw new Error("two runs");
  const between = {
    ...second,
    startedAt: START + 20_000,
    connectedAt: START + 21_000,
    readyAt: START + 21_000,
    endedAt: START + 30_000,
  };
  const three = [{ ...first, endedAt: START + 20_000 }, between, second];
  expect(violations({ ...good, lives: three, ...telling(asked, last, again, freed) }).join()).not.toContain(
    "twice",
  );
});

test("delays of a busy machine are no violation, and only those", () => {
  const late = telling(asked, again, command(2, "release", START + MINUTE + 3_000));
  const delays = [{ at: START + MINUTE + 3_000, ms: 2_500 }];
  expect(violations({ ...good, ...late, delays })).toEqual([]);
  const elsewhere = [{ at: START + 20_000, ms: 2_500 }];
  expect(violations({ ...good, ...late, delays: elsewhere }).join()).toContain("what could be done");
});

test("a refresh after a minute is no repetition, and neither is one message after each return of the broker", () => {
  const later = command(2, "release", START + 2 * MINUTE + 10);
  expect(violations({ ...good, ...telling(asked, again, freed, later) })).toEqual([]);
  const returned = command(1, "current", START + 40_000);
  const lives = good.lives.map((life) => ({ ...life, reconnects: 1 }));
  expect(violations({ ...good, lives, ...telling(asked, again, returned, freed) })).toEqual([]);
});

test.each<readonly [string, string, Partial<Story>]>([
  ["a command that is not on record", "a command is on record", without("7-1")],
  ["an event that was promised and is not there", "what was answered with 2xx", without(null)],
  ["a start that is lost", "what could be done was done", telling()],
  ["a release that is lost", "what could be done was done", telling(asked, again)],
  ["a start before its time", "within its own window", telling(command(1, "current", START - 10), freed)],
  [
    "a command after its window",
    "within its own window",
    telling(asked, command(1, "current", START + 2 * MINUTE)),
  ],
  [
    "another offset",
    "within its own window",
    telling(command(1, "current", START + 10, { until: new Date(START + MINUTE + 1).toISOString() }), freed),
  ],
  [
    "another level",
    "within its own window",
    telling(command(1, "current", START + 10, { value: 20 }), freed),
  ],
  [
    "a lower epoch",
    "never go back",
    telling(asked, command(2, "release", START + MINUTE + 10, { epoch: 6 })),
  ],
  ["a number that goes back", "never go back", telling(asked, command(0, "release", START + MINUTE + 10))],
  [
    "three re-assertions after one restart",
    "at most one extra message",
    telling(asked, again, again, again, freed),
  ],
  [
    "a re-assertion without a restart",
    "at most one extra message",
    telling(asked, command(1, "current", START + 20), freed),
  ],
  ["a damaged record", "the record is whole", { damage: "row 2 was changed" }],
  [
    "a charger that had to protect itself",
    "took something newer",
    { refusals: [{ topic: "a/ack", text: '{"reason":"older than 7-2"}', qos: 1, retain: false, at: START }] },
  ],
  [
    "a process that fell over",
    "no process ends by itself",
    { lives: [{ ...good.lives[0]!, crashed: "ended with 1" }] },
  ],
  [
    "something said twice under two numbers",
    "at most one extra message",
    {
      ...telling(asked, command(2, "current", START + 20), command(3, "release", START + MINUTE + 10)),
      rows: [
        ...good.rows.slice(0, 2),
        aRow("decision", START + 15, "7-2", null),
        aRow("decision", START + MINUTE + 1, "7-3", null),
      ],
    },
  ],
  [
    "a miss that begins before the receipt of its event",
    "nobody asked for that",
    missing(-60_000, 20_500, -39_000, -60_000),
  ],
  [
    "a miss of what was never asked for",
    "nobody asked for that",
    {
      ...missing(0, MINUTE, MINUTE),
      history: good.history,
      rows: [...good.rows.slice(0, 1), ...(missing(0, 999, 999).rows ?? []).slice(1)],
    },
  ],
  [
    "a release while it should hold",
    "follows from what was known",
    {
      ...telling(asked, command(2, "release", START + 20_000), command(3, "current", START + 20_100), freed),
      rows: [
        ...good.rows.slice(0, 2),
        aRow("decision", START + 19_999, "7-2", null),
        aRow("decision", START + 20_099, "7-3", null),
        aRow("decision", START + MINUTE + 1, "7-4", null),
      ],
    },
  ],
  ["a charger that hears nothing after a start", "told so again after a start", telling(asked, freed)],
  [
    "a client that flaps",
    "a connection to the broker lasts",
    {
      lives: good.lives.map((life) => ({
        ...life,
        endedAt: Math.min(life.endedAt, START + 40_000),
        reconnects: 9,
      })),
    },
  ],
  ["a delivery that is refused", "a delivery is taken", { oddAnswers: ["EV-1: 401"] }],
])("%s is found", (_name, sentence, change) => {
  expect(violations({ ...good, ...change }).join("\n")).toContain(sentence);
});
