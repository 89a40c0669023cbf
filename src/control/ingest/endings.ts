import { type Ending, type KnownEvent, LONGEST_TAIL, type Revision } from "../../domain/event.ts";
import type { Instant } from "../../domain/units.ts";

/** Cap on endings. An event with more edits than this in ten minutes loses its oldest endings. */
const MOST_ENDINGS = 32;

/**
 * The endings so far, plus one for this revision if it may have been acting when it was replaced.
 * While earlier endings count, each later revision is kept: it may have taken over from them.
 */
export function endingsWith(live: KnownEvent & { kind: "live" }, at: Instant): readonly Ending[] {
  const { revision, receivedAt } = live;
  const { duration, randomizeStart, ask } = revision.event;
  const open = revision.start <= at && at < revision.start + randomizeStart + duration;
  const earlier = stillEnding(live.endings, at);
  const counts = (open && ask.kind !== "unknown") || earlier.length > 0;
  if (!counts) return earlier;
  const all = [...live.endings, { revision, at, receivedAt }];
  const kept = all.slice(-Math.min(earlier.length + 1, MOST_ENDINGS));
  const dropped = all[all.length - kept.length - 1];
  return kept.map((ending, place) => (place === 0 ? continuing(dropped, ending) : ending));
}

/** Endings that may still hold for a vehicle at this moment. */
export const stillEnding = (endings: readonly Ending[], at: Instant): readonly Ending[] =>
  endings.filter((ending) => at < ending.at + LONGEST_TAIL);

/**
 * The oldest ending that is kept. Where each window begins as under the ending before it, which is dropped, it counts as
 * received with that: `knownAt` then finds when the window was known first. Equal target lists are one list in memory.
 */
function continuing(before: Ending | undefined, ending: Ending): Ending {
  const isAlike = before !== undefined && before.at === ending.receivedAt && beginAlike(before, ending);
  return isAlike && before.receivedAt !== undefined ? { ...ending, receivedAt: before.receivedAt } : ending;
}

const beginAlike = ({ revision: one }: Ending, { revision: other }: Ending): boolean =>
  beginningOf(one) === beginningOf(other) && one.event.targets === other.event.targets;
const beginningOf = ({ start, event }: Revision): string =>
  `${start} ${event.wireStart} ${event.randomizeStart} ${event.duration} ${event.ask.kind}`;
