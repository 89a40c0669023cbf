import type { Command, Sent } from "../../src/core/control/command.ts";
import type { ChargerMessage } from "../../src/core/site/telemetry.ts";
import type { Instant, Millis } from "../../src/core/units.ts";
import type { PlannedCharger, PlannedVehicle } from "./plan.ts";

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

/** What any outlet has, whatever stands there. Moments are true time; what is past is over. */
interface Outlet {
  readonly plan: PlannedCharger;
  /** Null: nobody; what is not one of ours is a stranger. */
  guest: string | null;
  /** To the broker. */
  connected: boolean;
  offUntil: number;
  muteUntil: number;
}

const RECONNECTS_WITHIN = 3_000;
export const OFFLINE: Sent = { ok: false, retry: true, reason: "not connected" };
export const PAST: Sent = { ok: false, retry: false, reason: "its time has passed" };

/** The broker, the gateway's line to it and the chargers' lines to it, and what can be wrong with each. */
export abstract class BrokeredFloor<O extends Outlet> {
  protected readonly options: FloorOptions;
  protected readonly outlets: ReadonlyMap<string, O>;
  protected ears: Ears | null = null;
  readonly #unsettled = new Set<() => void>();
  #connected = false;
  #brokerGoneUntil = 0;
  #linkLostUntil = 0;
  #slowUntil = 0;
  #unrulyUntil = 0;

  constructor(options: FloorOptions, outlets: readonly O[]) {
    this.options = options;
    this.outlets = new Map(outlets.map((outlet) => [outlet.plan.id, outlet]));
  }

  /** The gateway has its broker: what it hears first. */
  protected abstract welcome(ears: Ears): void;
  /** The gateway has lost it. */
  protected abstract parted(): void;
  /** A charger has its broker again, and says hello. */
  protected abstract greet(outlet: O): void;
  /** Somebody else is plugged in. */
  protected abstract seat(outlet: O, guest: string | null): void;

  /** Whether the gateway has its broker. */
  get isUp(): boolean {
    return this.#connected;
  }

  /** A gateway comes, and connects as soon as it can. */
  attach(ears: Ears): void {
    this.ears = ears;
    this.#connectSoon();
  }

  /** Its process is gone. What it published may still arrive. */
  detach(): void {
    this.ears = null;
    this.#hangUp();
  }

  brokerGoes(lasts: number): void {
    this.#brokerGoneUntil = this.later(this.#brokerGoneUntil, lasts);
    for (const outlet of this.outlets.values()) outlet.connected = false;
    this.#hangUp();
    setTimeout(() => this.#brokerReturns(), lasts);
  }

  linkBreaks(lasts: number): void {
    this.#linkLostUntil = this.later(this.#linkLostUntil, lasts);
    this.#hangUp();
    setTimeout(() => this.#connectSoon(), lasts);
  }

  /** The broker takes its time with acknowledgements. */
  isSlow(lasts: number): void {
    this.#slowUntil = this.later(this.#slowUntil, lasts);
  }

  isUnruly(lasts: number): void {
    this.#unrulyUntil = this.later(this.#unrulyUntil, lasts);
  }

  isMute(charger: string, lasts: number): void {
    const outlet = this.at(charger);
    outlet.muteUntil = this.later(outlet.muteUntil, lasts);
  }

  /** A vehicle is on one charger at a time. */
  plug(charger: string, guest: string | null): void {
    for (const outlet of this.outlets.values()) {
      if (outlet.plan.id === charger) this.seat(outlet, guest);
      else if (guest !== null && outlet.guest === guest) this.seat(outlet, null);
    }
  }

  publishState = (): Promise<Sent> => Promise.resolve({ ok: true });

  /** When the broker has acknowledged it, or the connection is gone. */
  protected async acknowledged(): Promise<Sent> {
    const { promise, resolve } = Promise.withResolvers<Sent>();
    const giveUp = (): void => resolve(OFFLINE);
    this.#unsettled.add(giveUp);
    setTimeout(() => resolve({ ok: true }), this.isOn(this.#slowUntil) ? 4_000 * this.chance() : 5);
    const sent = await promise;
    this.#unsettled.delete(giveUp);
    return sent;
  }

  protected greets(outlet: O): void {
    if (outlet.connected || this.isOn(outlet.offUntil) || !this.hasBroker) return;
    outlet.connected = true;
    this.greet(outlet);
  }

  protected get hasBroker(): boolean {
    return !this.isOn(this.#brokerGoneUntil);
  }

  protected get isOutOfOrder(): boolean {
    return this.isOn(this.#unrulyUntil);
  }

  protected at(charger: string): O {
    const outlet = this.outlets.get(charger);
    if (outlet === undefined) throw new Error(`there is no charger ${charger}`);
    return outlet;
  }

  protected later = (before: number, lasts: number): number => Math.max(before, this.now() + lasts);
  protected isOn = (until: number): boolean => this.now() < until;
  protected now = (): Instant => this.options.truth();
  protected chance = (): number => this.options.random();

  #brokerReturns(): void {
    if (!this.hasBroker) return;
    this.#connectSoon();
    for (const outlet of this.outlets.values())
      setTimeout(() => this.greets(outlet), RECONNECTS_WITHIN * this.chance());
  }

  #connectSoon(): void {
    const { ears } = this;
    setTimeout(() => {
      const isReachable = this.hasBroker && !this.isOn(this.#linkLostUntil);
      if (this.#connected || ears === null || ears !== this.ears || !isReachable) return;
      this.#connected = true;
      this.welcome(ears);
    }, RECONNECTS_WITHIN * this.chance());
  }

  #hangUp(): void {
    if (!this.#connected) return;
    this.#connected = false;
    this.parted();
    for (const giveUp of this.#unsettled) giveUp();
    this.#unsettled.clear();
  }
}

/** Who is on a charger when the day begins. */
export const guestOf = (charger: string, vehicles: readonly PlannedVehicle[]): string | null =>
  vehicles.find((vehicle) => vehicle.charger === charger)?.id ?? null;
