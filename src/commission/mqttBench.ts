import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";

import { BrokerSession } from "../chargers/brokerSession.ts";
import type { FleetBroker } from "../chargers/fleet.ts";
import { Heartbeats } from "../chargers/heartbeats.ts";
import type { Line } from "../chargers/line.ts";
import { nativeTopics, siteTopic } from "../chargers/native.ts";
import { nativeLine } from "../chargers/nativeLine.ts";
import type { Bound } from "../chargers/profile/bind.ts";
import { boundTo } from "../chargers/profile/equip.ts";
import { keepalivesOf } from "../chargers/profile/keepalives.ts";
import type { Profile } from "../chargers/profile/schema.ts";
import { ProfileLine } from "../chargers/profileLine.ts";
import { commandId } from "../core/control/command.ts";
import type { Desired } from "../core/control/setpoint.ts";
import type { Charger } from "../core/site/charger.ts";
import type { ChargerMessage, Telemetry } from "../core/site/telemetry.ts";
import type { Instant, Millis } from "../core/units.ts";
import type { Bench, Taken } from "./bench.ts";

export interface MqttBenchOptions {
  readonly site: string;
  readonly charger: Charger;
  readonly profile: Profile;
  readonly broker: FleetBroker;
  /** What it was told last; null: nothing by us. */
  readonly before: Desired | null;
  /** Numbers of the next order: higher than all that the charger has had. */
  readonly nextId: () => { readonly epoch: number; readonly seq: number };
  readonly now: () => Instant;
  readonly random: () => number;
  readonly log: Logger;
  readonly stop: AbortSignal;
}

/** How often a condition is looked at. */
const LOOK_MS = 50;

/** One charger over its own broker, under a client id of our own: the daemon's stays free for the daemon. */
export class MqttBench implements Bench, AsyncDisposable {
  readonly now: () => Instant;
  readonly #options: MqttBenchOptions;
  readonly #line: Line;
  readonly #session: BrokerSession;
  readonly #heartbeats: Heartbeats;
  #before: Desired | null;
  #order: string | null = null;
  #taken: Taken | null = null;
  #told: Telemetry | null = null;
  #isSilent = false;

  private constructor(options: MqttBenchOptions, bound: Bound | null) {
    const { site, charger, broker, now, random, log } = options;
    this.#options = options;
    this.now = now;
    this.#before = options.before;
    const publish: BrokerSession["publish"] = (...message) => this.#session.publish(...message);
    const ports = { now, publish, say: (message: ChargerMessage) => this.#hear(message) };
    this.#line =
      bound === null
        ? nativeLine(topicsOf(options), [broker.prefix, site], ports)
        : new ProfileLine(charger.id, bound, ports);
    this.#heartbeats = new Heartbeats(
      bound === null ? [] : keepalivesOf(bound),
      ({ topic, payload }) => publish(topic, payload, { retain: false }),
      now,
    );
    this.#session = new BrokerSession({
      address: broker.address,
      clientId: `setpointd-${site}-commission`,
      presenceTopic: siteTopic(broker.prefix, site, "gateway/commissioning"),
      filters: this.#line.topics,
      random,
      log,
      onUp: () => {
        this.#line.brokerUp();
        if (!this.#isSilent) this.#heartbeats.start();
      },
      onDown: () => {
        this.#heartbeats.stop();
        this.#line.brokerDown();
      },
      onMessage: (topic, payload, retained) => this.#line.hear(topic, payload, retained),
    });
  }

  /** Connects at once. A text: the profile's parameters are wrong. */
  static open(options: MqttBenchOptions): MqttBench | string {
    if (options.profile.nativePayloads) return new MqttBench(options, null);
    const binding = boundTo(options.charger, options.profile);
    return binding.ok ? new MqttBench(options, binding.bound) : binding.reason;
  }

  get connected(): boolean {
    return this.#session.connected;
  }

  async order(desired: Desired, lease: Millis) {
    const { charger, nextId, now } = this.#options;
    const command = {
      charger: charger.id,
      ...nextId(),
      desired,
      until: null,
      vehicle: null,
      event: null,
    } as const;
    const ordered = { ...command, cause: "operator", decidedAt: now() } as const;
    this.#order = commandId(ordered);
    this.#taken = null;
    const sent = await this.#line.send(ordered, lease, this.#before);
    if (sent.ok) this.#before = desired;
    return sent;
  }

  taken(): Taken | null {
    return this.#taken;
  }

  told(): Telemetry | null {
    return this.#told;
  }

  fallSilent(): void {
    this.#isSilent = true;
    this.#heartbeats.stop();
  }

  async until(condition: () => boolean, patience: Millis): Promise<boolean> {
    const deadline = performance.now() + patience;
    while (!condition()) {
      if (this.isStopped() || performance.now() >= deadline) return false;
      await sleep(LOOK_MS);
    }
    return true;
  }

  async rest(span: Millis): Promise<void> {
    await sleep(span);
  }

  isStopped(): boolean {
    return this.#options.stop.aborted;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#heartbeats[Symbol.dispose]();
    await this.#session[Symbol.asyncDispose]();
    this.#line[Symbol.dispose]();
  }

  #hear(message: ChargerMessage): void {
    if (message.charger !== this.#options.charger.id) return;
    if (message.kind === "telemetry") this.#told = { ...this.#told, ...message.telemetry };
    if (message.kind === "ack" && message.id === this.#order)
      this.#taken ??= { accepted: message.accepted, reason: message.reason, at: this.now() };
  }
}

/** The configuration has refused ids that cannot be topics. */
function topicsOf({ broker, site, charger }: MqttBenchOptions) {
  const topics = nativeTopics(broker.prefix, site, charger.id);
  if (topics === null) throw new Error(`${charger.id} cannot be a topic`);
  return topics;
}
