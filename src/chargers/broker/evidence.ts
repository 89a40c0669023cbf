import type { Instant } from "../../domain/units.ts";
import { isUnder } from "../native/messages.ts";

/** A filter with a +. */
interface Wild {
  readonly filter: string;
  readonly levels: readonly string[];
}

const wildIn = (filters: readonly string[]): readonly Wild[] =>
  filters.filter((filter) => filter.includes("+")).map((filter) => ({ filter, levels: filter.split("/") }));

/** Cap on remembered refusals. */
const MOST_REFUSALS = 1_000;

/** Publishes and messages of one connection: they show what its broker allows. */
export class TopicEvidence {
  readonly #now: () => Instant;
  readonly #written: readonly Wild[];
  readonly #accepted = new Set<string>();
  readonly #refused = new Map<string, string>();
  readonly #received = new Set<string>();
  /** Filters by which no message has come, without a + and with one. */
  readonly #silent: Set<string>;
  #silentWild: readonly Wild[];
  #since: Instant | null = null;

  /** `written`: topics of the access list. One with a + stands for those of all chargers, which would take memory. */
  constructor(filters: readonly string[], written: readonly string[], now: () => Instant) {
    this.#now = now;
    this.#written = wildIn(written);
    this.#silent = new Set(filters.filter((filter) => !filter.includes("+")));
    this.#silentWild = wildIn(filters);
  }

  /** Null: the subscriptions are not answered yet. */
  get since(): Instant | null {
    return this.#since;
  }

  opened(): void {
    this.#since = this.#now();
  }

  /** `refusal`: reason of the broker. Null: it accepted the publish. */
  published(topic: string, refusal: string | null): void {
    if (refusal === null) {
      this.#refused.delete(topic);
      this.#accepted.add(this.#listed(topic));
    } else if (this.#refused.size < MOST_REFUSALS) this.#refused.set(topic, refusal);
  }

  received(topic: string): void {
    if (this.#silent.delete(topic)) this.#received.add(topic);
    if (this.#silentWild.length === 0) return;
    const found = this.#silentWild.filter(({ levels }) => isUnder(topic, levels));
    if (found.length === 0) return;
    for (const { filter } of found) this.#received.add(filter);
    this.#silentWild = this.#silentWild.filter((each) => !found.includes(each));
  }

  isReceived(filter: string): boolean {
    return this.#received.has(filter);
  }

  /** `listed`: a topic as the access list has it. */
  isAccepted(listed: string): boolean {
    return this.#accepted.has(listed);
  }

  /** Refused topics with the reason, by the topic of the access list. */
  refusals(): ReadonlyMap<string, readonly (readonly [topic: string, reason: string])[]> {
    return Map.groupBy(this.#refused, ([topic]) => this.#listed(topic));
  }

  #listed(topic: string): string {
    return this.#written.find(({ levels }) => isUnder(topic, levels))?.filter ?? topic;
  }
}
