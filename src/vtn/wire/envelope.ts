import type { Notice, Taken } from "../../core/delivery.ts";
import { atOnce, type Steps } from "../../core/steps.ts";
import type { EventId } from "../../core/units.ts";
import { readEvent } from "./event.ts";
import { fieldsOf, spelling } from "./fields.ts";
import { decodeJson, type Decoded } from "./json.ts";
import { eachEntry } from "./jsonList.ts";
import { readPart, type Room, within } from "./notification.ts";

/** What a webhook body says. */
export type WebhookBody =
  | { readonly kind: "unparsable"; readonly reason: string }
  /** More entries than any sender has reason for: none of them was read, the list will tell. */
  | { readonly kind: "overfull"; readonly reason: string }
  | {
      readonly kind: "read";
      readonly notices: readonly Notice[];
      /** Events of which only the id was given: to be fetched. */
      readonly ask: readonly EventId[];
      /** Something may have happened, this body does not say what: look at the list. */
      readonly poll: boolean;
      /** Entries of lists without a notice, as the answer counts them. */
      readonly counts: Pick<Taken, "accepted" | "repeats">;
    };

const LOOK: WebhookBody = {
  kind: "read",
  notices: [],
  ask: [],
  poll: true,
  counts: { accepted: 0, repeats: 0 },
};

/** Events as a fetch returned them. `complete`: every entry had a readable id, so absence can be believed. */
export type ListBody =
  | { readonly kind: "unparsable"; readonly reason: string }
  | { readonly kind: "read"; readonly notices: readonly Notice[]; readonly complete: boolean };

/** Each id costs the partner a request; beyond this many the list is cheaper (DESIGN 5.7). */
const MOST_ASKED = 20;
/** Events of their least size fill a webhook body (1 MiB) with some 7,000, those of the contract with 2,500. */
const MOST_ENTRIES = 10_000;
/** A list (16 MiB) of the contract's events holds some 40,000. */
const MOST_LISTED = 100_000;

/** Any of the shapes a sender may choose (notification.ts); unknown JSON and an empty body ask for a look at the list. */
export function readWebhookBody(body: Buffer): WebhookBody {
  const decoded = decodeJson(body);
  switch (decoded.kind) {
    case "unparsable":
      return decoded;
    case "empty":
      return LOOK;
    case "json": {
      const room: Room = { left: MOST_ENTRIES };
      const part = readPart(decoded.value, room);
      if (room.left < 0) return { kind: "overfull", reason: `over ${MOST_ENTRIES} entries` };
      if (part === undefined) return LOOK;
      const { notices, poll, named, foreign } = part;
      const counts = { accepted: named, repeats: foreign };
      const asked = [...new Set(part.ask)];
      return asked.length > MOST_ASKED
        ? { kind: "read", notices, ask: [], poll: true, counts }
        : { kind: "read", notices, ask: asked, poll, counts };
    }
  }
}

const listFields = spelling(["events"]);

/**
 * `GET /events`: a bare array (partner-interface 4.3) or `{events: [...]}`; anything else is no list. Read entry by
 * entry: the parsed text of a whole list would take more memory than all of its events.
 */
export function* readingList(body: Buffer): Steps<ListBody> {
  const notices: Notice[] = [];
  const refused = yield* eachEntry(body, listFields, "events", (entry) => {
    if (notices.length === MOST_LISTED) return `over ${MOST_LISTED} entries`;
    notices.push(within(notices.length, readEvent(entry)));
    return null;
  });
  return refused === null ? read(notices) : unread(refused);
}

/** The same in one go. */
export const readListBody = (body: Buffer): ListBody => atOnce(readingList(body));

const singleFields = spelling(["event", "data", "ID", "intervalPeriod", "payload", "eventId"]);

/** `GET /events/{id}`: one event object (partner-interface 4.4), also inside `{event}` or `{data}`. */
export function readEventBody(body: Buffer): ListBody {
  const decoded = decodeJson(body);
  if (decoded.kind !== "json") return unread(decoded);
  const fields = fieldsOf(singleFields, decoded.value);
  if (fields?.intervalPeriod !== undefined || fields?.payload !== undefined)
    return read([readEvent(decoded.value)]);
  const inner = [fields?.event, fields?.data].find((value) => fieldsOf(singleFields, value) !== undefined);
  if (inner !== undefined) return read([readEvent(inner)]);
  if ((fields?.ID ?? fields?.eventId) !== undefined) return read([readEvent(decoded.value)]);
  return { kind: "unparsable", reason: "no event in it" };
}

const unread = (decoded: Exclude<Decoded, { kind: "json" }>): ListBody =>
  decoded.kind === "empty" ? { kind: "unparsable", reason: "empty" } : decoded;

const read = (notices: readonly Notice[]): ListBody => ({
  kind: "read",
  notices,
  complete: notices.every((notice) => notice.kind !== "rejected" || notice.id !== null),
});
