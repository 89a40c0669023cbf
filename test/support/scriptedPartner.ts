import type { Delivery, Fetched } from "../../src/domain/delivery.ts";
import type { PostAnswer } from "../../src/domain/report.ts";
import { type EventId, eventId, instant, iso, millis } from "../../src/domain/units.ts";
import { runToEnd } from "../../src/platform/cooperative.ts";
import { eventFrom, failureOf, listFrom } from "../../src/vtn/client.ts";
import { type Answered, failed } from "../../src/vtn/http.ts";
import { aDialect } from "./aDialect.ts";
import { virtualNow } from "./virtualTime.ts";
import type { WireEvent } from "./wireEvent.ts";
import type { ListIndex } from "../../src/vtn/dialects/dialect.ts";

/** "silent": it never answers, and the request is given up. */
export type Manner = "well" | "silent" | { readonly status: number; readonly retryAfter?: string };

interface SettledList {
  readonly body: string;
  readonly index: ListIndex | null;
}

/** The partner's event service as a test wants it: what it answers goes through the real readers of the wire. */
export class ScriptedPartner {
  /** All it has, by id. */
  readonly events = new Map<string, WireEvent>();
  answers: Manner = "well";
  /** Events that the list leaves out although a fetch by id finds them. */
  readonly unlisted = new Set<string>();
  /** "00:00:00.050 list", "08:00:00.000 EV-1". */
  readonly asked: string[] = [];
  takesMs = 50;
  /** Every report that was handed to it: when, and the body. */
  readonly posted: { readonly at: string; readonly body: string }[] = [];
  /** How it answers them. */
  takesReports: Manner = "well";
  /** A request is under way. */
  busy = false;
  readonly #lists = new WeakMap<Delivery, SettledList>();
  #settled: SettledList | null = null;
  #otherAt = instant(0);

  async list(): Promise<Fetched> {
    const events = [...this.events.values()].filter(({ ID }) => !this.unlisted.has(ID));
    const body = JSON.stringify(events);
    const answer = await this.#ask("list", 200, body);
    if (answer.kind === "failed") return answer;
    const failure = failureOf(answer, []);
    if (failure !== null) return failure;
    if (body === this.#settled?.body) return { kind: "unchanged", at: answer.at, skew: null };
    const fetched = runToEnd(listFrom(aDialect(), answer, null, this.#settled?.index ?? null));
    if (fetched.kind === "read") this.#lists.set(fetched.delivery, { body, index: fetched.index });
    return fetched;
  }

  async event(id: EventId): Promise<Fetched> {
    const found = this.events.get(id);
    const answer = await this.#ask(id, found === undefined ? 404 : 200, JSON.stringify(found ?? {}));
    if (answer.kind === "failed") return answer;
    return failureOf(answer, [404]) ?? eventFrom(aDialect(), eventId(id), answer, null);
  }

  /** As the real client, whatever the manner. */
  async post(body: string): Promise<PostAnswer> {
    this.posted.push({ at: iso(virtualNow()).slice(11, 23), body });
    const manner = this.takesReports;
    await new Promise((resolve) => setTimeout(resolve, manner === "silent" ? 60_000 : this.takesMs));
    if (manner === "silent") return { kind: "silent", reason: "no answer", retryAfter: null };
    if (manner === "well")
      return { kind: "answered", status: 201, text: `R-${this.posted.length}`, retryAfter: null };
    const retryAfter = manner.retryAfter === undefined ? null : millis(Number(manner.retryAfter) * 1000);
    return { kind: "answered", status: manner.status, text: "said the partner", retryAfter };
  }

  /**
   * As the real client: after a committed list the same bytes are "unchanged", and entries with the same bytes are left
   * out; after anything else they are not.
   */
  settled(delivery: Delivery): void {
    const list = this.#lists.get(delivery);
    this.#settled = list !== undefined && delivery.askedAt > this.#otherAt ? list : null;
    if (list === undefined) this.#otherAt = delivery.at;
  }

  async #ask(what: string, status: number, body: string): Promise<Answered | ReturnType<typeof failed>> {
    const askedAt = virtualNow();
    this.asked.push(`${iso(askedAt).slice(11, 23)} ${what}`);
    const manner = this.answers;
    this.busy = true;
    await new Promise((resolve) => setTimeout(resolve, manner === "silent" ? 10_000 : this.takesMs));
    this.busy = false;
    if (manner === "silent") return failed("no answer", null, null);
    const headers: Record<string, string> = { "content-type": "application/json" };
    if (manner !== "well" && manner.retryAfter !== undefined) headers["retry-after"] = manner.retryAfter;
    return {
      kind: "answered",
      status: manner === "well" ? status : manner.status,
      headers,
      body: Buffer.from(body),
      askedAt,
      at: virtualNow(),
    };
  }
}
