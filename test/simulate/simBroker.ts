import type { Sent } from "../../src/domain/command.ts";
import type { ChargerMessage } from "../../src/domain/telemetry.ts";

/** The gateway's ends of its connection. */
export interface Ears {
  readonly hear: (message: ChargerMessage) => void;
  readonly brokerUp: () => void;
}

/** Chargers of one kind at a broker. */
interface Client {
  /** The gateway has connected; first before the program knows it, then after. */
  readonly beforeUp: (ears: Ears) => void;
  readonly afterUp: () => void;
  /** The gateway's connection is lost. */
  readonly parted: () => void;
}

interface BrokerOptions {
  /** True time, ms. */
  readonly now: () => number;
  readonly random: () => number;
}

const RECONNECTS_WITHIN = 3_000;
export const OFFLINE: Sent = { ok: false, retry: true, reason: "not connected" };

/** One broker with the gateway's connection to it. Chargers of several kinds can share it. */
export class SimBroker {
  readonly #options: BrokerOptions;
  readonly #clients: Client[] = [];
  readonly #unsettled = new Set<() => void>();
  #ears: Ears | null = null;
  #isConnected = false;
  #goneUntil = 0;
  #linkLostUntil = 0;
  #slowUntil = 0;
  #unrulyUntil = 0;

  constructor(options: BrokerOptions) {
    this.#options = options;
  }

  join(client: Client): void {
    this.#clients.push(client);
  }

  get ears(): Ears | null {
    return this.#ears;
  }

  /** Whether the gateway is connected. */
  get isUp(): boolean {
    return this.#isConnected;
  }

  get isThere(): boolean {
    return !this.#isOn(this.#goneUntil);
  }

  get isOutOfOrder(): boolean {
    return this.#isOn(this.#unrulyUntil);
  }

  attach(ears: Ears): void {
    this.#ears = ears;
    this.connectSoon();
  }

  /** The gateway's process is gone. Its messages may still arrive. */
  detach(): void {
    this.#ears = null;
    this.#hangUp();
  }

  goes(lasts: number): void {
    this.#goneUntil = this.#later(this.#goneUntil, lasts);
    this.#hangUp();
  }

  linkBreaks(lasts: number): void {
    this.#linkLostUntil = this.#later(this.#linkLostUntil, lasts);
    this.#hangUp();
    setTimeout(() => this.connectSoon(), lasts);
  }

  /** Acknowledgements come late. */
  isSlow(lasts: number): void {
    this.#slowUntil = this.#later(this.#slowUntil, lasts);
  }

  isUnruly(lasts: number): void {
    this.#unrulyUntil = this.#later(this.#unrulyUntil, lasts);
  }

  /** When the broker has acknowledged it, or the connection is gone. */
  async acknowledged(): Promise<Sent> {
    const { promise, resolve } = Promise.withResolvers<Sent>();
    const giveUp = (): void => resolve(OFFLINE);
    this.#unsettled.add(giveUp);
    setTimeout(() => resolve({ ok: true }), this.#isOn(this.#slowUntil) ? 4_000 * this.#options.random() : 5);
    const sent = await promise;
    this.#unsettled.delete(giveUp);
    return sent;
  }

  connectSoon(): void {
    const ears = this.#ears;
    setTimeout(() => {
      const isReachable = this.isThere && !this.#isOn(this.#linkLostUntil);
      if (this.#isConnected || ears === null || ears !== this.#ears || !isReachable) return;
      this.#isConnected = true;
      for (const { beforeUp } of this.#clients) beforeUp(ears);
      ears.brokerUp();
      for (const { afterUp } of this.#clients) afterUp();
    }, RECONNECTS_WITHIN * this.#options.random());
  }

  #hangUp(): void {
    if (!this.#isConnected) return;
    this.#isConnected = false;
    for (const { parted } of this.#clients) parted();
    for (const giveUp of this.#unsettled) giveUp();
    this.#unsettled.clear();
  }

  #later = (before: number, lasts: number): number => Math.max(before, this.#options.now() + lasts);
  #isOn = (until: number): boolean => this.#options.now() < until;
}
