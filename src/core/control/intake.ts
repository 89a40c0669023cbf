import type { Notice } from "../delivery.ts";
import { type Instant, instant, minutes } from "../units.ts";
import type { CoordinationEvent } from "./event.ts";
import { anchorOf, type Ending, type KnownEvent } from "./known.ts";

/** Anything about an event except what could not be read. */
export type EventNotice = Exclude<Notice, { kind: "rejected" }>;

export interface Intake {
  readonly outcome: "new" | "changed" | "repeat" | "stale" | "withdrawn";
  /** What is known afterwards: the very same object where nothing changed. */
  readonly known: KnownEvent | undefined;
  /** A contradiction that a person should hear of. */
  readonly warning: string | null;
  /** Two webhooks contradict each other: a fetch by id decides. */
  readonly ask: boolean;
}

interface Arrival {
  readonly source: "webhook" | "fetch";
  readonly at: Instant;
  /** When a fetch was asked for: what it holds is not older than this. Equal to `at` for a webhook. */
  readonly askedAt: Instant;
}

/** The longest that an unplanned end is spread over; an ending older than this has nothing left to release. */
export const LONGEST_TAIL = minutes(10);
/** An event that flaps faster than this many edits in ten minutes loses the oldest of its endings. */
const MOST_ENDINGS = 32;

/**
 * What a notice changes in what is known of its event (DESIGN 5.2): newer replaces, the same hash is a repeat,
 * older is stale. Pure; any order and duplication of notices followed by one fetch gives one state.
 */
export function intake(known: KnownEvent | undefined, notice: EventNotice, arrival: Arrival): Intake {
  switch (notice.kind) {
    case "event":
      return known === undefined
        ? accept(notice.event, known, arrival)
        : compare(known, notice.event, arrival);
    case "deleted":
      return withdraw(known, notice, arrival);
    case "gone":
      if (known?.kind !== "live") return unchanged("repeat", known);
      return isNewsSince(known, arrival)
        ? unchanged("stale", known)
        : withdraw(known, { id: notice.id, revision: null }, arrival);
  }
}

/** What a fetch found missing has come by itself since it was asked for. */
const isNewsSince = ({ receivedAt }: KnownEvent, { at, askedAt }: Arrival): boolean =>
  askedAt < receivedAt && receivedAt <= at;

function compare(known: KnownEvent, event: CoordinationEvent, arrival: Arrival): Intake {
  if (known.kind === "withdrawn") {
    const revived =
      event.revision > known.watermark || (arrival.source === "fetch" && arrival.askedAt >= known.receivedAt);
    return revived ? accept(event, known, arrival) : unchanged("stale", known);
  }
  const { event: current } = known.revision;
  if (event.hash === current.hash) {
    const confirmed = arrival.source === "fetch" && known.source === "webhook";
    return unchanged("repeat", confirmed ? { ...known, source: "fetch" } : known);
  }
  if (event.revision > current.revision) return accept(event, known, arrival);
  if (event.revision < current.revision) return unchanged("stale", known);
  return settleContradiction(known, event, arrival);
}

/** Same modification time, other content: what a fetch returned wins; between two webhooks a fetch by id decides. */
function settleContradiction(
  known: KnownEvent & { kind: "live" },
  event: CoordinationEvent,
  arrival: Arrival,
): Intake {
  const stays = `event ${event.id} came with the same modification time but other content`;
  if (arrival.source === "fetch") {
    return { ...accept(event, known, arrival), warning: `${stays}: what was fetched wins` };
  }
  if (known.source === "fetch") {
    return { ...unchanged("stale", known), warning: `${stays} by webhook: what was fetched before stays` };
  }
  return { ...unchanged("stale", known), warning: `${stays} in two webhooks: a fetch decides`, ask: true };
}

function accept(event: CoordinationEvent, known: KnownEvent | undefined, { source, at }: Arrival): Intake {
  const live = known?.kind === "live" ? known : undefined;
  return {
    outcome: live === undefined ? "new" : "changed",
    known: {
      kind: "live",
      id: event.id,
      revision: { event, start: event.start === "now" ? (keptAnchor(event, known) ?? at) : event.start },
      source,
      receivedAt: at,
      endings: live === undefined ? stillEnding(known?.endings ?? [], at) : ended(live, at),
      descriptors: Math.max(known?.descriptors ?? 0, event.reports.length),
    },
    warning: null,
    ask: false,
  };
}

/**
 * "Now" means the first receipt: later revisions that still say "now" keep that moment, and so does a withdrawn event
 * that comes back as it was. One that is made anew after its withdrawal means another now.
 */
const keptAnchor = (event: CoordinationEvent, known: KnownEvent | undefined): Instant | null =>
  known?.kind === "withdrawn" && event.revision > known.watermark ? null : anchorOf(known);

function withdraw(
  known: KnownEvent | undefined,
  notice: { readonly id: KnownEvent["id"]; readonly revision: Instant | null },
  { at }: Arrival,
): Intake {
  if (known?.kind === "withdrawn") {
    const watermark = instant(Math.max(known.watermark, notice.revision ?? 0));
    return unchanged("repeat", watermark === known.watermark ? known : { ...known, watermark });
  }
  if (known !== undefined && notice.revision !== null && notice.revision < known.revision.event.revision)
    return unchanged("stale", known);
  const highest = Math.max(known?.revision.event.revision ?? -Infinity, notice.revision ?? -Infinity);
  return {
    outcome: "withdrawn",
    known: {
      kind: "withdrawn",
      id: notice.id,
      watermark: Number.isFinite(highest) ? instant(highest) : at,
      anchor: anchorOf(known),
      receivedAt: at,
      endings: known === undefined ? [] : ended(known, at),
      descriptors: known?.descriptors ?? 0,
    },
    warning: null,
    ask: false,
  };
}

const unchanged = (outcome: "repeat" | "stale", known: KnownEvent | undefined): Intake => ({
  outcome,
  known,
  warning: null,
  ask: false,
});

/**
 * The endings so far, and this revision's own if it may have been acting when it was replaced. While earlier ones
 * still count, so does every revision after them: it may have taken over what was left of them.
 */
function ended(live: KnownEvent & { kind: "live" }, at: Instant): readonly Ending[] {
  const { revision } = live;
  const { duration, randomizeStart, ask } = revision.event;
  const open = revision.start <= at && at < revision.start + randomizeStart + duration;
  const earlier = stillEnding(live.endings, at);
  const counts = (open && ask.kind !== "unknown") || earlier.length > 0;
  return counts ? [...earlier, { revision, at }].slice(-MOST_ENDINGS) : earlier;
}

const stillEnding = (endings: readonly Ending[], at: Instant): readonly Ending[] =>
  endings.filter((ending) => at < ending.at + LONGEST_TAIL);
