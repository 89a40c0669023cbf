import { after, type Instant, instant, type Millis, minutes } from "../domain/units.ts";

/** Said again sooner, a word is chatter and no birth. */
const CHATTER = minutes(1);

export interface PresenceOptions {
  /** Silence of the topic that shows life which means offline; null: it has no such topic. */
  readonly silentAfter: Millis | null;
  /** Its last will is retained: a live `true` has just been published, so it has just come, unless it keeps saying so. */
  readonly willIsRetained: boolean;
  /** It is there before it obeys: only `obeys` shows that it is back. */
  readonly obeysLater: boolean;
  readonly now: () => Instant;
  /** `snapshot`: that is how things stand; else it has just come, or gone. */
  readonly say: (online: boolean, snapshot: boolean) => void;
}

/** Tells from its last will and its signs of life whether a charger is there. One that never gave a sign is not missed. */
export class Presence implements Disposable {
  readonly #options: PresenceOptions;
  #will: boolean | null = null;
  /** It has come, and does not obey yet. */
  #isStarting = false;
  #isSilent = false;
  #said: boolean | null = null;
  /** Last live `true`. */
  #saidLive = instant(0);
  #timer: NodeJS.Timeout | undefined;
  #everGaveSign = false;

  constructor(options: PresenceOptions) {
    this.#options = options;
  }

  /** A live message where it shows that it is there. */
  gaveSign(): void {
    this.#everGaveSign = true;
    this.#isSilent = false;
    this.#watch();
    this.#tell(this.#said === null);
  }

  /** What its last will, or its word in the same place, says. */
  willSays(online: boolean, retained: boolean): void {
    const { obeysLater, now } = this.#options;
    const isChatter = this.#will === true && now() < after(this.#saidLive, CHATTER);
    const isComing = online && !retained && obeysLater && !isChatter;
    if (isComing) this.#saidLive = now();
    this.#isStarting = isComing || (this.#isStarting && online);
    this.#take(online && !this.#isStarting, retained);
  }

  /** A live message that it sends only once it obeys. */
  obeys(): void {
    if (!this.#isStarting) return;
    this.#isStarting = false;
    this.#take(true, false);
  }

  #take(online: boolean, retained: boolean): void {
    const { willIsRetained, now } = this.#options;
    const isBirth = online && !retained && willIsRetained && now() >= after(this.#saidLive, CHATTER);
    this.#will = online;
    if (online && !retained) this.#saidLive = now();
    if (isBirth) this.#said = null;
    this.#tell(!isBirth && this.#said === null);
  }

  /** We can hear again: silence counts from now. */
  brokerUp(): void {
    if (this.#everGaveSign) this.#watch();
  }

  /** Silence is ours now, not the charger's. */
  brokerDown(): void {
    clearTimeout(this.#timer);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }

  #watch(): void {
    const { silentAfter } = this.#options;
    if (silentAfter === null) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#isSilent = true;
      this.#tell(false);
    }, silentAfter);
  }

  #tell(snapshot: boolean): void {
    const online = this.#will !== false && !this.#isSilent;
    if (online === this.#said) return;
    this.#said = online;
    this.#options.say(online, snapshot);
  }
}
