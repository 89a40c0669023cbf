import { Heartbeats } from "../../src/chargers/broker/heartbeats.ts";
import { keepalivesOf } from "../../src/chargers/profile/publishes.ts";
import { ProfileDriver } from "../../src/chargers/profileDriver.ts";
import type { Command, Sent } from "../../src/domain/command.ts";
import type { Desired } from "../../src/domain/setpoint.ts";
import type { Charger } from "../../src/domain/charger.ts";
import type { ChargerId, Millis } from "../../src/domain/units.ts";
import {
  advance,
  deliver,
  type ModelFaults,
  powerCycled,
  type Reaction,
  replugged,
  messagesOf,
} from "../../src/sim/simulatedModel.ts";
import { step } from "../../src/sim/charger.ts";
import type { Message, LastOrder } from "../../src/sim/models/model.ts";
import { physical } from "./bay.ts";
import { BrokeredFloor, type FloorOptions, guestOf, PAST } from "./brokeredFloor.ts";
import { type ProfiledBay, profiledBay } from "./profiledBay.ts";
import { type Standing, standingUnder } from "./oracle.ts";
import { REFRESH } from "./patience.ts";
import { type Ears, OFFLINE } from "./simBroker.ts";
import type { Floor } from "./simFloor.ts";

interface ProfiledFloorOptions extends FloorOptions {
  /** As they are configured and equipped. */
  readonly outlets: readonly Charger[];
}

/** The quickest of them counts as gone when it is silent for 10 s. */
const TICK = 8_000;
const TICKS_PER_TELLING = 8;
const LATEST = 3_000;

/**
 * Chargers of many makes behind the gateway's own profile lines, and a broker between each pair: what one says reaches
 * the other in order, and what is retained is kept. None of them says which vehicle is on it.
 */
export class ProfiledFloor extends BrokeredFloor<ProfiledBay> implements Floor {
  readonly #underWay = new Map<ChargerId, number>();

  constructor(options: ProfiledFloorOptions) {
    const { chargers, outlets, vehicles, truth, random } = options;
    super(
      options,
      chargers.map((plan, index) => {
        const outlet = outlets[index];
        if (outlet === undefined) throw new Error(`${plan.id} is not configured`);
        return profiledBay(plan, outlet, guestOf(plan.id, vehicles), truth());
      }),
    );
    for (const bay of this.outlets.values())
      setTimeout(() => setInterval(() => this.#tick(bay), TICK), TICK * random());
  }

  /** Some makes do not show that they were away: they learn from the next refresh. */
  readonly unseenFor = REFRESH;
  readonly silenceIsAbsence = true;
  readonly told: ReadonlyMap<string, string | null> = new Map();
  readonly isTold = true;
  readonly unsure: readonly string[] = [];
  /** None of them names vehicles. */
  wasUnclaimed = (): boolean => false;

  override attach(ears: Ears): void {
    const { gateway: now } = this.options;
    for (const bay of this.outlets.values()) {
      const publish = (topic: string, payload: string): Promise<Sent> => this.#publish(bay, topic, payload);
      bay.line = {
        speaks: new ProfileDriver(bay.id, bay.bound, {
          now,
          publish,
          emit: (message) => this.ears?.hear(message),
        }),
        beats: new Heartbeats(keepalivesOf(bay.bound), ({ topic, payload }) => publish(topic, payload), now),
      };
    }
    super.attach(ears);
  }

  override detach(): void {
    super.detach();
    for (const bay of this.outlets.values()) {
      bay.line?.speaks[Symbol.dispose]();
      bay.line?.beats[Symbol.dispose]();
      bay.line = null;
    }
  }

  reboots(charger: string, lasts: number, forgets = true, willAfter?: number): void {
    const bay = this.at(charger);
    bay.offUntil = this.later(bay.offUntil, lasts);
    bay.connected = false;
    if (forgets) bay.made = powerCycled(bay.made, this.now());
    const { will } = bay.made.model;
    if (will !== null)
      setTimeout(
        () => (bay.connected ? undefined : this.#carry(bay, will)),
        willAfter ?? 2_000 * this.chance(),
      );
    setTimeout(() => {
      // A broker that has not missed it yet sends its last will when the new connection takes over.
      if (will !== null && willAfter !== undefined && lasts < willAfter) this.#carry(bay, will);
      this.greets(bay);
    }, lasts);
  }

  /** On the topic that shows that it is there, where its make has one. */
  repeatsOnline(charger: string, every: number, lasts: number): void {
    const bay = this.at(charger);
    const greeting = setInterval(() => {
      if (bay.alive === null) return;
      bay.said.delete(bay.alive);
      this.#tellNews(bay, ({ topic }) => topic === bay.alive);
    }, every);
    setTimeout(() => clearInterval(greeting), lasts);
  }

  isDeaf(charger: string, lasts: number): void {
    this.#fails(this.at(charger), { ignoresSetpoints: true }, lasts);
  }

  lies(charger: string, lasts: number): void {
    this.#fails(this.at(charger), { lies: true }, lasts);
  }

  standing = (charger: string): Standing => {
    const { made } = this.at(charger);
    return standingUnder(made.charger.order?.desired ?? { kind: "release" });
  };

  pretends = (charger: string): boolean => {
    const { order, appliedOrder } = this.at(charger).made;
    return order !== appliedOrder && stanceIn(order) !== stanceIn(appliedOrder);
  };

  /** Nobody draws from an empty outlet, and some stand still until they are told their first level. */
  isWatched = (charger: string): boolean => {
    const { guest, wasTold, bound } = this.at(charger);
    return guest !== null && (wasTold || !bound.profile.refresh.released);
  };

  /** Only native chargers are watched for that. */
  reported: Floor["reported"] = () => null;
  guest: Floor["guest"] = (charger) => this.at(charger).guest;

  isDrawing(charger: string): boolean {
    return this.power(charger) > 0;
  }

  power(charger: string): number {
    const { drawn, traits } = step(this.at(charger).made.charger, this.now());
    return drawn * traits.phases * traits.voltage;
  }

  /** None of them names vehicles. */
  claims(): void {}

  async send(command: Command, lease: Millis, before: Desired | null, isDoubted = false): Promise<Sent> {
    const bay = this.at(command.charger);
    const { line } = bay;
    if (!this.isUp || line === null) return OFFLINE;
    if (command.until !== null && command.until <= this.options.gateway()) return PAST;
    const underWay = this.#underWay.get(command.charger) ?? 0;
    this.#underWay.set(command.charger, underWay + 1);
    this.options.onPublish(command, lease, underWay > 0);
    bay.wasTold = true;
    const sent = await line.speaks.send(command, lease, before, isDoubted);
    this.#underWay.set(command.charger, (this.#underWay.get(command.charger) ?? 1) - 1);
    return sent;
  }

  protected override beforeUp(): void {
    for (const { line } of this.outlets.values()) {
      line?.speaks.brokerUp();
      line?.beats.start();
    }
  }

  protected override afterUp(): void {
    for (const { line, kept } of this.outlets.values())
      for (const { topic, payload } of kept.values())
        line?.speaks.handleMessage(topic, Buffer.from(payload), true);
  }

  protected override parted(): void {
    for (const { line } of this.outlets.values()) {
      line?.beats.stop();
      line?.speaks.brokerDown();
    }
    this.#underWay.clear();
  }

  protected override greet(bay: ProfiledBay): void {
    bay.said.clear();
    this.#tellNews(bay);
  }

  protected override seat(bay: ProfiledBay, guest: string | null): void {
    bay.guest = guest;
    bay.made = replugged(bay.made, physical(guest, bay.plan), this.now());
    this.#tellNews(bay);
  }

  /** Late at times, but in order: a broker keeps that. */
  async #publish(bay: ProfiledBay, topic: string, payload: string): Promise<Sent> {
    if (!this.isUp) return OFFLINE;
    const delay = this.broker.isOutOfOrder ? LATEST * this.chance() : 2 + 10 * this.chance();
    bay.lastArrival = Math.max(bay.lastArrival, this.now() + delay);
    setTimeout(() => this.#deliver(bay, topic, payload), bay.lastArrival - this.now());
    return this.broker.acknowledged();
  }

  #deliver(bay: ProfiledBay, topic: string, payload: string): void {
    if (!bay.connected) return;
    const before = stanceOf(bay);
    this.#apply(bay, deliver(bay.made, topic, payload, this.now()));
    if (stanceOf(bay) !== before) this.#tellNews(bay);
  }

  /** Sometimes it tells all, and in between that it is there. */
  #tick(bay: ProfiledBay): void {
    this.#apply(bay, advance(bay.made, this.now()));
    bay.ticks += 1;
    const tellsAll = bay.ticks % TICKS_PER_TELLING === 0;
    if (!tellsAll && bay.alive === null) return;
    if (!tellsAll) return this.#tellNews(bay, ({ topic }) => topic === bay.alive);
    // What measures a current never shows the same twice.
    if (bay.made.model.publishesAll || isDrawing(bay)) bay.said.clear();
    this.#tellNews(bay);
  }

  #apply(bay: ProfiledBay, { charger, answers }: Reaction): void {
    bay.made = charger;
    for (const answer of answers) this.#say(bay, answer);
  }

  #tellNews(bay: ProfiledBay, which: (message: Message) => boolean = () => true): void {
    if (!bay.connected || this.isOn(bay.muteUntil)) return;
    for (const message of messagesOf(bay.made)) {
      if (!which(message) || bay.said.get(message.topic) === message.payload) continue;
      bay.said.set(message.topic, message.payload);
      this.#carry(bay, message);
    }
  }

  #say(bay: ProfiledBay, message: Message): void {
    if (bay.connected && !this.isOn(bay.muteUntil)) this.#carry(bay, message);
  }

  /** The broker has it. */
  #carry(bay: ProfiledBay, message: Message): void {
    if (!this.broker.isThere || !bay.isHeard(message.topic)) return;
    if (message.retain) bay.kept.set(message.topic, message);
    if (this.isUp) bay.line?.speaks.handleMessage(message.topic, Buffer.from(message.payload), false);
  }

  #fails(bay: ProfiledBay, faults: ModelFaults, lasts: number): void {
    bay.made = { ...bay.made, faults };
    setTimeout(() => {
      if (bay.made.faults === faults) bay.made = { ...bay.made, faults: {} };
    }, lasts);
  }
}

/** What a command can have changed; a keepalive changes none of it. */
const stanceIn = ({ level, paused, mode, phases }: LastOrder): string =>
  JSON.stringify([level, paused, mode, phases]);
const stanceOf = ({ made: { order } }: ProfiledBay): string => stanceIn(order);

const isDrawing = ({ made: { charger } }: ProfiledBay): boolean => charger.drawn > 0;
