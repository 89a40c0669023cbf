import type { Delivery, Fetched } from "../../src/domain/delivery.ts";
import { type EventId, type Instant, instant } from "../../src/domain/units.ts";
import { runToEnd } from "../../src/platform/cooperative.ts";
import { type EventPlan, type WireEvent, wireEvent } from "../../src/sim/events.ts";
import { eventFrom, failureOf, listFrom } from "../../src/vtn/client.ts";
import type { Answered } from "../../src/vtn/http.ts";
import { aDialect } from "../support/aDialect.ts";

const TAKES_MS = 50;

/** A partner that never fails, as the real readers of the wire see it. */
export class QuietPartner {
  readonly #now: () => Instant;
  readonly #events = new Map<string, WireEvent>();
  readonly #bodies = new WeakMap<Delivery, string>();
  #settled: string | null = null;
  #list = "[]";

  constructor(now: () => Instant) {
    this.#now = now;
  }

  /** A new revision, as a webhook would bring it. */
  put(plan: EventPlan): WireEvent {
    const event = wireEvent(plan, this.#now());
    this.#events.set(plan.id, event);
    this.#relist();
    return event;
  }

  /** As if it had never been; answers what a webhook would bring of that. */
  withdraw(id: string): object {
    const object = { ...this.#events.get(id), modificationDateTime: new Date(this.#now()).toISOString() };
    this.forget(id);
    return { objectType: "EVENT", operation: "DELETE", object };
  }

  /** Over, and not listed any more. */
  forget(id: string): void {
    this.#events.delete(id);
    this.#relist();
  }

  async list(): Promise<Fetched> {
    const body = this.#list;
    const answer = await this.#answer(200, body);
    const failure = failureOf(answer, []);
    if (failure !== null) return failure;
    if (body === this.#settled) return { kind: "unchanged", at: answer.at, skew: null };
    const fetched = runToEnd(listFrom(aDialect(), answer, null));
    if (fetched.kind === "read") this.#bodies.set(fetched.delivery, body);
    return fetched;
  }

  async event(id: EventId): Promise<Fetched> {
    const found = this.#events.get(id);
    const answer = await this.#answer(found === undefined ? 404 : 200, JSON.stringify(found ?? {}));
    return failureOf(answer, [404]) ?? eventFrom(aDialect(), id, answer, null);
  }

  settled(delivery: Delivery): void {
    this.#settled = this.#bodies.get(delivery) ?? null;
  }

  #relist(): void {
    this.#list = JSON.stringify([...this.#events.values()]);
  }

  async #answer(status: number, body: string): Promise<Answered> {
    const askedAt = this.#now();
    await new Promise((resolve) => setTimeout(resolve, TAKES_MS));
    const headers = { "content-type": "application/json" };
    return {
      kind: "answered",
      status,
      headers,
      body: Buffer.from(body),
      askedAt,
      at: instant(this.#now()),
    };
  }
}
