import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";

import type { Sent } from "../../domain/command.ts";
import { backoff } from "../../platform/clock.ts";
import type { SharedPlaces } from "../../platform/cooperative.ts";
import { topicFault } from "../native/messages.ts";
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
import { describeTrouble, type Ended } from "./brokerAnswers.ts";
import { HangUps, type TopicEvidence } from "./evidence.ts";

export interface BrokerSessionOptions {
  readonly address: BrokerAddress;
  /** Configuration section, e.g. `mqtt`. Messages name its keys. */
  readonly section: string;
  readonly clientId: string;
  /** Retained: `true` while we are connected, `false` otherwise (last will). */
  readonly presenceTopic: string;
  /** Subscribed with QoS 1 on every connection. */
  readonly filters: readonly string[];
  /** False: another process may command the chargers, and its session is not taken. Absent: always true. */
  readonly mayConnect?: (() => boolean) | undefined;
  /** Fraction for the jitter of the back-off. */
  readonly random: () => number;
  readonly log: Logger;
  /** All filters are subscribed, and retained messages have arrived. Earlier publishes are not sent again. */
  readonly onUp: () => void;
  /** An attempt failed. Called once per outage. */
  readonly onAbsent?: () => void;
  /** Our own stop does not call it. */
  readonly onDown: (reason: string) => void;
  readonly onMessage: (topic: string, payload: Buffer, retained: boolean) => void;
  /** Notes what the broker allows, for each connection. Absent: not noted. */
  readonly evidence?: () => TopicEvidence;
  /** Most publishes without a PUBACK at a time. */
  readonly window?: number;
  /** Shared with other connections. Absent: no other limit. */
  readonly quota?: SharedPlaces | undefined;
  readonly timing?: Partial<BrokerTiming>;
}

/** More than this no broker needs, and a lost connection leaves as many open. */
const WIDEST = 500;

/** More than the restart of a broker causes. */
const MANY_DROPS = 3;
const DROPS_COUNT_FOR_MS = 600_000;

/** Reasons logged per outage. A broker that words each refusal differently must not fill the disk. */
const REASONS_OF_AN_OUTAGE = 16;

/** Keeps one broker connected. Each attempt uses a new client. Nothing is queued or replayed. */
export class BrokerSession implements AsyncDisposable {
  readonly #options: BrokerSessionOptions;
  readonly #timing: BrokerTiming;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  #connection: Connection | undefined;
  #up = false;
  readonly #attempted = Promise.withResolvers<void>();
  /** Settled when the first attempt has succeeded or failed. */
  readonly firstAttempt = this.#attempted.promise;
  readonly #hangUps: HangUps;
  #choice: VersionChoice = firstChoice;
  /** Attempts since the last lasting connection. */
  #attempt = 0;
  /** Reasons logged during this outage. Empty: no outage. */
  readonly #loggedReasons = new Set<string>();
  #end: Ended | null = null;
  #recentDrops = 0;

  /** Connects at once. `onUp` is called when connected. */
  constructor(options: BrokerSessionOptions) {
    this.#options = options;
    this.#timing = { ...brokerTiming, ...options.timing };
    this.#hangUps = new HangUps(options.presenceTopic);
    this.#running = this.#run();
  }

  get connected(): boolean {
    return this.#up;
  }

  /** Publishes that may be in flight now. 0: not connected. */
  get window(): number {
    return this.#connection?.window ?? 0;
  }

  /** Connections lost within the last ten minutes, except by our own stop. */
  get recentDrops(): number {
    return this.#recentDrops;
  }

  /** Reason why the broker is not connected, as a sentence. */
  get trouble(): string {
    return describeTrouble(this.#end, this.#host(), this.#options.section);
  }

  /**
   * QoS 1. Settles within the PUBACK deadline, counted from its slot. Without a connection it fails at
   * once. During the first attempt after the start it waits: otherwise each start would record commands as
   * not sent.
   */
  async publish(topic: string, payload: string, options: PublishOptions): Promise<Sent> {
    const fault = topicFault(topic);
    if (fault !== null) return { ok: false, retry: false, reason: fault };
    if (!this.#up) await this.firstAttempt;
    if (!this.#up || this.#connection === undefined)
      return { ok: false, retry: true, reason: "broker not connected" };
    const onNoSubscriber = (): void => {
      this.#options.log.debug({ topic }, "published on a topic without subscribers");
      options.onNoSubscriber?.();
    };
    return this.#connection.publish(topic, payload, { ...options, onNoSubscriber });
  }

  /** MQTT version of the connection, the filters that the broker refused, and what it showed of its access list. */
  get terms() {
    const { refusedFilters = [], evidence } = this.#connection ?? {};
    return { version: this.#choice.version, refusedFilters, evidence };
  }

  /** Subscribes again: the broker answers by its present access list. */
  async tryFilters(): Promise<void> {
    if (this.#up) await this.#connection?.tryFilters();
  }

  /** `publish` that also reports whether the topic has a subscriber, which needs MQTT 5. */
  async tryPublish(
    topic: string,
    payload: string,
    retain = false,
  ): Promise<{ readonly sent: Sent; readonly hasSubscriber: boolean }> {
    let hasSubscriber = true;
    const onNoSubscriber = (): void => void (hasSubscriber = false);
    const sent = await this.publish(topic, payload, { retain, onNoSubscriber });
    return { sent, hasSubscriber };
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
      this.#attempted.resolve();
      const delay = this.#delayAfter(end);
      if (!signal.aborted) await sleep(delay, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Runs a single connection from CONNECT to its end. */
  async #attemptOnce(): Promise<Ended> {
    const { onUp, onDown } = this.#options;
    const connection = this.#connect();
    if (typeof connection === "string") return { kind: "unreachable", reason: connection };
    this.#connection = connection;
    if (!(await connection.opened)) return connection.ended;
    this.#up = true;
    this.#onConnected();
    const steady = setTimeout(() => this.#onSteady(), this.#timing.steadyAfter);
    onUp();
    this.#attempted.resolve();
    const end = await connection.ended;
    clearTimeout(steady);
    this.#up = false;
    if (end.kind === "stopped") return end;
    this.#countDrop();
    onDown(end.reason);
    return end;
  }

  #onSteady(): void {
    this.#attempt = 0;
    this.#hangUps.onSteady();
  }

  #connect(): Connection | string {
    const { address, clientId, presenceTopic, filters, onMessage, log, window = WIDEST } = this.#options;
    if (this.#options.mayConnect?.() === false) return "another process may lead the site";
    const { version } = this.#choice;
    const timing = this.#timing;
    const client = createClient({ address, clientId, version, presenceTopic, timing });
    if (typeof client === "string") return client;
    return new Connection(client, {
      version,
      filters,
      presenceTopic,
      window,
      quota: this.#options.quota,
      timing,
      onMessage,
      evidence: this.#options.evidence?.(),
      hangUps: this.#hangUps,
      onComplaint: (reason) => log.warn({ reason }, "broker restricts us"),
    });
  }

  #onConnected(): void {
    const { log } = this.#options;
    this.#choice = afterSuccess(this.#choice);
    this.#loggedReasons.clear();
    this.#end = null;
    log.info({ broker: this.#host(), mqtt: this.#choice.version === 5 ? "5" : "3.1.1" }, "broker connected");
  }

  /** Delay before the next attempt, ms. Chooses its MQTT version as well. */
  #delayAfter(end: Ended): number {
    switch (end.kind) {
      case "stopped":
        return 0;
      case "takenOver":
        this.#logTakenOver(end);
        return this.#timing.takenOverPause;
      case "version": {
        const refused = this.#choice.version;
        this.#choice = afterFailure(this.#choice, "version");
        // An older broker is no outage. A broker that refuses both versions is.
        return refused === 5 ? 0 : this.#backOff(end);
      }
      case "unanswered":
      case "silent":
        this.#choice = afterFailure(this.#choice, end.kind);
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
    this.#logEnd(end);
    const { random } = this.#options;
    const { backoffFloor, backoffCeiling } = this.#timing;
    const delay = backoff(this.#attempt, random(), backoffFloor, backoffCeiling);
    this.#attempt += 1;
    return delay;
  }

  /** Logs each reason once per outage: the reason may change, and the new one must be seen. */
  #logEnd(end: Ended): void {
    const { log, onAbsent } = this.#options;
    const { reason } = end;
    this.#end = end;
    if (this.#loggedReasons.size === 0 && end.kind !== "dropped") onAbsent?.();
    if (this.#loggedReasons.has(reason) || this.#loggedReasons.size >= REASONS_OF_AN_OUTAGE) {
      log.debug({ reason, attempt: this.#attempt }, "broker still unreachable");
      return;
    }
    this.#loggedReasons.add(reason);
    const isRefusal = end.kind === "denied" || end.kind === "refused";
    log.warn({ broker: this.#host(), reason }, isRefusal ? this.trouble : "broker unreachable, retrying");
  }

  /** Connections that do not last point to another client with our id, or to a broker that refuses us. */
  #countDrop(): void {
    this.#recentDrops += 1;
    setTimeout(() => (this.#recentDrops -= 1), DROPS_COUNT_FOR_MS).unref();
    if (this.#recentDrops !== MANY_DROPS) return;
    this.#options.log.error(
      { broker: this.#host(), drops: this.#recentDrops },
      "the broker connection was lost again and again: does another client use our client id or our user?",
    );
  }

  #logTakenOver(end: Ended): void {
    this.#end = end;
    this.#loggedReasons.add(end.reason);
    this.#options.log.error(
      { broker: this.#host(), clientId: this.#options.clientId, reason: end.reason },
      "another client uses our client id: stepping down, is a second gateway of this site running?",
    );
  }

  /** Host and port only: a URL may hold a password. */
  #host(): string {
    return URL.parse(this.#options.address.url)?.host ?? "?";
  }
}
