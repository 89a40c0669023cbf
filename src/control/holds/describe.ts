import type { Json } from "../../domain/audit.ts";
import { endOf, formatHoldLevel, formatScope, type Hold, type HoldScope } from "../../domain/hold.ts";
import { MOST_OVERRULED } from "../../domain/reason.ts";
import { viewOf } from "../../domain/setpoint.ts";
import { iso } from "../../domain/units.ts";
import type { WallClock } from "../../platform/text.ts";

/** "until 05:40:00", "until unplugged, at most until 05:40:00 tomorrow". */
export function formatEnd(hold: Pick<Hold, "end" | "since" | "cap">, wallClock: WallClock): string {
  const { end, cap } = hold;
  const most = cap === null ? "" : `, at the latest ${wallClock(cap)}`;
  switch (end.kind) {
    case "at":
      return `until ${wallClock(endOf(hold))}`;
    case "unplugged":
      return `until unplugged${most}`;
    case "energy":
      return `until ${end.wh / 1000} kWh are delivered${most}`;
    case "events":
      return `until ${listed(end.events)} ${end.events.length === 1 ? "is" : "are"} over${most}`;
  }
}

const listed = (events: readonly string[]): string => {
  const more = events.length - MOST_OVERRULED;
  return more <= 0 ? events.join(", ") : `${events.slice(0, MOST_OVERRULED).join(", ")} and ${more} more`;
};

/** A hold as a reason and the API show it. A hold may set aside many events: it names as many as of the overruled. */
export function holdFacts(hold: Hold): { readonly [member: string]: Json } {
  const { id, scope, level, end, since, by, reason } = hold;
  const events = end.kind === "events" ? end.events : [];
  return {
    id,
    scope: scopeFacts(scope),
    kind: level === null ? "exempt" : "level",
    level: level === null ? null : viewOf(level),
    end: end.kind,
    since: iso(since),
    until: iso(endOf(hold)),
    by,
    reason,
    events: events.slice(0, MOST_OVERRULED),
    eventCount: events.length,
  };
}

export function scopeFacts(scope: HoldScope): { readonly [member: string]: string | true } {
  switch (scope.kind) {
    case "vehicle":
      return { vehicle: scope.vehicle };
    case "charger":
      return { charger: scope.charger };
    case "site":
      return { site: true };
  }
}

/** "hold hold-7-1 of anna on bay-01: 16 A until 05:40:00". */
export const formatHold = (hold: Hold, wallClock: WallClock): string =>
  `hold ${hold.id} of ${hold.by} on ${formatScope(hold.scope)}: ${formatHoldLevel(hold)} ${formatEnd(hold, wallClock)}`;
