import { type Command, commandId, type Sent } from "../../src/core/control/command.ts";
import type { Desired } from "../../src/core/control/setpoint.ts";
import type { ChargerMessage } from "../../src/core/site/telemetry.ts";
import type { ChargerId, Instant, Millis } from "../../src/core/units.ts";
import { plugged, rebooted, step } from "../../src/sim/charger.ts";
import { telemetryOf } from "../../src/sim/chargerTelemetry.ts";
import { accept, orderExpires } from "../../src/sim/orders.ts";
import { type Bay, bay, physical, standingOf, toldBy } from "./bay.ts";
import { MINUTE, type PlannedCharger, type PlannedVehicle } from "./plan.ts";
import type { Standing } from "./oracle.ts";

/** The gateway's ends of its connection. */
export interface Ears {
  readonly hear: (message: ChargerMessage) => void;
  readonly brokerUp: () => void;
}

export interface FloorOptions {
  readonly chargers: readonly PlannedCharger[];
  readonly vehicles: readonly PlannedVehicle[];
  /** True time: chargers have it. */
  readonly truth: () => Instant;
  readonly gateway: () => Instant;
  readonly random: () => number;
  /** Everything that reaches the wire, before it does. */
  readonly onPublish: (command: Command, lease: Millis, isBusy: boolean) => void;
  /** The gateway has just heard of somebody else on a charger. */
  readonly onNewGuest: () => void;
  /** A minute unless told, ms. */
  readonly telemetryEvery?: number;
}

const RECONNECTS_WITHIN = 3_000;
const LATEST = 15_000;
const OFFLINE: Sent = { ok: false, retry: true, reason: "not connected" };
const PAST: Sent = { ok: false, retry: false, reason: "its time has passed" };

/** What the gateway, the day and its judge know of a floor, whatever stands on it. */
export type Floor = Pick<SimFloor, keyof SimFloor>;

/** The broker, the chargers behind it, and whatever can be wrong with either. Chargers keep to DESIGN 6.2 and 5.6. */
export class SimFloor {
  readonly #options: FloorOptions;
  readonly #bays: ReadonlyMap<string, Bay>;
  readonly #underWay = new Map<ChargerId, Set<() => void>>();
  #brokerGoneUntil = 0;
  #linkLostUntil = 0;
  #slowUntil = 0;
  #unrulyUntil = 0;
  #ears: Ears | null = null;
  #connected = false;

  constructor(options: FloorOptions) {
    this.#options = options;
    this.#bays = new Map(
      options.chargers.map((plan) => [
        plan.id,
        bay(plan, options.vehicles.find(({ charger }) => charger === plan.id)?.id ?? null, options.truth()),
      ]),
    );
    const { telemetryEvery = MINUTE, random } = options;
    for (const bay of this.#bays.values())
      setTimeout(() => setInterval(() => this.#tell(bay), telemetryEvery), telemetryEvery * random());
  }

  /** Whether the gateway has its broker. */
  get isUp(): boolean {
    return this.#connected;
  }

  /** A gateway comes, and connects as soon as it can. */
  attach(ears: Ears): void {
    this.#ears = ears;
    for (const bay of this.#bays.values()) bay.heard = undefined;
    this.#connectSoon();
  }

  /** Its process is gone. What it published may still arrive. */
  detach(): void {
    this.#ears = null;
    this.#hangUp();
  }

  brokerGoes(lasts: number): void {
    this.#brokerGoneUntil = this.#later(this.#brokerGoneUntil, lasts);
    for (const bay of this.#bays.values()) bay.connected = false;
    this.#hangUp();
    setTimeout(() => this.#brokerReturns(), lasts);
  }

  linkBreaks(lasts: number): void {
    this.#linkLostUntil = this.#later(this.#linkLostUntil, lasts);
    this.#hangUp();
    setTimeout(() => this.#connectSoon(), lasts);
  }

  isSlow(lasts: number): void {
    this.#slowUntil = this.#later(this.#slowUntil, lasts);
  }

  isUnruly(lasts: number): void {
    this.#unrulyUntil = this.#later(this.#unrulyUntil, lasts);
  }

  reboots(charger: string, lasts: number): void {
    const bay = this.#at(charger);
    bay.offUntil = this.#later(bay.offUntil, lasts);
    bay.connected = false;
    bay.model = rebooted(bay.model, this.#now());
    // The broker speaks its last will once it has missed it.
    setTimeout(() => (bay.connected ? undefined : this.#sayOnline(bay, false)), 2_000 * this.#chance());
    setTimeout(() => this.#greet(bay), lasts);
  }

  isDeaf(charger: string, lasts: number): void {
    const bay = this.#at(charger);
    bay.deafUntil = this.#later(bay.deafUntil, lasts);
  }

  lies(charger: string, lasts: number): void {
    const bay = this.#at(charger);
    bay.lyingUntil = this.#later(bay.lyingUntil, lasts);
  }

  isMute(charger: string, lasts: number): void {
    const bay = this.#at(charger);
    bay.muteUntil = this.#later(bay.muteUntil, lasts);
  }

  /** A vehicle is on one charger at a time. */
  plug(charger: string, guest: string | null): void {
    for (const bay of this.#bays.values()) {
      if (bay.plan.id === charger) this.#seat(bay, guest);
      else if (guest !== null && bay.guest === guest) this.#seat(bay, null);
    }
  }

  /** What each charger says of who is on it. */
  get told(): ReadonlyMap<string, string | null> {
    return new Map([...this.#bays.values()].map((bay) => [bay.plan.id, toldBy(bay)]));
  }

  /** Whether the gateway has been told who is where, or need not be. */
  get isTold(): boolean {
    for (const bay of this.#bays.values()) {
      const told = toldBy(bay);
      const isPlain = told === null || this.#homeOf(told) === bay.plan.id;
      if (bay.heard !== told && !(bay.heard === undefined && isPlain)) return false;
    }
    return true;
  }

  /** What a charger does now. */
  standing = (charger: string): Standing => standingOf(this.#at(charger), this.#now());

  /** How long it may take until a charger that was away is told what holds, ms. */
  readonly unseenFor: number = 0;
  /** A charger that says nothing counts as away: it is told what holds when it speaks again (5.7). */
  readonly silenceIsAbsence: boolean = false;
  /** A charger shows that it does what it was told, and does not: that nobody draws more is all that can be seen. */
  pretends = (_charger: string): boolean => false;
  /** Whether what a charger does can matter to anybody. */
  isWatched = (_charger: string): boolean => true;

  async send(command: Command, lease: Millis, _before: Desired | null): Promise<Sent> {
    if (!this.#connected) return OFFLINE;
    // As the fleet does: past its end nothing goes out.
    if (command.until !== null && command.until <= this.#options.gateway()) return PAST;
    const bay = this.#at(command.charger);
    const underWay = this.#underWay.get(command.charger) ?? new Set();
    this.#underWay.set(command.charger, underWay);
    this.#options.onPublish(command, lease, underWay.size > 0);
    for (const delay of this.#delays()) setTimeout(() => this.#deliver(bay, command, lease), delay);
    const { promise, resolve } = Promise.withResolvers<Sent>();
    const giveUp = (): void => resolve(OFFLINE);
    underWay.add(giveUp);
    setTimeout(() => resolve({ ok: true }), this.#isOn(this.#slowUntil) ? 4_000 * this.#chance() : 5);
    const sent = await promise;
    underWay.delete(giveUp);
    return sent;
  }

  publishState = (): Promise<Sent> => Promise.resolve({ ok: true });

  #deliver(bay: Bay, { desired, epoch, seq, until }: Command, lease: Millis): void {
    if (!bay.connected || this.#isOn(bay.deafUntil)) return;
    const id = commandId({ epoch, seq });
    const now = this.#now();
    if (this.#isOn(bay.lyingUntil)) {
      this.#answer(bay, this.#chance() < 0.5 ? `${epoch - 1}-${seq}` : id, this.#chance() < 0.5);
      return;
    }
    const answer = accept(bay.model, { epoch, seq, desired, expires: orderExpires(now, until, lease) }, now);
    if (answer.accepted) bay.model = answer.charger;
    this.#answer(bay, id, answer.accepted);
  }

  #answer({ id: charger, muteUntil }: Bay, id: string, accepted: boolean): void {
    if (this.#isOn(muteUntil)) return;
    const reason = accepted ? null : "no";
    setTimeout(() => this.#say({ kind: "ack", charger, id, accepted, value: null, reason }), 10);
  }

  #seat(bay: Bay, guest: string | null): void {
    bay.guest = guest;
    bay.model = plugged(bay.model, physical(guest, bay.plan), this.#now());
    this.#tell(bay);
  }

  #tell(bay: Bay): void {
    if (!bay.connected || this.#isOn(bay.muteUntil)) return;
    bay.model = step(bay.model, this.#now());
    const { vehicle: _vehicle, identity: _identity, ...rest } = telemetryOf(bay.model);
    const told = toldBy(bay);
    const telemetry = {
      ...rest,
      ...(bay.plan.tells ? { vehicle: told } : {}),
      ...(this.#isOn(bay.lyingUntil) ? { limitA: bay.plan.maxCurrent * this.#chance() } : {}),
    };
    if (!this.#say({ kind: "telemetry", charger: bay.id, telemetry })) return;
    if (bay.heard !== told) this.#options.onNewGuest();
    bay.heard = told;
  }

  #sayOnline(bay: Bay, online: boolean): void {
    if (this.#isOn(this.#brokerGoneUntil)) return;
    bay.online = online;
    this.#say({ kind: "online", charger: bay.id, online, snapshot: false });
  }

  #say(message: ChargerMessage): boolean {
    if (!this.#connected) return false;
    this.#ears?.hear(message);
    return true;
  }

  /** First the ear, then the mouth: a setpoint may come the moment it says hello. */
  #greet(bay: Bay): void {
    if (bay.connected || this.#isOn(bay.offUntil) || this.#isOn(this.#brokerGoneUntil)) return;
    bay.connected = true;
    this.#sayOnline(bay, true);
    this.#tell(bay);
  }

  #brokerReturns(): void {
    if (this.#isOn(this.#brokerGoneUntil)) return;
    this.#connectSoon();
    for (const bay of this.#bays.values())
      setTimeout(() => this.#greet(bay), RECONNECTS_WITHIN * this.#chance());
  }

  #connectSoon(): void {
    const ears = this.#ears;
    setTimeout(() => {
      const isReachable = !this.#isOn(this.#brokerGoneUntil) && !this.#isOn(this.#linkLostUntil);
      if (this.#connected || ears === null || ears !== this.#ears || !isReachable) return;
      this.#connected = true;
      for (const { id, online } of this.#bays.values())
        ears.hear({ kind: "online", charger: id, online, snapshot: true });
      ears.brokerUp();
    }, RECONNECTS_WITHIN * this.#chance());
  }

  #hangUp(): void {
    this.#connected = false;
    for (const underWay of this.#underWay.values()) for (const giveUp of underWay) giveUp();
    this.#underWay.clear();
  }

  /** When a message arrives, ms from now; more than one: more than once. */
  #delays(): readonly number[] {
    if (!this.#isOn(this.#unrulyUntil)) return [2 + 10 * this.#chance()];
    const once = LATEST * this.#chance();
    return this.#chance() < 0.4 ? [once, LATEST * this.#chance()] : [once];
  }

  #homeOf(vehicle: string): string | null {
    return this.#options.vehicles.find(({ id }) => id === vehicle)?.charger ?? null;
  }

  #at(charger: string): Bay {
    const bay = this.#bays.get(charger);
    if (bay === undefined) throw new Error(`there is no charger ${charger}`);
    return bay;
  }

  #later = (before: number, lasts: number): number => Math.max(before, this.#now() + lasts);
  #isOn = (until: number): boolean => this.#now() < until;
  #now = (): Instant => this.#options.truth();
  #chance = (): number => this.#options.random();
}
