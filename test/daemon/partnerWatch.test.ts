import { expect, test } from "vitest";

import type { Change } from "../../src/domain/changes.ts";
import { iso } from "../../src/domain/units.ts";
import { outages } from "../../src/daemon/partnerWatch.ts";
import { at } from "../support/anEvent.ts";

test("an outage is on record once when it begins and once when it ends, with when it began", () => {
  let now = at("05:01");
  const rows: unknown[] = [];
  const write = (changes: readonly Change[]) =>
    rows.push(...changes.map((change) => (change.kind === "audit" ? change.entry : change)));
  const { gone, back } = outages(
    write,
    () => now,
    (moment) => `${iso(moment).slice(11, 16)} here`,
  );
  back("partner");
  gone("partner", at("05:00"));
  gone("partner", at("05:00"));
  gone("broker solar", at("05:01"));
  now = at("05:02");
  back("partner");
  back("partner");
  expect(rows).toMatchObject([
    { kind: "silence", words: "the partner is away since 05:00 here", charger: null },
    { words: "the broker solar is away since 05:01 here", facts: { outage: "broker solar" } },
    {
      at: at("05:02"),
      words: "the partner is there again after 120 s",
      facts: { outage: "partner", since: "2026-11-21T05:00:00.000Z", over: true },
    },
  ]);
});
