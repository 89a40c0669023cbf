import type { Instant } from "../../domain/units.ts";
import { isUnder } from "../native/messages.ts";
import type { Refusal } from "./brokerAnswers.ts";

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

/** Ends in a row at one topic that are no chance. */
const TELLING_ENDS = 3;
/** Short connections in a row, after which publishes leave one at a time to find the topic. */
const MANY_ENDS = 2;
const SET_ASIDE_MS = 600_000;
/** A broker that denies a publish hangs up at once. Another client with our id ends the connection at any time. */
const AT_ONCE_MS = 1_000;
/** Filters in a SUBSCRIBE that every broker takes. AWS IoT hangs up at more. */
const FEW_FILTERS = 8;

const complaint = (fault: string, topic: string): string =>
  `the broker ${fault}; does its access list allow it? (topic ${topic})`;

/**
 * Topics that a broker does not allow, and does not refuse either: it hangs up, as MQTT 3.1.1 has no other answer, or
 * never answers. Such a topic is set aside: otherwise it would end the connection for all chargers again and again.
 * Outlives the connections of a session.
 */
export class HangUps {
  readonly #presence: string;
  readonly #ends = new Map<string, number>();
  readonly #setAside = new Map<string, Refusal>();
  /** Topic of the latest answer of this connection. Undefined: none yet, or our presence. */
  #latest: string | undefined;
  #outlived: NodeJS.Timeout | undefined;
  #shortConnections = 0;
  #lostSubscriptions = 0;

  /** `presence`: a topic that is never set aside. Until it is answered, a connection is not up. */
  constructor(presence: string) {
    this.#presence = presence;
  }

  /** True: publishes leave one at a time, so that an end shows its topic. */
  get isSearching(): boolean {
    return this.#shortConnections >= MANY_ENDS;
  }

  /** Filters in a SUBSCRIBE. Undefined: the usual number. */
  get mostFilters(): number | undefined {
    return this.#lostSubscriptions < MANY_ENDS ? undefined : FEW_FILTERS;
  }

  /** Undefined: the topic is not set aside. */
  refusal(topic: string): Refusal | undefined {
    return this.#setAside.get(topic);
  }

  /** Some brokers answer what they deny before they hang up. An answer thus clears the topic of the one before it. */
  onAnswer(topic: string): void {
    if (this.#latest !== undefined && this.#latest !== topic) this.#ends.delete(this.#latest);
    this.#latest = topic === this.#presence ? undefined : topic;
    clearTimeout(this.#outlived);
    if (this.isSearching) this.#outlived = setTimeout(() => (this.#latest = undefined), AT_ONCE_MS).unref();
  }

  /** The connection lasts. */
  onSteady(): void {
    this.#shortConnections = 0;
    if (this.mostFilters === undefined) this.#lostSubscriptions = 0;
  }

  /** The broker answered later publishes only. Undefined: a subscription. */
  onSilence(topic: string | null): Refusal | undefined {
    return topic === null ? undefined : this.#putAside(topic, "does not answer publishes on this topic");
  }

  /**
   * The connection was lost. `unanswered`: topics of the publishes in flight, null for a subscription. Returns a complaint
   * about a topic that was set aside.
   */
  onDrop(unanswered: readonly (string | null)[]): string | undefined {
    const [topic = this.#latest] = unanswered;
    this.#latest = undefined;
    if (topic === null) this.#lostSubscriptions += 1;
    if (topic === undefined || topic === null) return undefined;
    const isFound = this.isSearching && unanswered.length <= 1;
    this.#shortConnections += 1;
    if (!isFound) return undefined;
    const ends = (this.#ends.get(topic) ?? 0) + 1;
    this.#ends.set(topic, ends);
    const fault = "ends the connection at publishes on this topic";
    if (topic === this.#presence) return ends === TELLING_ENDS ? complaint(fault, topic) : undefined;
    if (ends < TELLING_ENDS) return undefined;
    this.#shortConnections = 0;
    return this.#putAside(topic, fault).reason;
  }

  #putAside(topic: string, fault: string): Refusal {
    const reason = `set aside for 10 min: ${complaint(fault, topic)}`;
    const refusal = { ok: false, retry: false, reason } as const;
    this.#setAside.set(topic, refusal);
    setTimeout(() => this.#setAside.delete(topic), SET_ASIDE_MS).unref();
    return refusal;
  }
}
