import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";

import { sectionOf, type NamedBroker } from "../chargers/broker/address.ts";
import { Heartbeats } from "../chargers/broker/heartbeats.ts";
import { BrokerSession } from "../chargers/broker/session.ts";
import { NativeDriver } from "../chargers/connectedCharger.ts";
import type { ChargerDriver } from "../chargers/driver.ts";
import { siteTopic } from "../chargers/native/messages.ts";
import type { ProfileInstance } from "../chargers/profile/instance.ts";
import { instanceSettings } from "../chargers/profile/level.ts";
import type { Profile } from "../chargers/profile/schema.ts";
import { keepalivesOf } from "../chargers/profile/publishes.ts";
import { ProfileDriver } from "../chargers/profileDriver.ts";
import type { Bench, ChargerAnswer } from "../commissioning/trial.ts";
import type { Charger } from "../domain/charger.ts";
import { type Command, commandId, type Sent } from "../domain/command.ts";
import type { Desired } from "../domain/setpoint.ts";
import type { ChargerMessage, Telemetry } from "../domain/telemetry.ts";
import type { ChargerId, Instant, Millis } from "../domain/units.ts";

export interface TrialPorts {
  readonly charger: ChargerId;
  /** Our last setpoint. Null: none. */
  readonly before: Desired | null;
  /** Telemetry that is known already. */
  readonly lastTelemetry: Telemetry | null;
  /** Numbers of the next command: higher than all that the charger received. */
  readonly nextId: () => { readonly epoch: number; readonly seq: number };
  readonly now: () => Instant;
  readonly send: (command: Command, lease: Millis, before: Desired | null) => Promise<Sent>;
  readonly fallSilent: () => void;
  readonly isStopped: () => boolean;
  readonly preemptedBy: () => string | null;
}

/** A bench that receives the messages of its charger. */
export interface ChargerBench extends Bench {
  readonly handleMessage: (message: ChargerMessage) => void;
}

/** Interval between checks of a condition. */
const CHECK_MS = 50;

/** Sends commands to one charger, with numbers of their own, and keeps its answers. */
export function chargerBench(ports: TrialPorts): ChargerBench {
  const { charger, now, fallSilent, isStopped, preemptedBy } = ports;
  let { before, lastTelemetry } = ports;
  let commandSent: string | null = null;
  let answer: ChargerAnswer | null = null;
  let hasReported = lastTelemetry !== null;
  return {
    now,
    fallSilent,
    isStopped,
    preemptedBy,
    answer: () => answer,
    telemetry: () => lastTelemetry,
    hasReported: () => hasReported,
    async send(desired, lease) {
      const what = { charger, desired, until: null, vehicle: null, event: null } as const;
      const command: Command = { ...what, ...ports.nextId(), cause: "operator", decidedAt: now() };
      commandSent = commandId(command);
      answer = null;
      const sent = await ports.send(command, lease, before);
      if (sent.ok) before = desired;
      return sent;
    },
    async until(condition, patience) {
      const deadline = performance.now() + patience;
      while (!condition()) {
        if (isStopped() || performance.now() >= deadline) return false;
        await sleep(CHECK_MS);
      }
      return true;
    },
    wait: async (span) => sleep(span),
    handleMessage(message) {
      if (message.charger !== charger) return;
      // The broker publishes a last will.
      if (message.kind !== "unconfirmed" && !(message.kind === "online" && !message.online))
        hasReported = true;
      if (message.kind === "unconfirmed" && message.id === commandSent && message.hasReported)
        answer ??= { accepted: false, reason: message.reason, at: now() };
      if (message.kind === "telemetry") lastTelemetry = { ...lastTelemetry, ...message.telemetry };
      if (message.kind === "ack" && message.id === commandSent)
        answer ??= { accepted: message.accepted, reason: message.reason, at: now() };
    },
  };
}

export interface MqttBenchOptions {
  readonly site: string;
  readonly charger: Charger;
  readonly profile: Profile;
  readonly broker: NamedBroker;
  /** Our last setpoint. Null: none. */
  readonly before: Desired | null;
  /** Numbers of the next command: higher than all that the charger received. */
  readonly nextId: () => { readonly epoch: number; readonly seq: number };
  readonly now: () => Instant;
  readonly random: () => number;
  readonly log: Logger;
  readonly stop: AbortSignal;
}

/** A charger over its own broker, under a client id of its own: the daemon's id stays free. */
export class MqttBench implements AsyncDisposable {
  readonly bench: ChargerBench;
  readonly #driver: ChargerDriver;
  readonly #session: BrokerSession;
  readonly #heartbeats: Heartbeats;

  private constructor(options: MqttBenchOptions, bound: ProfileInstance | null) {
    const { site, charger, broker, now, random, log, stop } = options;
    let isSilent = false;
    const publish: BrokerSession["publish"] = (...message) => this.#session.publish(...message);
    const ports = { now, publish, emit: (message: ChargerMessage) => this.bench.handleMessage(message) };
    this.#driver =
      bound === null
        ? new NativeDriver(
            charger.id,
            { broker: charger.broker, of: [broker.prefix, site], home: broker.prefix },
            ports,
          )
        : new ProfileDriver(charger.id, bound, ports);
    this.#heartbeats = new Heartbeats(
      bound === null ? [] : keepalivesOf(bound),
      ({ topic, payload }) => publish(topic, payload, { retain: false }),
      now,
    );
    this.bench = chargerBench({
      ...options,
      charger: charger.id,
      lastTelemetry: null,
      send: (...command) => this.#driver.send(...command),
      fallSilent: () => {
        isSilent = true;
        this.#heartbeats.stop();
      },
      isStopped: () => stop.aborted,
      preemptedBy: () => null,
    });
    this.#session = new BrokerSession({
      address: broker.address,
      section: sectionOf(charger.broker),
      // Random, since another client with the same id would end the trial.
      clientId: `setpointd-${site}-commission-${randomBytes(4).toString("hex")}`,
      presenceTopic: siteTopic(broker.prefix, site, "gateway/commissioning"),
      filters: this.#driver.topics,
      random,
      log,
      onUp: () => {
        this.#driver.brokerUp();
        if (!isSilent) this.#heartbeats.start();
      },
      onDown: () => {
        this.#heartbeats.stop();
        this.#driver.brokerDown();
      },
      onMessage: (topic, payload, retained) => this.#driver.handleMessage(topic, payload, retained),
    });
  }

  /** Connects at once. A text: the profile's parameters are wrong. */
  static open(options: MqttBenchOptions): MqttBench | string {
    if (options.profile.nativePayloads) return new MqttBench(options, null);
    const binding = instanceSettings(options.charger, options.profile);
    return binding.ok ? new MqttBench(options, binding.instance) : binding.reason;
  }

  get connected(): boolean {
    return this.#session.connected;
  }

  /** Why its broker is not there, as far as is known. */
  get trouble(): string {
    return this.#session.trouble;
  }

  /** The level that the charger reports, from any controller. Null: not reported. */
  shows(): Desired | null {
    return this.#driver.shows();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#heartbeats[Symbol.dispose]();
    await this.#session[Symbol.asyncDispose]();
    this.#driver[Symbol.dispose]();
  }
}
