import { readFileSync } from "node:fs";

/** So many ms were lost in the moments before: nothing could be done, or seen, by no fault of whoever is judged. */
export interface Delay {
  readonly at: number;
  readonly ms: number;
}

/** Moments that a busy machine had no time for, by whom they were taken from. */
const EVERY_MS = 50;
/** Less than this is a timer that is not exact. */
const LEAST_MS = 5;

/** How long this process, which looks at the time of everything, stood still; until it is disposed of. */
export class Watch implements Disposable {
  readonly delays: Delay[] = [];
  readonly #bell: NodeJS.Timeout;
  #last = performance.now();

  constructor() {
    this.#bell = setInterval(() => {
      const now = performance.now();
      const ms = now - this.#last - EVERY_MS;
      this.#last = now;
      if (ms > LEAST_MS) this.delays.push({ at: Date.now(), ms });
    }, EVERY_MS);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#bell);
  }
}

/**
 * How long another process could have run and was not let, as the kernel counts it (proc(5), schedstat): its own
 * slowness is none of it. Ends with the process.
 */
export function waitsOf(pid: number): readonly Delay[] {
  const delays: Delay[] = [];
  let last = waitedMs(pid) ?? 0;
  const bell = setInterval(() => {
    const waited = waitedMs(pid);
    if (waited === null) return clearInterval(bell);
    if (waited - last > LEAST_MS) delays.push({ at: Date.now(), ms: waited - last });
    last = waited;
  }, EVERY_MS);
  bell.unref();
  return delays;
}

/** Of its main thread, since its start; null: it is gone, or the kernel does not count. */
function waitedMs(pid: number): number | null {
  try {
    const [, waited = ""] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "latin1").split(" ");
    return Number(waited) / 1e6;
  } catch {
    return null;
  }
}

/** What was lost between two moments, ms. */
export const lostIn = (delays: readonly Delay[], from: number, until: number): number =>
  delays.reduce((sum, { at, ms }) => (from < at && at - ms - EVERY_MS < until ? sum + ms : sum), 0);
