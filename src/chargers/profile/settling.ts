import type { Millis } from "../../core/units.ts";
import type { Means } from "./means.ts";
import { MEASURED } from "./picture.ts";

/** Measured values of makes that publish them one by one: judged when the burst is over, new power never beside old currents. */
export class Settling implements Disposable {
  readonly #within: Millis | undefined;
  readonly #settled: () => void;
  #judged: Means = {};
  #timer: NodeJS.Timeout | undefined;

  constructor(within: Millis | undefined, settled: () => void) {
    this.#within = within;
    this.#settled = settled;
  }

  /** `means`: what a live message says. */
  hear(means: Means, standing: () => Means): void {
    if (this.#within === undefined || this.#timer !== undefined) return;
    if (!MEASURED.some((signal) => signal in means)) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#judged = measuredIn(standing());
      this.#settled();
    }, this.#within);
  }

  /** What stands, with the measured values that may be judged. */
  judged(standing: Means): Means {
    return this.#within === undefined ? standing : { ...without(standing), ...this.#judged };
  }

  /** What was measured before a command says nothing of it. */
  forget(): void {
    this.#judged = {};
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

const isMeasured = (signal: string): boolean => MEASURED.some((one) => one === signal);

const measuredIn = (means: Means): Means =>
  Object.fromEntries(Object.entries(means).filter(([signal]) => isMeasured(signal)));

const without = (means: Means): Means =>
  Object.fromEntries(Object.entries(means).filter(([signal]) => !isMeasured(signal)));
