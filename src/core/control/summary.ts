import { hash } from "node:crypto";

import type { EventNotice } from "./intake.ts";
import type { EventSummary, KnownEvent, Revision, TrackedEvent } from "./known.ts";
import { MOST_DESCRIPTORS } from "../reporting/plan.ts";
import { overSince } from "../retention.ts";

/** What memory keeps of an event once it is over. `size`: characters that the whole event takes on disk. */
export function summaryOf(known: KnownEvent, size: number): EventSummary {
  const { id, receivedAt, descriptors } = known;
  const common = { kind: "over", id, receivedAt, until: overSince(known), descriptors, size } as const;
  if (known.kind === "withdrawn") {
    return {
      ...common,
      was: "withdrawn",
      revision: known.watermark,
      hash: null,
      start: receivedAt,
      asks: [],
    };
  }
  const { event, start } = known.revision;
  const asks = event.reports
    .slice(0, MOST_DESCRIPTORS)
    .map((_, descriptor) => askPrint(known.revision, descriptor));
  return { ...common, was: "live", revision: event.revision, hash: event.hash, start, asks };
}

/** A print of what one report descriptor asks for, and of when. */
export const askPrint = ({ event }: Revision, descriptor: number): string =>
  hash("sha256", JSON.stringify([event.reports[descriptor], event.start, event.duration])).slice(0, 16);

/** Whether a summary tells all that a notice has to be compared with. Null: the whole event is needed. */
export function outcomeFor(summary: EventSummary, notice: EventNotice): "repeat" | "stale" | null {
  if (notice.kind !== "event" || summary.was !== "live") return null;
  if (notice.event.hash === summary.hash) return "repeat";
  return notice.event.revision < summary.revision ? "stale" : null;
}

/** Whether both are the same state of one event. */
export function isSameState(a: TrackedEvent, b: EventSummary): boolean {
  const { was, hash, receivedAt, revision } = a.kind === "over" ? a : summaryOf(a, b.size);
  return was === b.was && hash === b.hash && receivedAt === b.receivedAt && revision === b.revision;
}
