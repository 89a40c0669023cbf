import { expect, test } from "vitest";

import { isWithin, type Scope } from "../../src/domain/changes.ts";
import { chargerId, eventId } from "../../src/domain/units.ts";

const scope = (members: Partial<Scope>): Scope => ({
  events: new Set(),
  chargers: new Set(),
  holds: new Set(),
  mode: false,
  ...members,
});

test("a scope is within another one that has each event, charger and hold of it, and the mode", () => {
  const whole = scope({
    events: new Set([eventId("EV-1")]),
    chargers: new Set([chargerId("bay-01")]),
    holds: new Set(["hold-7-1"]),
    mode: true,
  });
  for (const part of [scope({}), whole, { ...whole, mode: false }, { ...whole, events: new Set<never>() }])
    expect(isWithin(part, whole)).toBe(true);
  for (const other of [
    { ...whole, events: new Set([eventId("EV-2")]) },
    { ...whole, chargers: new Set<never>() },
    { ...whole, holds: new Set<never>() },
    { ...whole, mode: false },
  ])
    expect(isWithin(whole, other)).toBe(false);
});
