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

/** A refused attempt to connect. */
interface RefusedAttempt {
  readonly identity: string;
  readonly address: string;
  readonly reason: string;
  readonly count: number;
}

/** Cap on refused identities that are shown. */
const MOST_SHOWN = 200;

/** Refused attempts to connect. The latest identities are kept. */
export class RefusedAttempts {
  readonly #attempts = new Map<string, RefusedAttempt>();
  count = 0;

  get latest(): readonly RefusedAttempt[] {
    return [...this.#attempts.values()];
  }

  /** Times that this identity was refused for this reason. */
  add(identity: string, address: string, reason: string): number {
    this.count += 1;
    const key = `${identity} ${reason}`;
    const count = (this.#attempts.get(key)?.count ?? 0) + 1;
    this.#attempts.delete(key);
    this.#attempts.set(key, { identity, address, reason, count });
    const [oldest] = this.#attempts.keys();
    if (this.#attempts.size > MOST_SHOWN && oldest !== undefined) this.#attempts.delete(oldest);
    return count;
  }
}
