import { factOf, type Json } from "../../src/domain/audit.ts";
import {
  fractionOf,
  type Share,
  shareOf,
  shouldHold,
  type Standing,
  type TrueEvent,
} from "../simulate/oracle.ts";
import type { SetPayload } from "../support/aFloor.ts";
import type { Story } from "./story.ts";

/** What a depot learned about an event, and when: of all times the only one that is taken from its own record. */
interface Learned {
  /** Of its row: what was received and what was taken in are milliseconds apart, and a decision may lie between. */
  readonly seq: number;
  readonly at: number;
  readonly event: string;
  /** Undefined: the partner never said that. */
  readonly step: number | undefined;
  readonly now: TrueEvent | null;
  readonly before: TrueEvent | null;
}

/** What is left for one vehicle of a revision that was replaced or withdrawn while it acted on it (DESIGN 5.2). */
interface Tail extends Share {
  readonly event: TrueEvent;
}

const LONGEST_TAIL = 600_000;

/** What each charger of a depot should have been doing at any moment, by what that depot knew by then. */
export class Expected {
  readonly learned: readonly Learned[];
  readonly #story: Story;
  readonly #shares = new Map<TrueEvent, Map<string, Share | null>>();

  constructor(story: Story) {
    this.#story = story;
    const known = new Map<string, TrueEvent | null>();
    this.learned = story.rows.flatMap((row) => {
      const outcome = factOf(row.facts, "outcome");
      if (row.kind !== "event" || row.event === null || outcome === null) return [];
      const steps = story.history.get(row.event) ?? [];
      const revision = momentIn(row.facts, "revision");
      const step = steps.findIndex((said) =>
        outcome === "withdrawn" ? said === null : said?.revised === revision,
      );
      const [now, before] = [steps[step] ?? null, known.get(row.event) ?? null];
      known.set(row.event, now);
      return [{ seq: row.seq, at: row.at, event: row.event, step: step < 0 ? undefined : step, now, before }];
    });
  }

  readonly share = (event: TrueEvent, vehicle: string): Share | null => {
    const known = this.#shares.get(event) ?? new Map<string, Share | null>();
    this.#shares.set(event, known);
    const share = known.has(vehicle)
      ? (known.get(vehicle) ?? null)
      : shareOf(event, vehicle, this.#story.site);
    known.set(vehicle, share);
    return share;
  };

  /** By what is recorded before row `seq`. */
  at(charger: string, moment: number, seq = Number.POSITIVE_INFINITY): Standing {
    const { site } = this.#story;
    const planned = site.chargers.find(({ id }) => id === charger);
    const vehicle = site.vehicles.find((candidate) => candidate.charger === charger);
    if (planned === undefined || vehicle === undefined) return { kind: "free" };
    const past = this.learned.filter((known) => known.at <= moment && known.seq < seq);
    const byEvent = [...Map.groupBy(past, ({ event }) => event).values()];
    const live = byEvent.flatMap((changes) => changes.at(-1)?.now ?? []);
    const left = new Map(
      byEvent.flatMap((changes) => {
        const tail = this.#tailAfter(changes, vehicle.id);
        // Of its own, so that what counts and what is left of it cannot be taken for each other.
        return tail === null ? [] : [[{ ...tail.event }, tail] as const];
      }),
    );
    return shouldHold(
      planned,
      vehicle,
      [...live, ...left.keys()],
      site,
      moment,
      (event, id) => left.get(event) ?? this.share(event, id),
    );
  }

  /** What is left of an event by what is recorded before row `seq`; null: nothing. */
  tailOf(event: string, vehicle: string, seq: number): Tail | null {
    const changes = this.learned.filter((known) => known.event === event && known.seq < seq);
    return this.#tailAfter(changes, vehicle);
  }

  /** Every moment at which it can change for this charger, in order. */
  boundaries(charger: string): readonly number[] {
    const vehicle = this.#story.site.vehicles.find((candidate) => candidate.charger === charger);
    if (vehicle === undefined) return [];
    const moments = [...Map.groupBy(this.learned, ({ event }) => event).values()].flatMap((changes) =>
      changes.flatMap(({ at, now }, index) => {
        const share = now === null ? null : this.share(now, vehicle.id);
        const tail = this.#tailAfter(changes.slice(0, index + 1), vehicle.id);
        return [
          at,
          ...(share === null ? [] : [share.from, share.until]),
          ...(tail === null ? [] : [tail.from, tail.until]),
        ];
      }),
    );
    return [...new Set(moments)].toSorted((a, b) => a - b);
  }

  /**
   * After all that was learned of one event, in order: a vehicle that acted on what was replaced is released at its own
   * end or at T + u x min(spread, 10 min), if the next revision has nothing else for it until then.
   */
  #tailAfter(changes: readonly Learned[], vehicle: string): Tail | null {
    let tail: Tail | null = null;
    let since = Number.NEGATIVE_INFINITY;
    for (const { at, before } of changes) {
      const share = before === null ? null : this.share(before, vehicle);
      if (before !== null && share !== null && share.from <= at) {
        // What came in time for this vehicle took over from what was left.
        if (since < share.until) tail = null;
        if (at < share.until) tail = { event: before, from: at, until: this.#release(before, vehicle, at) };
      }
      since = at;
    }
    const next = changes.at(-1)?.now ?? null;
    const share = next === null ? null : this.share(next, vehicle);
    if (tail === null || share === null) return tail;
    const beside: Tail =
      since < share.until
        ? { ...tail, until: Math.min(tail.until, share.from) }
        : { ...tail, from: Math.max(tail.from, share.until) };
    return beside.from < beside.until ? beside : null;
  }

  #release(event: TrueEvent, vehicle: string, at: number): number {
    const { site } = this.#story;
    const spread = Math.min(event.plan.spread, LONGEST_TAIL);
    const own = this.share(event, vehicle)?.until ?? at;
    return Math.min(own, at + Math.floor(fractionOf(event.plan, vehicle, site) * spread));
  }
}

/** Of an ISO text among the facts of a row, ms since the epoch; NaN: there is none. */
export function momentIn(facts: Json, name: string): number {
  const fact = factOf(facts, name);
  return typeof fact === "string" ? Date.parse(fact) : Number.NaN;
}

/** What a command asks of its charger at a moment. */
export function standingOf(set: SetPayload | undefined, moment: number): Standing {
  if (set === undefined || (set.until !== null && Date.parse(set.until) <= moment)) return { kind: "free" };
  switch (set.kind) {
    case "current":
    case "power":
      return { kind: set.kind, value: set.value ?? Number.NaN };
    case "pause":
      return { kind: "pause" };
    default:
      return { kind: "free" };
  }
}
