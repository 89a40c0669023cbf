import { type Hold, releaseHold } from "../../src/domain/hold.ts";
import { amperes, chargerId, eventId, type Instant } from "../../src/domain/units.ts";
import { at } from "./anEvent.ts";

/** A release of a charger from these events. */
export const aRelease = (
  charger = "bay-01",
  events: readonly string[] = ["EV-7731"],
  since: Instant = at("05:10"),
  latest: Instant = at("06:00"),
): Hold =>
  releaseHold({
    id: "hold-7-1",
    charger: chargerId(charger),
    events: events.map((id) => eventId(id)),
    since,
    latest,
    by: "operator",
  });

/** 10 A for bay-01 until 06:00, by anna. */
export const aLevelHold = (changes: Partial<Hold> = {}): Hold => ({
  ...aRelease(),
  level: { kind: "current", amperes: amperes(10) },
  end: { kind: "at", at: at("06:00") },
  cap: at("06:00"),
  by: "anna",
  reason: "leaves early",
  ...changes,
});

/** In ms. */
export const anHour = 3_600_000;
