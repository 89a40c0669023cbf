import { expect, test } from "vitest";

import { leadFacts } from "../../src/alarms/facts.ts";
import { after, minutes, seconds } from "../../src/domain/units.ts";
import { NOON } from "../store/sqlite/words.ts";

const NOTHING = { lapsed: () => null, backlog: null };

const waiting = (s: number) => ({ ...NOTHING, backlog: { count: 3, longest: seconds(s) } });

test("without a database, after a release, and with nothing that waits there is no fact", () => {
  expect(leadFacts(null, NOON)).toEqual([]);
  expect(leadFacts(NOTHING, NOON)).toEqual([]);
});

test("a lease that ended without a release is a fact of the next leader for an hour", () => {
  const lead = { ...NOTHING, lapsed: () => ({ process: "box-a:17", at: NOON }) };
  expect(leadFacts(lead, after(NOON, seconds(1)))).toEqual([
    {
      kind: "leaseLost",
      subject: null,
      severity: "warning",
      since: NOON,
      message: expect.stringMatching(/^box-a:17 led the site until its lease ended without a release/),
      action: expect.stringContaining("that machine"),
    },
  ]);
  expect(leadFacts(lead, after(NOON, minutes(60)))).toEqual([]);
});

test("deliveries of stand-ins that wait for half a minute are a fact until they are ingested", () => {
  expect(leadFacts(waiting(29), NOON)).toEqual([]);
  expect(leadFacts(waiting(30), NOON)).toMatchObject([
    {
      kind: "deliveriesWaiting",
      severity: "warning",
      since: after(NOON, seconds(-30)),
      message: "deliveries that a stand-in received are not ingested: 3 wait",
    },
  ]);
});
