import { type Delivery, latestNotices, type Notice } from "../../domain/delivery.ts";

/** Events of a list that are ingested in one turn of the event loop, and committed in one transaction. */
const PART = 250;

/** Too long for one turn of the event loop. Lists only: a webhook is answered as a whole. */
export const isLong = ({ source, notices }: Delivery): boolean => source === "list" && notices.length > PART;

/** A long list as parts that are ingested in order. */
interface ListParts {
  readonly parts: readonly Delivery[];
  /**
   * Unreadable entries, ingested after all parts. They stay together because one row of the record sums them
   * up.
   */
  readonly last: Delivery;
}

/** All entries of one event stay in one part. No part is complete, so none shows absence. */
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
