import { randomBytes } from "node:crypto";

import type { Logger } from "pino";

import { sectionOf } from "../chargers/address.ts";
import { BrokerSession } from "../chargers/brokerSession.ts";
import type { FleetBroker } from "../chargers/fleetOptions.ts";
import { Heartbeats } from "../chargers/heartbeats.ts";
import type { Line } from "../chargers/line.ts";
import { nativeTopics, siteTopic } from "../chargers/native.ts";
import { nativeLine } from "../chargers/nativeLine.ts";
import type { Bound } from "../chargers/profile/bind.ts";
import { boundTo } from "../chargers/profile/equip.ts";
import { keepalivesOf } from "../chargers/profile/keepalives.ts";
import type { Profile } from "../chargers/profile/schema.ts";
import { ProfileLine } from "../chargers/profileLine.ts";
import type { Desired } from "../core/control/setpoint.ts";
import type { Charger } from "../core/site/charger.ts";
import type { ChargerMessage } from "../core/site/telemetry.ts";
import type { Instant } from "../core/units.ts";
import { type Talk, talk } from "./talk.ts";

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

/** One charger over its own broker, under a client id of our own: the daemon's stays free for the daemon. */
export class MqttBench implements AsyncDisposable {
  readonly talk: Talk;
  readonly #line: Line;
  readonly #session: BrokerSession;
  readonly #heartbeats: Heartbeats;

  private constructor(options: MqttBenchOptions, bound: Bound | null) {
    const { site, charger, broker, now, random, log, stop } = options;
    let isSilent = false;
    const publish: BrokerSession["publish"] = (...message) => this.#session.publish(...message);
    const ports = { now, publish, say: (message: ChargerMessage) => this.talk.hear(message) };
    this.#line =
      bound === null
        ? nativeLine(topicsOf(options), [broker.prefix, site], ports)
        : new ProfileLine(charger.id, bound, ports);
    this.#heartbeats = new Heartbeats(
      bound === null ? [] : keepalivesOf(bound),
      ({ topic, payload }) => publish(topic, payload, { retain: false }),
      now,
    );
    this.talk = talk({
      ...options,
      charger: charger.id,
      told: null,
      send: (...order) => this.#line.send(...order),
      fallSilent: () => {
        isSilent = true;
        this.#heartbeats.stop();
      },
      isStopped: () => stop.aborted,
      takenFor: () => null,
    });
    this.#session = new BrokerSession({
      address: broker.address,
      section: sectionOf(charger.broker),
      // Not to be guessed: whoever connects with it ends the trial.
      clientId: `setpointd-${site}-commission-${randomBytes(4).toString("hex")}`,
      presenceTopic: siteTopic(broker.prefix, site, "gateway/commissioning"),
      filters: this.#line.topics,
      random,
      log,
      onUp: () => {
        this.#line.brokerUp();
        if (!isSilent) this.#heartbeats.start();
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

  /** Why its broker is not there, as far as is known. */
  get trouble(): string {
    return this.#session.trouble;
  }

  /** The level that the charger shows it stands under, whoever told it; null: it does not show. */
  shows(): Desired | null {
    return this.#line.shows();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#heartbeats[Symbol.dispose]();
    await this.#session[Symbol.asyncDispose]();
    this.#line[Symbol.dispose]();
  }
}

/** The configuration has refused ids that cannot be topics. */
function topicsOf({ broker, site, charger }: MqttBenchOptions) {
  const topics = nativeTopics(broker.prefix, site, charger.id);
  if (topics === null) throw new Error(`${charger.id} cannot be a topic`);
  return topics;
}
