import { factOf, type Json } from "../../src/core/audit.ts";
import { type Share, shareOf, shouldHold, type Standing, type TrueEvent } from "../simulate/oracle.ts";
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

  /**
   * By what is recorded before row `seq`. Null: an edit or a withdrawal has cut something short, and the vehicle may or
   * may not have been released yet.
   */
  at(charger: string, moment: number, seq = Number.POSITIVE_INFINITY): Standing | null {
    const { site } = this.#story;
    const planned = site.chargers.find(({ id }) => id === charger);
    const vehicle = site.vehicles.find((candidate) => candidate.charger === charger);
    if (planned === undefined || vehicle === undefined) return { kind: "free" };
    const past = this.learned.filter((known) => known.at <= moment && known.seq < seq);
    if (past.some((change) => this.#isTail(change, vehicle.id, moment))) return null;
    const known = new Map(past.map(({ event, now }) => [event, now]));
    const live = [...known.values()].filter((event) => event !== null);
    return shouldHold(planned, vehicle, live, site, moment, this.share);
  }

  /** Every moment at which it can change for this charger, in order. */
  boundaries(charger: string): readonly number[] {
    const vehicle = this.#story.site.vehicles.find((candidate) => candidate.charger === charger);
    if (vehicle === undefined) return [];
    const moments = this.learned.flatMap((change) => {
      const share = change.now === null ? null : this.share(change.now, vehicle.id);
      const tail = this.tailOf(change, vehicle.id);
      return [
        change.at,
        ...(share === null ? [] : [share.from, share.until]),
        ...(tail === null ? [] : [tail]),
      ];
    });
    return [...new Set(moments)].toSorted((a, b) => a - b);
  }

  /** Until when at most a vehicle is held by what this change has replaced; null: it was not (DESIGN 5.2). */
  tailOf({ at, before }: Learned, vehicle: string): number | null {
    if (before === null) return null;
    const share = this.share(before, vehicle);
    if (share === null || at < share.from || share.until <= at) return null;
    return Math.min(share.until, at + Math.min(before.plan.spread, LONGEST_TAIL));
  }

  #isTail(change: Learned, vehicle: string, moment: number): boolean {
    const tail = this.tailOf(change, vehicle);
    return tail !== null && change.at <= moment && moment < tail;
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
