import { createHmac } from "node:crypto";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import fastify, { type FastifyInstance } from "fastify";
import type { Logger } from "pino";
import { request } from "undici";

import { type Millis, instant, iso, millis, type Instant, hours } from "../domain/units.ts";
import type { WireEvent } from "./events.ts";
import { PartnerFaults, partnerRoutes, Tokens } from "./partnerRoutes.ts";
import { ReportTray } from "./reports.ts";

/** Webhook of a gateway, with the secret of its registration. */
export interface WebhookTarget {
  readonly url: string;
  readonly secret: string;
}

/** Outcome of one delivery. */
export interface Delivered {
  /** HTTP status of the last attempt; null: no answer, or stopped. */
  readonly status: number | null;
  readonly attempts: number;
  /** Body of the last answer. */
  readonly answer: string;
}

/** `X-Payload-Signature`: base64 of HMAC-SHA256 over the raw body (openadr3.md 0). */
export const signature = (body: string, secret: string): string =>
  createHmac("sha256", secret).update(body).digest("base64");

const RETRIES = 3;
const DEADLINE_MS = 10_000;

async function post(target: WebhookTarget, body: string, stop: AbortSignal) {
  try {
    const response = await request(target.url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-payload-signature": signature(body, target.secret),
      },
      body,
      signal: AbortSignal.any([stop, AbortSignal.timeout(DEADLINE_MS)]),
    });
    return { status: response.statusCode, answer: await response.body.text() };
  } catch {
    return { status: null, answer: "" };
  }
}

const succeeded = (status: number | null): boolean => status !== null && status >= 200 && status < 300;

/** Sends a signed body. Anything but 2xx is retried up to 3 times with doubling pauses, then dropped. */
async function sendSigned(
  target: WebhookTarget,
  body: string,
  firstPause: Millis,
  stop: AbortSignal,
): Promise<Delivered> {
  for (let attempts = 1; ; attempts += 1) {
    const answer = await post(target, body, stop);
    if (succeeded(answer.status) || attempts > RETRIES || stop.aborted) return { ...answer, attempts };
    await sleep(firstPause * 2 ** (attempts - 1), undefined, { signal: stop }).catch(() => undefined);
  }
}

export interface SimulatedPartnerOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Null: none registered yet, see `webhookTo`. */
  readonly webhook: WebhookTarget | null;
  /** Clock of the partner: for revisions and the `Date` header. */
  readonly now: () => Instant;
  readonly log: Logger;
  readonly envelope?: "array" | "events";
  /** Pause before the first retry of a delivery; doubles each time. */
  readonly retryAfter?: Millis;
}

/** CREATE and UPDATE send the bare event; DELETE an OpenADR notification. */
export type Operation = "CREATE" | "UPDATE" | "DELETE";

/** A simulated partner that implements partner-interface.md. */
export class SimulatedPartner implements AsyncDisposable {
  readonly #options: SimulatedPartnerOptions;
  readonly #server: FastifyInstance;
  readonly #tokens: Tokens;
  readonly #events = new Map<string, WireEvent>();
  /** Withdrawn events: a DELETE carries the event, and a later `put` is a newer revision. */
  readonly #withdrawn = new Map<string, WireEvent>();
  readonly #stop = new AbortController();
  #webhook: WebhookTarget | null;
  /** Reports that it accepted. */
  readonly reports = new ReportTray();
  /** Planned failures, latency and request counters. */
  readonly faults = new PartnerFaults();

  private constructor(options: SimulatedPartnerOptions) {
    this.#options = options;
    this.#webhook = options.webhook;
    this.#tokens = new Tokens({ ...options, lifetime: hours(1) });
    this.#server = fastify({ logger: false, routerOptions: { maxParamLength: 1024 } });
    partnerRoutes(this.#server, {
      tokens: this.#tokens,
      events: this.#events,
      reports: this.reports,
      faults: this.faults,
      envelope: options.envelope ?? "array",
      now: options.now,
    });
  }

  static async start(options: SimulatedPartnerOptions): Promise<SimulatedPartner> {
    const partner = new SimulatedPartner(options);
    await partner.#server.listen({ host: options.host, port: options.port });
    options.log.info({ url: partner.baseUrl }, "simulated partner listens");
    return partner;
  }

  /** Base URL of both path families and of the spot prices. */
  get baseUrl(): string {
    const { address, port } = this.#server.server.address() as AddressInfo;
    return `http://${address.includes(":") ? `[${address}]` : address}:${port}`;
  }

  get tokenUrl(): string {
    return `${this.baseUrl}/connect/token`;
  }

  /** Registers the webhook that `deliver` sends to. Null: removes it. */
  webhookTo(target: WebhookTarget | null): void {
    this.#webhook = target;
  }

  /** Rejects all tokens issued so far with 401. */
  revokeTokens(): void {
    this.#tokens.revoke();
  }

  /** Stores a new or changed event. Each call creates a newer revision than all before it. */
  put(event: WireEvent): WireEvent {
    const before = this.#events.get(event.ID) ?? this.#withdrawn.get(event.ID);
    const stored: WireEvent = {
      ...event,
      createdDateTime: before?.createdDateTime ?? event.createdDateTime,
      modificationDateTime: this.#newer(before),
    };
    this.#withdrawn.delete(event.ID);
    this.#events.set(event.ID, stored);
    return stored;
  }

  /** The current revision. Undefined: unknown or withdrawn. */
  stored(id: string): WireEvent | undefined {
    return this.#events.get(id);
  }

  /** Removes an event from the list; by id it is answered with 404. False: unknown event. */
  withdraw(id: string): boolean {
    const event = this.#events.get(id);
    if (!event) return false;
    this.#events.delete(id);
    this.#withdrawn.set(id, { ...event, modificationDateTime: this.#newer(event) });
    return true;
  }

  /** Removes every trace of an event. */
  forget(id: string): void {
    this.#events.delete(id);
    this.#withdrawn.delete(id);
  }

  /**
   * Sends a stored, withdrawn or given event to the webhook, signed, with retries (openadr3.md 0).
   * Null status: no webhook, no answer, or stopped. Throws for an unknown id.
   */
  async deliver(
    idOrEvent: string | WireEvent,
    { operation = "UPDATE" }: { readonly operation?: Operation } = {},
  ): Promise<Delivered> {
    const event =
      typeof idOrEvent === "string"
        ? (this.#events.get(idOrEvent) ?? this.#withdrawn.get(idOrEvent))
        : idOrEvent;
    if (!event) throw new Error(`no event ${JSON.stringify(idOrEvent)} was ever put`);
    if (!this.#webhook) return { status: null, attempts: 0, answer: "" };
    const sent = operation === "DELETE" ? { objectType: "EVENT", operation, object: event } : event;
    const delivered = await sendSigned(
      this.#webhook,
      JSON.stringify(sent),
      this.#options.retryAfter ?? millis(1000),
      this.#stop.signal,
    );
    const { status, attempts } = delivered;
    this.#options.log.debug({ event: event.ID, operation, status, attempts }, "webhook delivery finished");
    return delivered;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    this.#server.server.closeAllConnections();
    await this.#server.close();
  }

  /** Modification time that differs from the previous one, even within one millisecond. */
  #newer(before: WireEvent | undefined): string {
    const previous = before ? Date.parse(before.modificationDateTime) : 0;
    return iso(instant(Math.max(this.#options.now(), previous + 1)));
  }
}
