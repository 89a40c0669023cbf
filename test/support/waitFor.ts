import { setTimeout as sleep } from "node:timers/promises";

/**
 * Polls until the condition holds (or answers something); throws with its last answer when the time is up. The time is
 * no bound on the program: a busy machine needs many times what an idle one does.
 */
export async function waitFor<T>(
  condition: () => T | Promise<T>,
  { timeoutMs = 30_000, everyMs = 10 }: { readonly timeoutMs?: number; readonly everyMs?: number } = {},
): Promise<NonNullable<T>> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const answer = await condition();
    if (answer) return answer;
    if (performance.now() > deadline) {
      throw new Error(`waited ${timeoutMs} ms for ${condition.toString()}, last answer: ${String(answer)}`);
    }
    await sleep(everyMs);
  }
}
