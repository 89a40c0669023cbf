import type { Instant } from "../domain/units.ts";

/** Counted of each station, with the text of its metric. */
export const COUNTED = {
  connections: "Connections of a station.",
  replaced: "Connections that a newer one of the same identity replaced.",
  messages: "Messages of a station.",
  malformed: "Messages that could not be read.",
  tooLarge: "Messages over 256 KiB. Each ended its connection.",
  unanswered: "Requests without an answer.",
  unexpected: "Answers to no request.",
  clockWrong: "Messages with an impossible time.",
  outOfOrder: "Meter values that are older than known ones.",
  boots: "Starts of a station.",
  bootsAfterProfile: "Starts within a minute after a charging profile.",
  flooded: "Pauses of a station that sent too much.",
  refusedLogins: "Refused logins of a known station.",
  otherConnectors: "Messages of a connector that the configuration lacks.",
  foreignProfiles: "Requests of the upstream that change charging profiles.",
} as const;

export type Counted = keyof typeof COUNTED;

export type Counts = Readonly<Record<Counted, number>>;

/** A fault counts as one of now for this long, ms. */
const RECENT = 3_600_000;

/** Counts of a station since our start, and the time of the last occurrence. */
export class StationCounts {
  readonly #counts: Record<Counted, number>;
  readonly #lastAt = new Map<Counted, Instant>();
  readonly #now: () => Instant;

  constructor(now: () => Instant) {
    this.#now = now;
    this.#counts = Object.fromEntries(Object.keys(COUNTED).map((kind) => [kind, 0])) as Record<
      Counted,
      number
    >;
  }

  add(kind: Counted): void {
    this.#counts[kind] += 1;
    this.#lastAt.set(kind, this.#now());
  }

  of(kind: Counted): number {
    return this.#counts[kind];
  }

  get all(): Counts {
    return { ...this.#counts };
  }

  /** The count, where the last one is recent. Zero: none in the last hour. */
  recent(kind: Counted): number {
    const at = this.#lastAt.get(kind);
    return at !== undefined && this.#now() - at < RECENT ? this.#counts[kind] : 0;
  }
}
