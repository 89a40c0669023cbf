import { after, type Instant, instant, isOpenAt, type Millis, minutes, seconds } from "../domain/units.ts";

/** A repeated `true` within this time is a repetition, not a return. */
const REPETITION = minutes(1);
/** A message on the ready topic this long after `false` is no message from before it. */
const LATE_WILL = seconds(10);

export type OnlineChange =
  /** First knowledge: the charger is online. */
  | "online"
  /** First knowledge: the charger is offline. */
  | "offline"
  | "went"
  /** Back after it was reported as offline. */
  | "returned"
  /** A birth message without a departure before it: the charger restarted unnoticed. */
  | "restarted";

export const isOnline = (change: OnlineChange): boolean => change !== "offline" && change !== "went";

export interface OnlineTrackerOptions {
  /** Offline after this silence on the topic that shows life. Null: no such topic. */
  readonly silentAfter: Millis | null;
  /** The last will is retained. A live `true` is then a birth, unless the charger keeps repeating it. */
  readonly willIsRetained: boolean;
  /** The charger is online before it obeys. Only `onReady` shows that it is back. */
  readonly hasReadyTopic: boolean;
  readonly now: () => Instant;
  readonly onChange: (change: OnlineChange) => void;
}

/**
 * The topic of the last will.
 *
 * ```
 *            true                  false
 *   unknown ------> online ----------------------> offline
 *                    ^  ^                          |   |
 *                    |  +---------- true ----------+   |
 *        ready topic |                                 |
 *                    +---- starting <---- live true ---+
 * ```
 *
 * A make with a ready topic goes to "starting" with each live `true`, except a repetition. It counts as offline there.
 * A ready message some time after `false` shows that the will came late: evcc has another client id at each start, and a
 * broker sends the will of the former one after its keepalive, when the new one is online already.
 */
type Will = "unknown" | "online" | "starting" | "offline";

/** The topic that shows life. "none": no sign so far, so silence means nothing. */
type SignOfLife = "none" | "recent" | "silent";

/** A charger is online if its last will does not deny it and its signs of life have not ended. */
export class OnlineTracker implements Disposable {
  readonly #options: OnlineTrackerOptions;
  #will: Will = "unknown";
  #signOfLife: SignOfLife = "none";
  /** Null: nothing reported yet. */
  #reported: boolean | null = null;
  /** Time of the last live `true`. */
  #lastLive = instant(0);
  /** Time of the last live `false`. */
  #deniedAt = instant(0);
  #timer: NodeJS.Timeout | undefined;

  constructor(options: OnlineTrackerOptions) {
    this.#options = options;
  }

  /** A live message on the topic that shows life. */
  onSignOfLife(): void {
    this.#signOfLife = "recent";
    this.#watch();
    this.#report(false);
  }

  /** A message on the topic of the last will. */
  onWill(online: boolean, retained: boolean): void {
    const { hasReadyTopic, now } = this.#options;
    const isRepetition = this.#will === "online" && this.#wasLiveLately();
    const isComing = online && !retained && hasReadyTopic && !isRepetition;
    if (isComing) this.#lastLive = now();
    const isStarting = isComing || (this.#will === "starting" && online);
    this.#update(isStarting ? "starting" : online ? "online" : "offline", retained);
  }

  /** A live message on the ready topic: the charger obeys. True: this ended a start, or an absence by a late will. */
  onReady(): boolean {
    // A will dated ahead is from before the clock was set back.
    const mayBeOlder = { from: this.#deniedAt, until: after(this.#deniedAt, LATE_WILL) };
    const isLateWill = this.#will === "offline" && !isOpenAt(mayBeOlder, this.#options.now());
    if (this.#will !== "starting" && !isLateWill) return false;
    this.#update("online", false);
    return true;
  }

  /** A live `true` dated ahead is from before the clock was set back: the next one is no repetition of it. */
  #wasLiveLately(): boolean {
    const lately = { from: this.#lastLive, until: after(this.#lastLive, REPETITION) };
    return isOpenAt(lately, this.#options.now());
  }

  #update(will: Will, retained: boolean): void {
    const { willIsRetained, now } = this.#options;
    const isLive = will === "online" && !retained;
    const isBirth = isLive && willIsRetained && !this.#wasLiveLately();
    this.#will = will;
    if (isLive) this.#lastLive = now();
    if (will === "offline" && !retained) this.#deniedAt = now();
    this.#report(isBirth);
  }

  /** Silence counts from now. */
  brokerUp(): void {
    if (this.#signOfLife !== "none") this.#watch();
  }

  /** The silence is not the charger's fault: stop counting. */
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
      this.#signOfLife = "silent";
      this.#report(false);
    }, silentAfter);
  }

  #report(isBirth: boolean): void {
    const online = (this.#will === "unknown" || this.#will === "online") && this.#signOfLife !== "silent";
    const before = this.#reported;
    if (online === before && !isBirth) return;
    this.#reported = online;
    this.#options.onChange(changeOf(before, online, isBirth));
  }
}

function changeOf(before: boolean | null, online: boolean, isBirth: boolean): OnlineChange {
  if (before === null && !isBirth) return online ? "online" : "offline";
  if (!online) return "went";
  return before === false ? "returned" : "restarted";
}
