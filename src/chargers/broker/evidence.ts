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

/** Number of ends, or of publishes without an answer, in a row at one topic that is no coincidence. */
const TELLING_FAULTS = 3;
/** Short connections in a row, after which publishes leave one at a time to find the topic. */
const MANY_ENDS = 2;
/** First time aside. It is short, as a weak link may be to blame, and doubles with each further end. */
const FIRST_ASIDE_MS = 60_000;
const LONGEST_ASIDE_MS = 600_000;
/** Memory of the ends at a topic. It is longer than the pause before a failed publish is tried again. */
const SUSPECTED_MS = 180_000;
/** Longest time from an answer to the end that a denial causes. A second client with our id ends the connection at any time. */
const AT_ONCE_MS = 1_000;
/** Filters in a SUBSCRIBE that every broker takes. AWS IoT hangs up at more. */
const FEW_FILTERS = 8;

const complaint = (fault: string, topic: string): string =>
  `the broker ${fault}; does its access list allow it? (topic ${topic})`;

interface Aside {
  readonly refusal: Refusal;
  readonly end: NodeJS.Timeout;
}

/**
 * Topics that a broker does not allow, and does not refuse either: it hangs up, as MQTT 3.1.1 has no other answer, or
 * never answers. Such a topic is set aside: otherwise it would end the connection for all chargers again and again.
 * Outlives the connections of a session.
 */
export class HangUps {
  readonly #presence: string;
  /** Suspects: topics at which connections ended, with the number of ends since the last answer. */
  readonly #ends = new Map<string, number>();
  /** Publishes without an answer in a row, by topic. */
  readonly #silences = new Map<string, number>();
  readonly #setAside = new Map<string, Aside>();
  /** Latest time aside of a topic that was not answered since. */
  readonly #asideMs = new Map<string, number>();
  /** Topic of the latest answer of this connection. Undefined: none yet, or our presence. */
  #latest: string | undefined;
  #outlived: NodeJS.Timeout | undefined;
  #forgetting: NodeJS.Timeout | undefined;
  #shortConnections = 0;
  #lostSubscriptions = 0;
  #takesManyFilters = false;

  /** `presence`: a topic that is never set aside. Until it is answered, a connection is not up. */
  constructor(presence: string) {
    this.#presence = presence;
  }

  /** True: publishes leave one at a time, so that an end shows its topic. */
  get isSearching(): boolean {
    return this.#shortConnections >= MANY_ENDS || this.#ends.size > 0;
  }

  /** Filters in a SUBSCRIBE. Undefined: the usual number. Each two losses try the other: the link may be to blame. */
  get mostFilters(): number | undefined {
    const isShort = Math.floor(this.#lostSubscriptions / MANY_ENDS) % 2 === 1;
    return isShort && !this.#takesManyFilters ? FEW_FILTERS : undefined;
  }

  /** Undefined: the topic is not set aside. */
  refusal(topic: string): Refusal | undefined {
    return this.#setAside.get(topic)?.refusal;
  }

  /** The broker answered a subscription of so many filters. */
  onSubscribed(filters: number): void {
    this.#takesManyFilters ||= filters > FEW_FILTERS;
  }

  /** Some brokers answer what they deny before they hang up. An answer thus clears the topic of the one before it. */
  onAnswer(topic: string): void {
    const late = this.#setAside.get(topic);
    clearTimeout(late?.end);
    this.#setAside.delete(topic);
    this.#silences.delete(topic);
    if (this.#latest !== topic) this.#clear(this.#latest);
    if (topic === this.#presence) this.#clear(topic);
    this.#latest = topic === this.#presence ? undefined : topic;
    clearTimeout(this.#outlived);
    if (!this.isSearching) return;
    this.#outlived = setTimeout(() => {
      this.#clear(this.#latest);
      this.#latest = undefined;
    }, AT_ONCE_MS).unref();
  }

  /** The connection lasts. The search goes on while a topic is suspected: its publish may wait for its next try. */
  onSteady(): void {
    this.#shortConnections = 0;
    this.#lostSubscriptions = this.mostFilters === undefined ? 0 : MANY_ENDS;
  }

  /**
   * The broker answered later publishes only. Such a publish is tried again, and its topic is set aside at the third time in a
   * row. Undefined: of a subscription or our presence, the connection is broken.
   */
  onSilence(topic: string | null): Refusal | undefined {
    if (topic === null || topic === this.#presence) return undefined;
    const silences = (this.#silences.get(topic) ?? 0) + 1;
    this.#silences.set(topic, silences);
    const fault = "does not answer publishes on this topic";
    if (silences < TELLING_FAULTS) return { ok: false, retry: true, reason: complaint(fault, topic) };
    return this.#putAside(topic, fault, () => {});
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
    this.#suspect(topic, ends);
    const fault = "ends the connection at publishes on this topic";
    if (topic === this.#presence) return ends === TELLING_FAULTS ? complaint(fault, topic) : undefined;
    if (ends < TELLING_FAULTS) return undefined;
    this.#shortConnections = 0;
    this.#ends.delete(topic);
    // A single end is enough from then on: each costs all chargers their connection.
    return this.#putAside(topic, fault, () => this.#suspect(topic, TELLING_FAULTS - 1)).reason;
  }

  #suspect(topic: string, ends: number): void {
    this.#ends.set(topic, ends);
    clearTimeout(this.#forgetting);
    this.#forgetting = setTimeout(() => this.#ends.clear(), SUSPECTED_MS).unref();
  }

  #clear(topic: string | undefined): void {
    if (topic === undefined) return;
    this.#ends.delete(topic);
    this.#asideMs.delete(topic);
  }

  #putAside(topic: string, fault: string, onEnd: () => void): Refusal {
    const ms = Math.min((this.#asideMs.get(topic) ?? FIRST_ASIDE_MS / 2) * 2, LONGEST_ASIDE_MS);
    this.#asideMs.set(topic, ms);
    const reason = `set aside for ${ms / 60_000} min: ${complaint(fault, topic)}`;
    const refusal = { ok: false, retry: false, reason } as const;
    const end = setTimeout(() => {
      this.#setAside.delete(topic);
      onEnd();
    }, ms).unref();
    this.#setAside.set(topic, { refusal, end });
    return refusal;
  }
}
