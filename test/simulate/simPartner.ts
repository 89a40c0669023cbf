import type { Delivery } from "../../src/core/delivery.ts";
import type { Answered } from "../../src/vtn/exchange.ts";
import { failed } from "../../src/vtn/failed.ts";
import { eventFrom, failureOf, type Fetched, listFrom } from "../../src/vtn/fetched.ts";
import { writeTimespan } from "../../src/vtn/wire/timespan.ts";
import { type EventId, type Instant, millis } from "../../src/core/units.ts";
import type { TrueEvent } from "./oracle.ts";
import type { Misanswer, PlannedAsk, PlannedEvent } from "./plan.ts";

const DEADLINE = 10_000;
const SLOW = 4_000;

interface PartnerOptions {
  readonly midnight: number;
  /** True time: it stamps revisions. */
  readonly truth: () => Instant;
  /** The gateway's: it stamps receipts. */
  readonly gateway: () => Instant;
  readonly random: () => number;
}

/** The partner: what it truly has, every revision there ever was, and how it answers. */
export class SimPartner {
  readonly events = new Map<string, TrueEvent>();
  /** Every revision that was ever issued, by event, oldest first. */
  readonly history = new Map<string, TrueEvent[]>();
  /** Undefined: well. */
  answers: Misanswer | undefined;
  requests = 0;
  readonly #options: PartnerOptions;
  readonly #bodies = new WeakMap<Delivery, string>();
  #settled: string | null = null;
  #lastRevision = 0;
  #list: string | null = null;

  constructor(options: PartnerOptions) {
    this.#options = options;
  }

  /** Takes a revision in and answers the webhook body that tells of it. */
  put(plan: PlannedEvent, sameTime: boolean): unknown {
    const before = this.events.get(plan.id);
    const revised = sameTime && before !== undefined ? before.revised : this.#stamp();
    const event = { plan, revised, created: before?.created ?? revised };
    this.events.set(plan.id, event);
    this.history.set(plan.id, [...(this.history.get(plan.id) ?? []), event]);
    this.#list = null;
    return this.#wire(event);
  }

  /** Forgets an event and answers the body of the notice; null: it was not there. */
  withdraw(id: string): unknown {
    const before = this.events.get(id);
    if (before === undefined) return null;
    this.events.delete(id);
    this.#list = null;
    const object = { ...this.#wire(before), modificationDateTime: moment(this.#stamp()) };
    return { objectType: "EVENT", operation: "DELETE", object };
  }

  async list(): Promise<Fetched> {
    const how = this.answers;
    const body = how === "empty" ? "[]" : how === "partial" ? this.#someOfIt() : this.#all();
    const answer = await this.#answer(200, body);
    if (answer.kind === "failed") return answer;
    const failure = failureOf(answer, []);
    if (failure !== null) return failure;
    if (body === this.#settled) return { kind: "unchanged", at: answer.at, skew: null };
    const fetched = listFrom(answer, null);
    if (fetched.kind === "read") this.#bodies.set(fetched.delivery, body);
    return fetched;
  }

  async event(id: EventId): Promise<Fetched> {
    const found = this.events.get(id);
    const body = found === undefined ? "{}" : JSON.stringify(this.#wire(found));
    const answer = await this.#answer(found === undefined ? 404 : 200, body);
    if (answer.kind === "failed") return answer;
    return failureOf(answer, [404]) ?? eventFrom(id, answer, null);
  }

  /** As the real client: after a committed list the same bytes are "unchanged", after anything else they are not. */
  settled(delivery: Delivery): void {
    this.#settled = this.#bodies.get(delivery) ?? null;
  }

  /** A new client knows of no list that was settled. */
  newClient(): void {
    this.#settled = null;
  }

  async #answer(status: number, body: string): Promise<Answered | ReturnType<typeof failed>> {
    const how = this.answers;
    const { gateway, random } = this.#options;
    const askedAt = gateway();
    this.requests += 1;
    const takes = how === "silent" ? DEADLINE : how === "slow" ? SLOW * random() : 20 + 80 * random();
    await new Promise((resolve) => setTimeout(resolve, takes));
    if (how === "silent") return failed("no answer", null, null);
    return {
      kind: "answered",
      status: how === "error" ? 503 : status,
      headers: { "content-type": "application/json" },
      chunks: [Buffer.from(how === "garbage" ? body.slice(0, body.length - 2) : body)],
      askedAt,
      at: gateway(),
    };
  }

  #all(): string {
    this.#list ??= JSON.stringify([...this.events.values()].map((event) => this.#wire(event)));
    return this.#list;
  }

  #someOfIt(): string {
    const { random } = this.#options;
    const some = [...this.events.values()].filter(() => random() < 0.5);
    return JSON.stringify(some.map((event) => this.#wire(event)));
  }

  /** Two revisions never share a moment unless they are meant to. */
  #stamp(): number {
    this.#lastRevision = Math.max(this.#options.truth(), this.#lastRevision + 1);
    return this.#lastRevision;
  }

  /** partner-interface 2.1. */
  #wire({ plan, revised, created }: TrueEvent) {
    return {
      ID: plan.id,
      name: plan.id,
      createdDateTime: moment(created),
      modificationDateTime: moment(revised),
      programID: "PRG-1",
      priority: plan.priority,
      targets: [{ targetType: "vehicle", values: plan.vehicles }],
      intervalPeriod: {
        start: moment(this.#options.midnight + plan.start),
        duration: writeTimespan(millis(plan.duration)),
        ...(plan.spread > 0 ? { randomizeStart: writeTimespan(millis(plan.spread)) } : {}),
      },
      payload: payload(plan.ask),
    };
  }
}

const moment = (at: number): string => new Date(at).toISOString();

function payload(ask: PlannedAsk) {
  switch (ask.kind) {
    case "current":
      return { payloadType: "CurrentLevel", targetCurrent: ask.amperes };
    case "power":
      return { payloadType: "PowerLevel", targetPower: ask.kilowatts };
    case "unknown":
      return { payloadType: "Unknown", targetCurrent: 1 };
  }
}
