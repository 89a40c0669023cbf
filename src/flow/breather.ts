/** The loop is given back after this long, ms: neither chargers nor the partner wait for what is long and not urgent. */
const TURN = 10;

/** To be waited for after each step of long work: gives the loop a turn, but only once this one was held for long enough. */
export function breather(monotonic: () => number): () => Promise<void> {
  let began = monotonic();
  return async () => {
    if (monotonic() - began < TURN) return;
    await new Promise((resolve) => setImmediate(resolve));
    began = monotonic();
  };
}
