import { type Command, commandId, type Sent } from "../../src/domain/command.ts";
import type { Desired } from "../../src/domain/setpoint.ts";
import type { ChargerMessage, Telemetry } from "../../src/domain/telemetry.ts";
import type { ChargerId, Millis } from "../../src/domain/units.ts";
import { plugged, rebooted, step } from "../../src/sim/charger.ts";
import { telemetryOf } from "../../src/sim/charger.ts";
import { orderExpires } from "../../src/chargers/native/payload.ts";
import { accept } from "../../src/sim/charger.ts";
import { BrokeredFloor, type FloorOptions, guestOf, PAST } from "./brokeredFloor.ts";
import { type Bay, bay, physical, standingOf, toldBy } from "./bay.ts";
import { MINUTE } from "./plan.ts";
import type { Standing } from "./oracle.ts";
import { type Ears, OFFLINE } from "./simBroker.ts";

const LATEST = 15_000;

/** What the gateway, the day and its judge know of a floor, whatever stands on it. */
export type Floor = Pick<SimFloor, keyof SimFloor>;

/** Silence after which a charger counts as away (`control.silentAfter`), less a margin, ms. */
const NEARLY_SILENT = 5 * MINUTE - 10_000;
/** Name of no vehicle: the charger has lost its claim. */
const AWAY = "away";

/** Native chargers behind their broker: they keep to DESIGN 6.2 and 5.6. */
export class SimFloor extends BrokeredFloor<Bay> {
  readonly #underWay = new Map<ChargerId, number>();

  constructor(options: FloorOptions) {
    const { chargers, vehicles, truth, random, telemetryEvery = MINUTE } = options;
    super(
      options,
      chargers.map((plan) => bay(plan, guestOf(plan.id, vehicles), truth())),
    );
    for (const bay of this.outlets.values())
      setTimeout(() => setInterval(() => this.#tell(bay), telemetryEvery), telemetryEvery * random());
  }

  override attach(ears: Ears): void {
    for (const bay of this.outlets.values()) {
      bay.heard = undefined;
      bay.reported = null;
    }
    super.attach(ears);
  }

  reboots(charger: string, lasts: number, forgets = true, willAfter?: number): void {
    const bay = this.at(charger);
    bay.offUntil = this.later(bay.offUntil, lasts);
    bay.connected = false;
    if (forgets) bay.model = rebooted(bay.model, this.now());
    // The broker speaks its last will once it has missed it.
    setTimeout(
      () => (bay.connected ? undefined : this.#sayOnline(bay, false)),
      willAfter ?? 2_000 * this.chance(),
    );
    setTimeout(() => {
      // A broker that has not missed it yet speaks its last will when the new connection takes over.
      if (!bay.connected && bay.online) this.#sayOnline(bay, false);
      this.greets(bay);
    }, lasts);
  }

  /** W drawn now. */
  power(charger: string): number {
    const { drawn, traits } = step(this.at(charger).model, this.now());
    return drawn * traits.phases * traits.voltage;
  }

  isDeaf(charger: string, lasts: number): void {
    const bay = this.at(charger);
    bay.deafUntil = this.later(bay.deafUntil, lasts);
  }

  lies(charger: string, lasts: number): void {
    const bay = this.at(charger);
    bay.lyingUntil = this.later(bay.lyingUntil, lasts);
  }

  /** It says that it is online each `every` ms, though it never was offline. */
  repeatsOnline(charger: string, every: number, lasts: number): void {
    const bay = this.at(charger);
    const greeting = setInterval(() => {
      if (bay.connected && !this.isOn(bay.muteUntil)) this.#sayOnline(bay, true);
    }, every);
    setTimeout(() => clearInterval(greeting), lasts);
  }

  /** It names a vehicle that is not on it, as long as another one is. */
  claims(charger: string, vehicle: string, lasts: number): void {
    const bay = this.at(charger);
    bay.claim = { vehicle, until: this.now() + lasts };
    this.#tell(bay);
    setTimeout(() => this.#tell(bay), lasts);
  }

  /** The vehicle that each charger names, as far as it counts. Null: it names none. */
  get told(): ReadonlyMap<string, string | null> {
    return new Map([...this.outlets.values()].map((bay) => [bay.plan.id, this.#countedOf(bay)]));
  }

  /** Whether the gateway has been told who is where, or need not be. */
  get isTold(): boolean {
    for (const bay of this.outlets.values()) {
      const told = toldBy(bay, this.now());
      const isPlain = !bay.hasNamedGuests && this.#isPlain(bay, told);
      if (bay.heard !== told && !(bay.heard === undefined && isPlain)) return false;
    }
    return true;
  }

  /**
   * Chargers whose own vehicle is named by one that is silent: it counts as theirs again at some moment. And those that
   * name the same vehicle: which of them counts depends on which spoke when.
   */
  get unsure(): readonly string[] {
    const named = [...this.outlets.values()].map((bay) => ({ bay, vehicle: toldBy(bay, this.now()) }));
    return named.flatMap(({ bay, vehicle }) => {
      if (vehicle === null) return [];
      if (named.some((other) => other.bay !== bay && other.vehicle === vehicle)) return [bay.plan.id];
      const home = this.now() - bay.spokeAt < NEARLY_SILENT ? null : this.#homeOf(vehicle);
      return home === null || home === bay.plan.id ? [] : [home];
    });
  }

  /**
   * A charger that names the vehicle of this one was offline at some moment since then, ms. The vehicle counted here in
   * that moment.
   */
  wasUnclaimed(charger: string, since: number): boolean {
    return [...this.outlets.values()].some((bay) => {
      const told = toldBy(bay, this.now());
      return told !== null && this.#homeOf(told) === charger && bay.offlineAt >= since;
    });
  }

  /** What a charger does now. */
  standing = (charger: string): Standing => standingOf(this.at(charger), this.now());

  /** How long it may take until a charger that was away is told what holds, ms. */
  readonly unseenFor: number = 0;
  /** A charger that says nothing counts as away: it is told what holds when it speaks again (5.7). */
  readonly silenceIsAbsence: boolean = false;
  /** A charger shows that it does what it was told, and does not: that nobody draws more is all that can be seen. */
  pretends = (_charger: string): boolean => false;
  /** Whether what a charger does can matter to anybody. */
  isWatched = (_charger: string): boolean => true;

  isDrawing(charger: string): boolean {
    return step(this.at(charger).model, this.now()).drawn > 0;
  }

  /** Its last telemetry that this run of the gateway received; null: none. */
  reported = (charger: string): Telemetry | null => this.at(charger).reported;

  /** Whoever is on it; null: nobody. */
  guest = (charger: string): string | null => this.at(charger).guest;

  async send(command: Command, lease: Millis, _before: Desired | null, _isDoubted?: boolean): Promise<Sent> {
    if (!this.isUp) return OFFLINE;
    // As the fleet does: past its end nothing goes out.
    if (command.until !== null && command.until <= this.options.gateway()) return PAST;
    const bay = this.at(command.charger);
    const underWay = this.#underWay.get(command.charger) ?? 0;
    this.#underWay.set(command.charger, underWay + 1);
    this.options.onPublish(command, lease, underWay > 0);
    for (const delay of this.#delays()) setTimeout(() => this.#deliver(bay, command, lease), delay);
    const sent = await this.broker.acknowledged();
    this.#underWay.set(command.charger, (this.#underWay.get(command.charger) ?? 1) - 1);
    return sent;
  }

  protected override beforeUp(ears: Ears): void {
    for (const { id, online } of this.outlets.values())
      ears.hear({ kind: "online", charger: id, online, snapshot: true });
  }

  protected override afterUp(): void {}

  protected override parted(): void {
    this.#underWay.clear();
  }

  /** First the ear, then the mouth: a setpoint may come the moment it says hello. */
  protected override greet(bay: Bay): void {
    this.#sayOnline(bay, true);
    this.#tell(bay);
  }

  protected override seat(bay: Bay, guest: string | null): void {
    bay.guest = guest;
    bay.model = plugged(bay.model, physical(guest, bay.plan), this.now());
    this.#tell(bay);
  }

  #deliver(bay: Bay, { desired, epoch, seq, until }: Command, lease: Millis): void {
    if (!bay.connected || this.isOn(bay.deafUntil)) return;
    const id = commandId({ epoch, seq });
    const now = this.now();
    if (this.isOn(bay.lyingUntil)) {
      this.#answer(bay, this.chance() < 0.5 ? `${epoch - 1}-${seq}` : id, this.chance() < 0.5);
      return;
    }
    const answer = accept(
      bay.model,
      { epoch, seq, desired, expires: orderExpires({ until, lease }, now) },
      now,
    );
    if (answer.accepted) bay.model = answer.charger;
    this.#answer(bay, id, answer.accepted);
  }

  #answer({ id: charger, muteUntil }: Bay, id: string, accepted: boolean): void {
    if (this.isOn(muteUntil)) return;
    const reason = accepted ? null : "no";
    setTimeout(() => this.#say({ kind: "ack", charger, id, accepted, value: null, reason }), 10);
  }

  #tell(bay: Bay): void {
    if (!bay.connected || this.isOn(bay.muteUntil)) return;
    bay.model = step(bay.model, this.now());
    const { vehicle: _vehicle, identity: _identity, ...rest } = telemetryOf(bay.model);
    const told = toldBy(bay, this.now());
    const telemetry = {
      ...rest,
      ...(bay.plan.tells ? { vehicle: told } : {}),
      ...(this.isOn(bay.lyingUntil) ? { limitA: bay.plan.maxCurrent * this.chance() } : {}),
    };
    if (!this.#say({ kind: "telemetry", charger: bay.id, telemetry })) return;
    bay.reported = telemetry;
    if (bay.heard !== told) this.options.onNewGuest();
    bay.heard = told;
    bay.hasNamedGuests ||= !this.#isPlain(bay, told);
  }

  #sayOnline(bay: Bay, online: boolean): void {
    if (!this.broker.isThere) return;
    bay.online = online;
    const isHeard = this.#say({ kind: "online", charger: bay.id, online, snapshot: false });
    if (isHeard && !online) bay.offlineAt = this.now();
  }

  #say(message: ChargerMessage): boolean {
    if (!this.isUp) return false;
    const bay = this.outlets.get(message.charger);
    if (bay !== undefined) bay.spokeAt = this.now();
    this.ears?.hear(message);
    return true;
  }

  /** When a message arrives, ms from now; more than one: more than once. */
  #delays(): readonly number[] {
    if (!this.broker.isOutOfOrder) return [2 + 10 * this.chance()];
    const once = LATEST * this.chance();
    return this.chance() < 0.4 ? [once, LATEST * this.chance()] : [once];
  }

  /** A charger that is offline keeps no claim on a vehicle that is fixed to another charger (DESIGN 5.5). */
  #countedOf(bay: Bay): string | null {
    const told = toldBy(bay, this.now());
    const home = told === null ? null : this.#homeOf(told);
    return bay.online || home === null || home === bay.plan.id ? told : AWAY;
  }

  /** Nobody there, or the charger's own vehicle: what the gateway assumes without a word. */
  #isPlain = ({ plan }: Bay, vehicle: string | null): boolean =>
    vehicle === null || this.#homeOf(vehicle) === plan.id;

  #homeOf(vehicle: string): string | null {
    return this.options.vehicles.find(({ id }) => id === vehicle)?.charger ?? null;
  }
}
