import type { Notice } from "../../domain/delivery.ts";
import {
  type CoordinationEvent,
  anchorOf,
  goneUntil,
  isDatedAhead,
  type KnownEvent,
} from "../../domain/event.ts";
import { type EventId, type Instant, instant, iso, later } from "../../domain/units.ts";
import { endingsWith, stillEnding } from "./endings.ts";

/** Any notice of an event except a rejected one. */
export type EventNotice = Exclude<Notice, { kind: "rejected" }>;

export interface Intake {
  /** `unproven`: a delete without a revision; a fetch by id decides. */
  readonly outcome: "new" | "changed" | "repeat" | "stale" | "withdrawn" | "unproven";
  /** The event's state afterwards. The very same object where nothing changed. */
  readonly known: KnownEvent | undefined;
  /** A contradiction for the record and the log. Null: none. */
  readonly warning: string | null;
  /** A webhook contradicts what is known, or may be a replay: a fetch by id decides. */
  readonly fetchById: boolean;
}

/** Source and times of a received notice. */
interface Receipt {
  readonly source: "webhook" | "fetch";
  readonly at: Instant;
  /** Time of the request. A fetched answer is not older than this. Equal to `at` for a webhook. */
  readonly askedAt: Instant;
}

/**
 * Applies a notice to the known event: newer replaces, the same hash is a repeat, older is stale.
 * Any order and duplication of notices followed by one fetch gives one state.
 */
export function intake(known: KnownEvent | undefined, notice: EventNotice, receipt: Receipt): Intake {
  switch (notice.kind) {
    case "event":
      return known === undefined
        ? accept(notice.event, known, receipt)
        : compare(known, notice.event, receipt);
    case "deleted":
      // A captured delete can be replayed, also after the event was created again.
      if (
        known?.kind !== "withdrawn" &&
        (notice.revision === null || isOutdated(notice.revision, known, receipt))
      )
        return { ...unchanged("unproven", known), fetchById: true };
      return withdraw(known, notice, receipt);
    case "gone":
      if (known?.kind === "withdrawn") return unchanged("repeat", known);
      return known !== undefined && arrivedSince(known, receipt)
        ? unchanged("stale", known)
        : withdraw(known, { id: notice.id, revision: null }, receipt);
  }
}

/** The event arrived by webhook after the fetch that lacks it was requested. */
const arrivedSince = ({ receivedAt }: KnownEvent, { at, askedAt }: Receipt): boolean =>
  askedAt < receivedAt && receivedAt <= at;

function compare(known: KnownEvent, event: CoordinationEvent, receipt: Receipt): Intake {
  if (known.kind === "withdrawn") {
    const revived =
      event.revision > known.watermark || (receipt.source === "fetch" && receipt.askedAt >= known.deletedAt);
    if (revived) return accept(event, known, receipt);
    const fetchById = receipt.source === "webhook" && isOutdated(event.revision, known, receipt);
    return { ...unchanged("stale", known), fetchById };
  }
  const { event: current } = known.revision;
  if (event.hash === current.hash) {
    const confirmed = receipt.source === "fetch" && known.source === "webhook";
    return unchanged("repeat", confirmed ? { ...known, source: "fetch" } : known);
  }
  if (event.revision > current.revision) {
    const accepted = accept(event, known, receipt);
    // A repeat of a webhook whose date is wrong must not undo what a fetch has decided.
    const isDoubtful =
      isDatedAhead(event.revision, receipt.at) && !isDatedAhead(current.revision, receipt.at);
    return { ...accepted, fetchById: isDoubtful && receipt.source === "webhook" };
  }
  if (event.revision < current.revision) {
    const isLate = receipt.source === "fetch" && receipt.askedAt < known.receivedAt;
    if (isLate || !isOutdated(event.revision, known, receipt)) return unchanged("stale", known);
    const dated = `event ${event.id} came with other content and an earlier date than ${iso(current.revision)}, which lies more than a day ahead`;
    return settleContradiction(known, event, receipt, dated);
  }
  if (isSameContent(event, current))
    return unchanged("repeat", {
      ...known,
      revision: { ...known.revision, event: { ...current, hash: event.hash } },
      source: receipt.source === "fetch" ? "fetch" : known.source,
    });
  const same = `event ${event.id} came with the same modification time but other content`;
  return settleContradiction(known, event, receipt, same);
}

/** True: the stored date is later, but lies too far ahead of our clock to count. */
const isOutdated = (revision: Instant, known: KnownEvent | undefined, { at }: Receipt): boolean => {
  const stored = known?.kind === "live" ? known.revision.event.revision : known?.watermark;
  return stored !== undefined && revision < stored && isDatedAhead(stored, at);
};

/**
 * True: only the notation of the start differs. The stored revision is from an earlier release.
 * Its hash and start offsets depended on that notation.
 */
const isSameContent = (event: CoordinationEvent, current: CoordinationEvent): boolean =>
  event.start !== "now" &&
  JSON.stringify({ ...event, wireStart: "", hash: "" }) ===
    JSON.stringify({ ...current, wireStart: "", hash: "" });

/**
 * An edit that leaves start and range alone keeps every start offset.
 * That includes offsets that an earlier release derived from another notation of the start.
 * "Now" is excluded: its text on the wire counts (src/README.md, "Random start").
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

/** An edit rarely changes the targets, so the revisions of an event share one list in memory. */
const withSharedTargets = (
  event: CoordinationEvent,
  current: CoordinationEvent | undefined,
): CoordinationEvent =>
  current !== undefined && JSON.stringify(event.targets) === JSON.stringify(current.targets)
    ? { ...event, targets: current.targets }
    : event;

/**
 * Other content whose modification time shows no order: the fetched content wins. Between two webhooks a fetch by id
 * decides.
 */
function settleContradiction(
  known: KnownEvent & { kind: "live" },
  event: CoordinationEvent,
  receipt: Receipt,
  contradiction: string,
): Intake {
  if (receipt.source === "fetch") {
    return { ...accept(event, known, receipt), warning: `${contradiction}: what was fetched wins` };
  }
  if (known.source === "fetch") {
    const warning = `${contradiction} by webhook: what was fetched before stays until a fetch decides`;
    return { ...unchanged("stale", known), warning, fetchById: true };
  }
  return {
    ...unchanged("stale", known),
    warning: `${contradiction} in two webhooks: a fetch decides`,
    fetchById: true,
  };
}

function accept(received: CoordinationEvent, known: KnownEvent | undefined, { source, at }: Receipt): Intake {
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
      endings: live === undefined ? stillEnding(known?.endings ?? [], at) : endingsWith(live, at),
      descriptors: Math.max(known?.descriptors ?? 0, event.reports.length),
      ...keptGoneUntil(known, at),
    },
    warning: null,
    fetchById: false,
  };
}

/**
 * "Now" means the first receipt. Later revisions with "now" keep that moment.
 * A withdrawn event that returns unchanged keeps it too. A new event of that id gets a new moment.
 */
const keptAnchor = (event: CoordinationEvent, known: KnownEvent | undefined): Instant | null =>
  known?.kind === "withdrawn" && event.revision > known.watermark ? null : anchorOf(known);

function withdraw(
  known: KnownEvent | undefined,
  notice: { readonly id: KnownEvent["id"]; readonly revision: Instant | null },
  { at, askedAt }: Receipt,
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
      endings: known === undefined ? [] : endingsWith(known, at),
      descriptors: known?.descriptors ?? 0,
      ...keptGoneUntil(known, at),
    },
    warning: null,
    fetchById: false,
  };
}

/** Kept only while it is later than the receipt. */
function keptGoneUntil(known: KnownEvent | undefined, at: Instant): { readonly goneUntil?: Instant } {
  const until = goneUntil(known, at);
  return until === undefined ? {} : { goneUntil: until };
}

const unchanged = (outcome: "repeat" | "stale" | "unproven", known: KnownEvent | undefined): Intake => ({
  outcome,
  known,
  warning: null,
  fetchById: false,
});

/** Events that one body names twice with the same modification time and different content. */
export function contradictions(notices: readonly Notice[]): ReadonlySet<EventId> {
  const first = new Map<string, string>();
  const contradicted = new Set<EventId>();
  for (const notice of notices) {
    if (notice.kind !== "event") continue;
    const { id, revision, hash } = notice.event;
    const before = first.get(`${revision} ${id}`);
    if (before === undefined) first.set(`${revision} ${id}`, hash);
    else if (before !== hash) contradicted.add(id);
  }
  return contradicted;
}

/**
 * Keeps one notice per event: the highest revision, and of equal revisions the later one.
 * A delete separates: notices before it are what it deletes, and notices after it create the event again.
 */
export function latestNotices(notices: readonly Notice[]): readonly Notice[] {
  const best = new Map<EventId, number>();
  const outdone = new Set<number>();
  notices.forEach((notice, index) => {
    if (notice.kind === "deleted") best.delete(notice.id);
    if (notice.kind !== "event") return;
    const { id, revision } = notice.event;
    const before = best.get(id) ?? -1;
    const rival = notices[before];
    const isOlder = rival?.kind === "event" && revision < rival.event.revision;
    if (rival !== undefined) outdone.add(isOlder ? index : before);
    if (!isOlder) best.set(id, index);
  });
  return outdone.size === 0 ? notices : notices.filter((_, index) => !outdone.has(index));
}
