import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";

import type { Sent } from "../../domain/command.ts";
import { backoff } from "../../platform/clock.ts";
import { topicFault } from "../profile/render.ts";
import { Connection, type PublishOptions } from "./connection.ts";
import {
  brokerTiming,
  type BrokerTiming,
  createClient,
  type BrokerAddress,
  afterFailure,
  afterSuccess,
  firstChoice,
  type VersionChoice,
} from "./createClient.ts";
import type { Ended } from "./inFlight.ts";

export interface BrokerSessionOptions {
  readonly address: BrokerAddress;
  /** Where it stands in the configuration, e.g. `mqtt`: what is to be put right is told by its key. */
  readonly section: string;
  readonly clientId: string;
  /** Retained `true` while we are there, `false` when we are not (last will). */
  readonly presenceTopic: string;
  /** Subscribed with QoS 1 on every connection. */
  readonly filters: readonly string[];
  /** A fraction for the jitter of the back-off. */
  readonly random: () => number;
  readonly log: Logger;
  /** Everything is subscribed, and what the broker had retained has arrived. Nothing of before is sent again. */
  readonly onUp: () => void;
  /** An attempt has found no broker: told once, until there is one. */
  readonly onAbsent?: () => void;
  /** Never called for our own stop. */
  readonly onDown: (reason: string) => void;
  readonly onMessage: (topic: string, payload: Buffer, retained: boolean) => void;
  /** Publishes without a PUBACK at a time. */
  readonly window?: number;
  readonly timing?: Partial<BrokerTiming>;
}

const WINDOW = 20;

/** This many lost connections within this time are more than a broker's restart. */
const MANY_DROPS = 3;
const DROPS_COUNT_FOR_MS = 600_000;

/** Reasons that one outage may give in the log: a broker that words each refusal anew fills no disk. */
const REASONS_OF_AN_OUTAGE = 16;

/** Keeps one broker connected: a new client for every attempt, nothing queued, nothing ever replayed (DESIGN 2). */
export class BrokerSession implements AsyncDisposable {
  readonly #options: BrokerSessionOptions;
  readonly #timing: BrokerTiming;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  #connection: Connection | undefined;
  #up = false;
  /** Resolved once the first attempt has led to a connection, or to none. */
  readonly #firstAttempt = Promise.withResolvers<void>();
  #choice: VersionChoice = firstChoice;
  /** Attempts since the last connection that lasted. */
  #attempt = 0;
  /** The reasons that this outage has given so far; none: there is none. */
  readonly #said = new Set<string>();
  #end: Ended | null = null;
  #recentDrops = 0;
  /** Topics that are being tried, and whether the broker says that nobody subscribes to them. */
  readonly #tried = new Map<string, boolean>();

  /** Starts at once; `onUp` says when it is there. */
  constructor(options: BrokerSessionOptions) {
    this.#options = options;
    this.#timing = { ...brokerTiming, ...options.timing };
    this.#running = this.#run();
  }

  get connected(): boolean {
    return this.#up;
  }

  /** Connections that were lost within the last ten minutes, by whoever's fault but our own stop. */
  get recentDrops(): number {
    return this.#recentDrops;
  }

  /** Why it is not there, as far as is known, in a sentence to go on. */
  get trouble(): string {
    return describeTrouble(this.#end, this.#place(), this.#options.section);
  }

  /**
   * QoS 1. Settles within the PUBACK deadline of its turn. Refused at once while there is no connection, but for the first
   * attempt after the start, whose end it waits for: each start would else record commands as not sent.
   */
  async publish(topic: string, payload: string, options: PublishOptions): Promise<Sent> {
    const fault = topicFault(topic);
    if (fault !== null) return { ok: false, retry: false, reason: fault };
    if (!this.#up) await this.#firstAttempt.promise;
    if (!this.#up || this.#connection === undefined)
      return { ok: false, retry: true, reason: "broker not connected" };
    return this.#connection.publish(topic, payload, options);
  }

  /** Which MQTT the connection speaks, and what the broker has refused to subscribe. */
  get terms(): { readonly version: 4 | 5; readonly refusedFilters: readonly string[] } {
    return { version: this.#choice.version, refusedFilters: this.#connection?.refusedFilters ?? [] };
  }

  /** As `publish`, and whether anybody subscribes to the topic, which only MQTT 5 brokers tell. */
  async tryPublish(
    topic: string,
    payload: string,
  ): Promise<{ readonly sent: Sent; readonly isHeard: boolean }> {
    this.#tried.set(topic, true);
    const sent = await this.publish(topic, payload, { retain: false });
    const isHeard = this.#tried.get(topic) ?? true;
    this.#tried.delete(topic);
    return { sent, isHeard };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#connection?.close();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const end = await this.#attemptOnce();
      this.#firstAttempt.resolve();
      const nap = this.#delayAfter(end);
      if (!signal.aborted) await sleep(nap, undefined, { signal }).catch(() => undefined);
    }
  }

  /** From CONNECT to the end of that connection. */
  async #attemptOnce(): Promise<Ended> {
    const { onUp, onDown } = this.#options;
    const connection = this.#connect();
    if (typeof connection === "string") return { kind: "unreachable", reason: connection };
    this.#connection = connection;
    if (!(await connection.opened)) return connection.ended;
    this.#up = true;
    this.#welcome();
    const steady = setTimeout(() => (this.#attempt = 0), this.#timing.steadyAfter);
    onUp();
    this.#firstAttempt.resolve();
    const end = await connection.ended;
    clearTimeout(steady);
    this.#up = false;
    if (end.kind === "stopped") return end;
    this.#countDrop();
    onDown(end.reason);
    return end;
  }

  #connect(): Connection | string {
    const { address, clientId, presenceTopic, filters, onMessage, log, window = WINDOW } = this.#options;
    const { version } = this.#choice;
    const timing = this.#timing;
    const client = createClient({ address, clientId, version, presenceTopic, timing });
    if (typeof client === "string") return client;
    return new Connection(client, {
      version,
      filters,
      presenceTopic,
      window,
      timing,
      onMessage,
      onUnheard: (topic) => {
        if (this.#tried.has(topic)) this.#tried.set(topic, false);
        log.debug({ topic }, "published, but nobody subscribes to it");
      },
      onComplaint: (reason) => log.warn({ reason }, "broker restricts us"),
    });
  }

  #welcome(): void {
    const { log } = this.#options;
    this.#choice = afterSuccess(this.#choice);
    this.#said.clear();
    this.#end = null;
    log.info({ broker: this.#place(), mqtt: this.#choice.version === 5 ? "5" : "3.1.1" }, "broker connected");
  }

  /** What an end means for the next attempt; answers when that may be, in ms. */
  #delayAfter(end: Ended): number {
    switch (end.kind) {
      case "stopped":
        return 0;
      case "takenOver":
        this.#tellTakenOver(end);
        return this.#timing.takenOverPause;
      case "version": {
        const refused = this.#choice.version;
        this.#choice = afterFailure(this.#choice, "version");
        // An older broker is no outage; one that refuses both versions is.
        return refused === 5 ? 0 : this.#backOff(end);
      }
      case "unanswered":
        this.#choice = afterFailure(this.#choice, "unanswered");
        return this.#backOff(end);
      case "denied":
      case "refused":
      case "unreachable":
        this.#choice = afterFailure(this.#choice, "other");
        return this.#backOff(end);
      case "dropped":
        return this.#backOff(end);
    }
  }

  #backOff(end: Ended): number {
    this.#tell(end);
    const { random } = this.#options;
    const { backoffFloor, backoffCeiling } = this.#timing;
    const nap = backoff(this.#attempt, random(), backoffFloor, backoffCeiling);
    this.#attempt += 1;
    return nap;
  }

  /** What keeps us away may turn into something else meanwhile: each reason is told once, so that none hides the next. */
  #tell(end: Ended): void {
    const { log, onAbsent } = this.#options;
    const { reason } = end;
    this.#end = end;
    if (this.#said.size === 0 && end.kind !== "dropped") onAbsent?.();
    if (this.#said.has(reason) || this.#said.size >= REASONS_OF_AN_OUTAGE) {
      log.debug({ reason, attempt: this.#attempt }, "broker still unreachable");
      return;
    }
    this.#said.add(reason);
    const isRefusal = end.kind === "denied" || end.kind === "refused";
    log.warn({ broker: this.#place(), reason }, isRefusal ? this.trouble : "broker unreachable, retrying");
  }

  /** A client with our id, or a broker that does not want us, shows as a connection that does not last. */
  #countDrop(): void {
    this.#recentDrops += 1;
    setTimeout(() => (this.#recentDrops -= 1), DROPS_COUNT_FOR_MS).unref();
    if (this.#recentDrops !== MANY_DROPS) return;
    this.#options.log.error(
      { broker: this.#place(), drops: this.#recentDrops },
      "the broker connection was lost again and again: does another client use our client id or our user?",
    );
  }

  #tellTakenOver(end: Ended): void {
    this.#said.add(end.reason);
    this.#options.log.error(
      { broker: this.#place(), clientId: this.#options.clientId, reason: end.reason },
      "another client uses our client id: stepping down, is a second gateway of this site running?",
    );
  }

  /** Host and port: a url may hold a password. */
  #place(): string {
    return URL.parse(this.#options.address.url)?.host ?? "?";
  }
}

function describeTrouble(end: Ended | null, place: string, section: string): string {
  if (end === null) return `the broker ${place} cannot be reached`;
  const { kind, reason } = end;
  if (kind === "denied")
    return `the broker ${place} refuses us (${reason}): check ${section}.username and ${section}.password`;
  return `the broker ${place} ${kind === "refused" ? "refuses us" : "cannot be reached"} (${reason})`;
}
