import type { Command, Sent } from "../../src/domain/command.ts";
import type { Instant, Millis } from "../../src/domain/units.ts";
import type { PlannedCharger, PlannedVehicle } from "./plan.ts";
import { type Ears, SimBroker } from "./simBroker.ts";

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
  /** Shared with other floors; absent: this floor has its own. */
  readonly broker?: SimBroker;
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
export const PAST: Sent = { ok: false, retry: false, reason: "its time has passed" };

/** Chargers of one kind at a broker, their own connections to it, and what can be wrong with each. */
export abstract class BrokeredFloor<O extends Outlet> {
  protected readonly options: FloorOptions;
  protected readonly outlets: ReadonlyMap<string, O>;
  protected readonly broker: SimBroker;
  /** When each outlet's vehicle last left it for another. */
  readonly #emptiedAt = new Map<string, number>();

  constructor(options: FloorOptions, outlets: readonly O[]) {
    this.options = options;
    this.outlets = new Map(outlets.map((outlet) => [outlet.plan.id, outlet]));
    this.broker = options.broker ?? new SimBroker({ now: options.truth, random: options.random });
    this.broker.join({
      beforeUp: (ears) => this.beforeUp(ears),
      afterUp: () => this.afterUp(),
      parted: () => this.parted(),
    });
  }

  /** The gateway has connected: what it receives before the program knows that. */
  protected abstract beforeUp(ears: Ears): void;
  /** What it receives after. */
  protected abstract afterUp(): void;
  /** The gateway has lost the broker. */
  protected abstract parted(): void;
  /** A charger has its broker again, and says hello. */
  protected abstract greet(outlet: O): void;
  /** Somebody else is plugged in. */
  protected abstract seat(outlet: O, guest: string | null): void;

  has(charger: string): boolean {
    return this.outlets.has(charger);
  }

  /** A gateway comes, and connects as soon as it can. */
  attach(ears: Ears): void {
    this.broker.attach(ears);
  }

  /** Its process is gone. What it published may still arrive. */
  detach(): void {
    this.broker.detach();
  }

  brokerGoes(lasts: number): void {
    for (const outlet of this.outlets.values()) outlet.connected = false;
    this.broker.goes(lasts);
    setTimeout(() => this.#brokerReturns(), lasts);
  }

  linkBreaks(lasts: number): void {
    this.broker.linkBreaks(lasts);
  }

  isSlow(lasts: number): void {
    this.broker.isSlow(lasts);
  }

  isUnruly(lasts: number): void {
    this.broker.isUnruly(lasts);
  }

  isMute(charger: string, lasts: number): void {
    const outlet = this.at(charger);
    outlet.muteUntil = this.later(outlet.muteUntil, lasts);
  }

  /** A vehicle is on one charger at a time. Who is there is unplugged first, also the guest itself. */
  plug(charger: string, guest: string | null): void {
    for (const outlet of this.outlets.values()) {
      const { plan, guest: before } = outlet;
      if (plan.id !== charger && (guest === null || before !== guest)) continue;
      if (before !== null) this.#emptiedAt.set(plan.id, this.now());
      this.seat(outlet, plan.id === charger ? guest : null);
    }
  }

  publishState = (): Promise<Sent> => Promise.resolve({ ok: true });

  isEmpty(charger: string): boolean {
    return this.at(charger).guest === null;
  }

  /** Whether it was empty at some moment since then, ms: two vehicles may change places within one. */
  wasEmpty(charger: string, since: number): boolean {
    return this.isEmpty(charger) || (this.#emptiedAt.get(charger) ?? -Infinity) >= since;
  }

  /** Whether the messages of a charger reach the gateway. */
  isReachable(charger: string): boolean {
    const { connected, muteUntil } = this.at(charger);
    return connected && !this.isOn(muteUntil) && this.isUp;
  }

  protected get ears(): Ears | null {
    return this.broker.ears;
  }

  /** Whether the gateway has its broker. */
  get isUp(): boolean {
    return this.broker.isUp;
  }

  protected greets(outlet: O): void {
    if (outlet.connected || this.isOn(outlet.offUntil) || !this.broker.isThere) return;
    outlet.connected = true;
    this.greet(outlet);
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
    if (!this.broker.isThere) return;
    this.broker.connectSoon();
    for (const outlet of this.outlets.values())
      setTimeout(() => this.greets(outlet), RECONNECTS_WITHIN * this.chance());
  }
}

/** Who is on a charger when the day begins. */
export const guestOf = (charger: string, vehicles: readonly PlannedVehicle[]): string | null =>
  vehicles.find((vehicle) => vehicle.charger === charger)?.id ?? null;
