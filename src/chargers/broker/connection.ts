import { Socket } from "node:net";
import type { IConnackPacket, MqttClient, Packet } from "mqtt";

import type { Sent } from "../../domain/command.ts";
import type { BrokerTiming } from "./createClient.ts";
import {
  endOfClose,
  endOfDisconnect,
  endOfError,
  endOfSilence,
  refusalOf,
  refusalOfSize,
  refusedIn,
  sentOf,
  type Ended,
  filtersPerPacket,
} from "./brokerAnswers.ts";
import { type InFlight, inFlightWindow } from "./flowControl.ts";
import { arrivedIsRead, idleMs, type SharedPlaces } from "../../platform/cooperative.ts";
import type { HangUps, TopicEvidence } from "./evidence.ts";

export interface PublishOptions {
  readonly retain: boolean;
  /**
   * Validity of the message in whole seconds. It is read at the time of the real publish, after the wait
   * for a slot. Zero or less: the message is not sent. The broker gets it on MQTT 5 only.
   */
  readonly expirySeconds?: () => number;
  /** Called before the publish settles, if the broker reports that the topic has no subscriber (MQTT 5). */
  readonly onNoSubscriber?: () => void;
}

export interface ConnectionSettings {
  readonly version: 4 | 5;
  readonly filters: readonly string[];
  readonly presenceTopic: string;
  /** Most publishes without a PUBACK, however quick the broker is. The broker may ask for fewer. */
  readonly window: number;
  /** Shared with other connections. Absent: no other limit. */
  readonly quota?: SharedPlaces | undefined;
  readonly timing: BrokerTiming;
  readonly onMessage: (topic: string, payload: Buffer, retained: boolean) => void;
  /** Default: `idleMs`. */
  readonly waitedMs?: () => number;
  /** Notes what the broker allows. Absent: not noted. */
  readonly evidence?: TopicEvidence | undefined;
  /** Absent: a connection that is tried once. */
  readonly hangUps?: HangUps | undefined;
  /** Refused subscriptions and a refused presence are logged. They do not end the connection. */
  readonly onComplaint: (reason: string) => void;
}

const STOPPED: Ended = { kind: "stopped", reason: "stopping" };

/** An MQTT connection, from CONNECT to its end. It is never reused. */
export class Connection {
  readonly #client: MqttClient;
  readonly #settings: ConnectionSettings;
  readonly #opened = Promise.withResolvers<boolean>();
  readonly #over = Promise.withResolvers<Ended>();
  /** Exchanges without an answer, in their order, with the topic of a publish. Null: a subscription. */
  readonly #pending = new Map<(sent: Sent) => void, string | null>();
  #exchanges = 0;
  /** Number of the latest exchange that has its answer. */
  #latestAnswered = 0;
  /** Callbacks of `onNoSubscriber`, by the id of the publish that awaits its PUBACK. */
  readonly #waiting = new Map<number, () => void>();
  #acknowledged: (() => void)[] = [];
  #refusedFilters: readonly string[] = [];
  /** Undefined before CONNACK, which gives its size. */
  #window: InFlight | undefined;
  /** Bytes of a packet that the broker takes. MQTT 3.1.1 brokers do not tell. */
  #largest = Number.POSITIVE_INFINITY;
  #greeted = false;
  #leaving = false;
  #end: Ended | undefined;

  constructor(client: MqttClient, settings: ConnectionSettings) {
    this.#client = client;
    this.#settings = settings;
    const { stream } = client;
    const isReached = (): boolean => stream instanceof Socket && !stream.connecting;
    client.on("error", (error) => this.#finish(endOfError(error, this.#greeted, isReached())));
    // Some errors (a websocket refused with a status) reach only the stream; "close" follows without a reason.
    stream.on("error", (error: Error) => this.#finish(endOfError(error, this.#greeted)));
    client.on("disconnect", (packet) => this.#finish(endOfDisconnect(packet.reasonCode ?? 0)));
    client.on("close", () => this.#finish(endOfClose(this.#greeted)));
    client.on("connect", (packet) => void this.#open(packet));
    client.on("packetreceive", (packet) => this.#onPacket(packet));
    client.on("message", (topic, payload, packet) => {
      if (this.#end !== undefined) return;
      settings.evidence?.received(topic);
      settings.onMessage(topic, payload, packet.retain);
    });
  }

  /** True once every filter is subscribed and our `true` is published. False: the connection ended before. */
  get opened(): Promise<boolean> {
    return this.#opened.promise;
  }

  get evidence(): TopicEvidence | undefined {
    return this.#settings.evidence;
  }

  /** Filters whose subscription the broker refused. */
  get refusedFilters(): readonly string[] {
    return this.#refusedFilters;
  }

  /** Publishes that may be in flight now. */
  get window(): number {
    return this.#window?.width ?? 0;
  }

  get ended(): Promise<Ended> {
    return this.#over.promise;
  }

  /** QoS 1. Settles at the PUBACK, at its deadline, or at the end of the connection. */
  async publish(topic: string, payload: string, options: PublishOptions): Promise<Sent> {
    const window = this.#window;
    const { waitedMs = idleMs } = this.#settings;
    if (window === undefined || !(await window.enter())) return this.#notSent();
    // Retained messages are no commands, but states, alarms and discovery.
    const place = this.#settings.quota?.enter(!options.retain);
    const leave = place instanceof Promise ? await place : place;
    const began = waitedMs();
    try {
      return await this.#exchange(topic, payload, options);
    } finally {
      leave?.();
      window.leave(waitedMs() - began);
    }
  }

  /** Publishes `false` and disconnects. If this takes too long it is cut short: the last will publishes `false`. */
  async close(): Promise<void> {
    if (this.#end !== undefined) return;
    this.#leaving = true;
    const timer = setTimeout(() => this.#finish(STOPPED), this.#settings.timing.stopWithin);
    this.#window?.close();
    if (this.#greeted) {
      await this.#exchange(this.#settings.presenceTopic, "false", { retain: true });
      this.#client.end(false);
    } else this.#finish(STOPPED);
    await this.ended;
    clearTimeout(timer);
  }

  async #open(connack: IConnackPacket): Promise<void> {
    const { filters, presenceTopic, window, hangUps } = this.#settings;
    this.#greeted = true;
    const { receiveMaximum = window, maximumPacketSize = this.#largest } = connack.properties ?? {};
    this.#window = inFlightWindow(Math.min(window, receiveMaximum), () => hangUps?.isSearching === true);
    this.#largest = maximumPacketSize;
    await this.#subscribe(filters, 0);
    // Retained messages arrive before this PUBACK, so a connection that is up has received them.
    const announced = await this.#exchange(presenceTopic, "true", { retain: true });
    if (!announced.ok) this.#complain(`${presenceTopic}: ${announced.reason}`);
    this.#settings.evidence?.opened();
    this.#opened.resolve(this.#isStaying);
  }

  get #isStaying(): boolean {
    return this.#end === undefined && !this.#leaving;
  }

  /** Failures during our own stop are not the broker's fault. */
  #complain(reason: string | undefined): void {
    if (reason !== undefined && this.#isStaying) this.#settings.onComplaint(reason);
  }

  /** Subscribes again, as an access list may have changed. MQTT 3.1.1 would repeat retained messages: only refused filters. */
  async tryFilters(): Promise<void> {
    const { version, filters } = this.#settings;
    await this.#subscribe(version === 5 ? filters : this.#refusedFilters, 1);
  }

  /** Subscribes in packets of a size that the broker accepts. `rh` 1: retained messages of new subscriptions only (MQTT 5). */
  async #subscribe(filters: readonly string[], rh: 0 | 1): Promise<void> {
    let complaint: string | null = null;
    const allRefused: string[] = [];
    const perPacket = filtersPerPacket(filters, this.#largest, this.#settings.hangUps?.mostFilters);
    for (let at = 0; at < filters.length; at += perPacket) {
      const sent = await this.#beforeDeadline(null, (settle) => {
        const some = filters.slice(at, at + perPacket);
        this.#client.subscribe(some, { qos: 1, rh }, (error) => {
          const refused = error === null ? [] : refusedIn(error, some);
          const { hangUps } = this.#settings;
          if (error === null || refused.length > 0) hangUps?.onSubscribed(some.length);
          else if (this.#end === undefined) hangUps?.onDrop([null]);
          allRefused.push(...refused);
          const reason = error === null ? null : refusalOf(error, refused);
          settle(reason === null ? { ok: true } : { ok: false, retry: false, reason });
        });
      });
      if (!sent.ok) complaint ??= sent.reason;
    }
    this.#refusedFilters = allRefused;
    if (complaint !== null) this.#complain(`subscription: ${complaint}`);
  }

  #exchange(topic: string, payload: string, options: PublishOptions): Promise<Sent> {
    const { retain, expirySeconds, onNoSubscriber } = options;
    const expiry = expirySeconds?.();
    if (expiry !== undefined && expiry <= 0) {
      return Promise.resolve({ ok: false, retry: false, reason: "its time passed while it waited" });
    }
    const refusal =
      refusalOfSize(topic, payload, this.#largest) ?? this.#settings.hangUps?.refusal(topic) ?? null;
    if (refusal !== null) {
      this.#settings.evidence?.published(topic, refusal.reason);
      return Promise.resolve(refusal);
    }
    const properties =
      this.#settings.version === 5 && expiry !== undefined ? { messageExpiryInterval: expiry } : undefined;
    return this.#beforeDeadline(topic, (settle) => {
      // The library calls back at once while it disconnects; there is no id yet.
      let id = Number.NaN;
      this.#client.publish(
        topic,
        payload,
        { qos: 1, retain, ...(properties === undefined ? {} : { properties }) },
        (error) => {
          this.#waiting.delete(id);
          const sent = sentOf(error, topic);
          if (sent.ok || !sent.retry) this.#settings.evidence?.published(topic, sent.ok ? null : sent.reason);
          this.#settleLater(() => settle(sent));
        },
      );
      id = this.#client.getLastMessageId();
      if (onNoSubscriber !== undefined) this.#waiting.set(id, onNoSubscriber);
    });
  }

  /** Acknowledgements of one read are settled together: the next publishes leave in one write. Small writes cost the most. */
  #settleLater(settle: () => void): void {
    this.#acknowledged.push(settle);
    if (this.#acknowledged.length === 1) setImmediate(() => this.#settle());
  }

  #settle(): void {
    const acknowledged = this.#acknowledged;
    this.#acknowledged = [];
    for (const settle of acknowledged) settle();
  }

  /** The library waits without end, and drops its callbacks when the broker hangs up. `topic`: null for a subscription. */
  #beforeDeadline(topic: string | null, send: (settle: (sent: Sent) => void) => void): Promise<Sent> {
    if (this.#end !== undefined) return Promise.resolve(this.#notSent());
    const { ackDeadline } = this.#settings.timing;
    const { promise, resolve } = Promise.withResolvers<Sent>();
    const number = (this.#exchanges += 1);
    const deadline = setTimeout(() => {
      void arrivedIsRead().then(() => {
        if (!this.#pending.has(settle)) return;
        // A broker answers in order (MQTT 5, 4.6): it dropped this one, and works.
        const refusal = number < this.#latestAnswered ? this.#settings.hangUps?.onSilence(topic) : undefined;
        if (refusal === undefined) return this.#finish(endOfSilence(topic, ackDeadline));
        if (!refusal.retry) this.#complain(refusal.reason);
        settle(refusal);
      });
    }, ackDeadline);
    const settle = (sent: Sent): void => {
      clearTimeout(deadline);
      this.#pending.delete(settle);
      if (this.#end === undefined) this.#latestAnswered = Math.max(this.#latestAnswered, number);
      if (sent.ok && topic !== null) this.#settings.hangUps?.onAnswer(topic);
      resolve(sent);
    };
    this.#pending.set(settle, topic);
    send(settle);
    return promise;
  }

  /** The publish callback does not report "no subscribers". The packet does. */
  #onPacket(packet: Packet): void {
    if (packet.cmd === "puback" && packet.reasonCode === 0x10) this.#waiting.get(packet.messageId ?? 0)?.();
  }

  #notSent(): Sent {
    return { ok: false, retry: true, reason: (this.#end ?? STOPPED).reason };
  }

  #finish(end: Ended): void {
    if (this.#end !== undefined) return;
    this.#settle();
    if (end.kind === "dropped") this.#complain(this.#settings.hangUps?.onDrop([...this.#pending.values()]));
    this.#end = this.#leaving ? STOPPED : end;
    this.#window?.close();
    for (const settle of this.#pending.keys()) settle(this.#notSent());
    // A client that is already disconnecting ignores a second, forced end. Its socket does not.
    this.#client.end(true);
    this.#client.stream.destroy();
    this.#opened.resolve(false);
    this.#over.resolve(this.#end);
  }
}
