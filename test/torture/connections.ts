/** When each run had its broker, ms since the epoch; none: it never had. */
type Connections = readonly (readonly number[])[];

/** No process has its broker sooner after its start: what is heard by then was said by the one before. */
const STARTING = 100;

/**
 * By the `true` that each connection begins with, as it was heard at the broker. What a process logs does not tell: of
 * one that kills itself right after it connected, the last lines are lost.
 */
export function connectionsOf(
  startedAt: readonly number[],
  greetings: readonly { readonly at: number; readonly text: string }[],
): Connections {
  const heard = greetings.filter(({ text }) => text === "true").map(({ at }) => at);
  return startedAt.map((started, run) => {
    const next = startedAt[run + 1] ?? Number.POSITIVE_INFINITY;
    return heard.filter((at) => at >= started + STARTING && at < next + STARTING);
  });
}
