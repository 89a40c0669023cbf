import { type Delivery, latestNotices, type Notice } from "../../domain/delivery.ts";

/** Events of a list that are taken in within one turn of the event loop, and committed in one transaction. */
const PART = 250;

/** Too long to be taken in within one turn of the event loop. Only a list can be: a webhook is answered as a whole. */
export const isLong = ({ source, notices }: Delivery): boolean => source === "list" && notices.length > PART;

/** A long list as parts that are taken in one after the other. */
interface ListParts {
  readonly parts: readonly Delivery[];
  /** What could not be read: one row of the record sums it up, so it stays together. Taken in after all parts. */
  readonly last: Delivery;
}

/** Whatever a list says of one event stays in one part. None of them is complete: they do not show absence. */
export function partsOf(delivery: Delivery): ListParts {
  const readable = delivery.notices.filter(({ kind }) => kind !== "rejected");
  const notices = latestNotices(readable) === readable ? readable : togetherById(readable);
  const parts: Delivery[] = [];
  for (let from = 0; from < notices.length;) {
    let until = Math.min(from + PART, notices.length);
    while (until < notices.length && idOf(notices[until]) === idOf(notices[until - 1])) until += 1;
    parts.push({ ...delivery, notices: notices.slice(from, until), complete: false });
    from = until;
  }
  const unreadable = delivery.notices.filter(({ kind }) => kind === "rejected");
  return { parts, last: { ...delivery, notices: unreadable, complete: false } };
}

const togetherById = (notices: readonly Notice[]): readonly Notice[] =>
  [...Map.groupBy(notices, idOf).values()].flat();

const idOf = (notice: Notice | undefined): string | null => {
  if (notice === undefined) return null;
  return notice.kind === "event" ? notice.event.id : notice.id;
};
