import { expect, test } from "vitest";

import { InputFaults } from "../../src/alarms/facts.ts";
import type { AuditKind } from "../../src/domain/audit.ts";
import { after, eventId, instant, minutes } from "../../src/domain/units.ts";

const T0 = instant(Date.parse("2026-11-23T05:30:00Z"));
const at = (min: number) => after(T0, minutes(min));
const row = (kind: AuditKind, event: string | null, min = 0) => ({
  kind,
  event: event === null ? null : eventId(event),
  at: at(min),
  words: `event ${event} was set aside`,
});
const shown = (faults: InputFaults, min: number) =>
  faults.facts(at(min)).map(({ kind, subject }) => `${kind} ${subject}`);

test("an event that was set aside is a fault until it is accepted", () => {
  const faults = new InputFaults();
  faults.read([row("rejected", "EV-1"), row("event", "EV-2")]);
  expect(faults.facts(at(1))).toMatchObject([
    {
      kind: "rejected",
      subject: "EV-1",
      severity: "warning",
      since: T0,
      message: "event EV-1 was set aside",
      action: expect.stringContaining("where it does not fit in memory, give the service more (MemoryMax)"),
    },
  ]);
  faults.read([row("event", "EV-1", 2)]);
  expect(shown(faults, 2)).toEqual([]);
});

test("an event that is never accepted is a fault for a day, also without an id and after the clock was set back", () => {
  const faults = new InputFaults();
  faults.read([row("rejected", null), row("rejected", null, 600)]);
  expect(faults.facts(at(1400))).toMatchObject([{ subject: null, since: T0 }]);
  expect(shown(faults, 600 + 1440)).toEqual([]);
  faults.read([row("rejected", "EV-1")]);
  expect(shown(faults, -1440)).toEqual([]);
});

test("the newest hundred of many rejected events are shown", () => {
  const faults = new InputFaults();
  faults.read(Array.from({ length: 120 }, (_, number) => row("rejected", `EV-${number}`)));
  expect(shown(faults, 0)).toHaveLength(100);
  expect(shown(faults, 0)).not.toContain("rejected EV-19");
});

test("messages of a charger that are discarded again and again are a fault until ten minutes pass without", () => {
  const faults = new InputFaults();
  faults.discarded("bay-01", "unreadable", at(0));
  faults.discarded("bay-01", "unreadable", at(1));
  expect(shown(faults, 1)).toEqual([]);
  faults.discarded("bay-01", "unreadable", at(9));
  expect(faults.facts(at(18))).toMatchObject([
    {
      kind: "discarded",
      subject: "bay-01",
      since: T0,
      message: "messages of bay-01 are discarded: they cannot be read",
    },
  ]);
  expect(shown(faults, 19)).toEqual([]);
  for (const min of [40, 41, 42]) faults.discarded("bay-01", min === 42 ? "other" : "tooMany", at(min));
  expect(faults.facts(at(42))).toMatchObject([
    { since: at(40), message: expect.stringMatching(/they other$/) },
  ]);
});

test("a message that is discarded after ten quiet minutes begins a new count", () => {
  const faults = new InputFaults();
  for (const min of [0, 1, 11]) faults.discarded("bay-01", "unreadable", at(min));
  expect(shown(faults, 11)).toEqual([]);
});
