import type { Notice } from "../../domain/delivery.ts";
import {
  type CoordinationEvent,
  anchorOf,
  type Ending,
  goneUntil,
  type KnownEvent,
} from "../../domain/event.ts";
import { LONGEST_TAIL } from "../../domain/eventSummary.ts";
import { type Instant, instant, later } from "../../domain/units.ts";

/** Anything about an event except what could not be read. */
export type EventNotice = Exclude<Notice, { kind: "rejected" }>;

export interface Intake {
  /** `unproven`: a delete without a revision; a fetch by id decides. */
  readonly outcome: "new" | "changed" | "repeat" | "stale" | "withdrawn" | "unproven";
  /** What is known afterwards: the very same object where nothing changed. */
  readonly known: KnownEvent | undefined;
  /** A contradiction that a person should hear of. */
  readonly warning: string | null;
  /** A webhook contradicts what is known, or may be a replay: a fetch by id decides. */
  readonly ask: boolean;
}

interface Arrival {
  readonly source: "webhook" | "fetch";
  readonly at: Instant;
  /** When a fetch was asked for: what it holds is not older than this. Equal to `at` for a webhook. */
  readonly askedAt: Instant;
}
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
      // Anybody who captured it once can send it again, also after the event was made anew.
      if (notice.revision === null && known?.kind !== "withdrawn")
        return { ...unchanged("unproven", known), ask: true };
      return withdraw(known, notice, arrival);
    case "gone":
      if (known?.kind === "withdrawn") return unchanged("repeat", known);
      return known !== undefined && isNewsSince(known, arrival)
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
      event.revision > known.watermark || (arrival.source === "fetch" && arrival.askedAt >= known.deletedAt);
    return revived ? accept(event, known, arrival) : unchanged("stale", known);
  }
  const { event: current } = known.revision;
  if (event.hash === current.hash) {
    const confirmed = arrival.source === "fetch" && known.source === "webhook";
    return unchanged("repeat", confirmed ? { ...known, source: "fetch" } : known);
  }
  if (event.revision > current.revision) return accept(event, known, arrival);
  if (event.revision < current.revision) return unchanged("stale", known);
  if (isSameContent(event, current))
    return unchanged("repeat", {
      ...known,
      revision: { ...known.revision, event: { ...current, hash: event.hash } },
      source: arrival.source === "fetch" ? "fetch" : known.source,
    });
  return settleContradiction(known, event, arrival);
}

/**
 * Only the spelling of the start differs. The stored revision is from an earlier release, whose hash and start offsets
 * depended on that spelling.
 */
const isSameContent = (event: CoordinationEvent, current: CoordinationEvent): boolean =>
  event.start !== "now" &&
  JSON.stringify({ ...event, wireStart: "", hash: "" }) ===
    JSON.stringify({ ...current, wireStart: "", hash: "" });

/**
 * An edit that leaves start and spread alone keeps every start offset, also where an earlier release derived them from
 * another spelling of that start. "Now" is excluded: its text on the wire counts (DESIGN 5.3).
 */
const withStoredDraw = (
  event: CoordinationEvent,
  current: CoordinationEvent | undefined,
): CoordinationEvent =>
  current !== undefined &&
  event.start !== "now" &&
  event.start === current.start &&
  event.randomizeStart === current.randomizeStart
    ? { ...event, wireStart: current.wireStart }
    : event;

/** An edit rarely changes the targets. The revisions of an event then share one list of them in memory. */
const withSharedTargets = (
  event: CoordinationEvent,
  current: CoordinationEvent | undefined,
): CoordinationEvent =>
  current !== undefined && JSON.stringify(event.targets) === JSON.stringify(current.targets)
    ? { ...event, targets: current.targets }
    : event;

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
    const warning = `${stays} by webhook: what was fetched before stays until a fetch decides`;
    return { ...unchanged("stale", known), warning, ask: true };
  }
  return { ...unchanged("stale", known), warning: `${stays} in two webhooks: a fetch decides`, ask: true };
}

function accept(received: CoordinationEvent, known: KnownEvent | undefined, { source, at }: Arrival): Intake {
  const live = known?.kind === "live" ? known : undefined;
  const event = withSharedTargets(withStoredDraw(received, live?.revision.event), live?.revision.event);
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
      ...gone(known, at),
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
  { at, askedAt }: Arrival,
): Intake {
  if (known?.kind === "withdrawn") {
    const watermark = instant(Math.max(known.watermark, notice.revision ?? 0));
    const isSame = watermark === known.watermark && at <= known.deletedAt;
    return unchanged(
      "repeat",
      isSame ? known : { ...known, watermark, deletedAt: later(at, known.deletedAt) },
    );
  }
  if (known !== undefined && notice.revision !== null && notice.revision < known.revision.event.revision)
    return unchanged("stale", known);
  const highest = Math.max(known?.revision.event.revision ?? -Infinity, notice.revision ?? -Infinity);
  return {
    outcome: "withdrawn",
    known: {
      kind: "withdrawn",
      id: notice.id,
      watermark: Number.isFinite(highest) ? instant(highest) : askedAt,
      anchor: anchorOf(known),
      receivedAt: at,
      deletedAt: at,
      endings: known === undefined ? [] : ended(known, at),
      descriptors: known?.descriptors ?? 0,
      ...gone(known, at),
    },
    warning: null,
    ask: false,
  };
}

/** Kept only while it says more than the receipt. */
function gone(known: KnownEvent | undefined, at: Instant): { readonly goneUntil?: Instant } {
  const until = goneUntil(known, at);
  return until === undefined ? {} : { goneUntil: until };
}

const unchanged = (outcome: "repeat" | "stale" | "unproven", known: KnownEvent | undefined): Intake => ({
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
