import type { Notice, IngestResult } from "../../../domain/delivery.ts";
import type { EventId } from "../../../domain/units.ts";
import { runToEnd, type ResumableTask } from "../../../platform/cooperative.ts";
import { readEvent, rejected } from "./event.ts";
import { fieldsOf, spelling, type Fields, isProblem } from "./fields.ts";
import { decodeJson, type Decoded, eachEntry } from "./json.ts";
import { readEventId } from "./schema.ts";
import { readMoment } from "./times.ts";

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
      readonly counts: Pick<IngestResult, "accepted" | "repeats">;
    };

const POLL: WebhookBody = {
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
      return POLL;
    case "json": {
      const room: Room = { left: MOST_ENTRIES };
      const part = readPart(decoded.value, room);
      if (room.left < 0) return { kind: "overfull", reason: `over ${MOST_ENTRIES} entries` };
      if (part === undefined) return POLL;
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
export function* readingList(body: Buffer): ResumableTask<ListBody> {
  const notices: Notice[] = [];
  const refused = yield* eachEntry(body, listFields, "events", (entry) => {
    if (notices.length === MOST_LISTED) return `over ${MOST_LISTED} entries`;
    notices.push(within(notices.length, readEvent(entry)));
    return null;
  });
  return refused === null ? read(notices) : unread(refused);
}

/** The same in one go. */
export const readListBody = (body: Buffer): ListBody => runToEnd(readingList(body));

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

/** What one part of a webhook body says. */
export interface Part {
  readonly notices: readonly Notice[];
  /** Events of which only the id was given. */
  readonly ask: readonly EventId[];
  /** Something may have happened, but it does not say what. */
  readonly poll: boolean;
  /** Entries of lists without a notice: those that name an event to fetch, and those about other objects. */
  readonly named: number;
  readonly foreign: number;
}

/** How many more entries may be read, lists within lists included: a body of a million would stall everything else. */
export interface Room {
  left: number;
}

const NOTHING: Part = { notices: [], ask: [], poll: false, named: 0, foreign: 0 };
const POLL_ONLY: Part = { ...NOTHING, poll: true };

const NAMES = [
  "ID",
  "eventId",
  "modificationDateTime",
  "intervalPeriod",
  "payload",
  "objectType",
  "operation",
  "object",
  "events",
  "event",
  "data",
  "specversion",
  "type",
] as const;
type Envelope = Fields<(typeof NAMES)[number]>;
const names = spelling(NAMES);

/**
 * An event, a list of anything, an OpenADR notification, an envelope around one of these (CloudEvents too),
 * or just an id (openadr3 6). Undefined: none of them. Recursion ends because json.ts caps the depth.
 */
export function readPart(raw: unknown, room: Room): Part | undefined {
  if (Array.isArray(raw)) return readEntries(raw, room);
  if (typeof raw === "string") return asking(raw);
  const fields = fieldsOf(names, raw);
  if (fields === undefined) return undefined;
  const isEvent = fields.intervalPeriod !== undefined || fields.payload !== undefined;
  // An OpenADR event carries an objectType itself, but neither an object nor an operation.
  const isNotification = typeof fields.objectType === "string" || typeof fields.operation === "string";
  if (isEvent && !(isNotification && (fields.object !== undefined || operationOf(fields) === "DELETE")))
    return { ...NOTHING, notices: [readEvent(raw)] };
  return isNotification ? readNotification(fields, room) : readEnvelope(fields, room);
}

/** One bad entry never costs its neighbours (failures F39). Each entry is counted: an answer accounts for all of them. */
function readEntries(entries: readonly unknown[], room: Room): Part {
  room.left -= entries.length;
  if (entries.length === 0 || room.left < 0) return POLL_ONLY;
  const parts = entries.map((entry, index) => {
    const part = Array.isArray(entry) ? undefined : readPart(entry, room);
    const counted = withCount(part ?? { ...NOTHING, notices: [readEvent(entry)] }, entry);
    return { ...counted, notices: counted.notices.map((notice) => within(index, notice)) };
  });
  return {
    notices: parts.flatMap((part) => part.notices),
    ask: parts.flatMap((part) => part.ask),
    poll: parts.some((part) => part.poll),
    named: parts.reduce((sum, part) => sum + part.named, 0),
    foreign: parts.reduce((sum, part) => sum + part.foreign, 0),
  };
}

/** An entry without a notice: it names an event, it does not say what happened, or it is about another object. */
function withCount(part: Part, entry: unknown): Part {
  if (part.notices.length + part.named + part.foreign > 0) return part;
  if (part.ask.length > 0) return { ...part, named: 1 };
  if (!part.poll) return { ...part, foreign: 1 };
  return { ...part, notices: [rejected(entry, null, "", "no event in it; expected an event or its id")] };
}

/** A notice from an entry of a list: a path tells which one. */
export function within(index: number, notice: Notice): Notice {
  if (notice.kind !== "rejected") return notice;
  const dot = notice.path === "" || notice.path.startsWith("[") ? "" : ".";
  return { ...notice, path: `[${index}]${dot}${notice.path}` };
}

const operationOf = ({ operation }: Envelope): string =>
  typeof operation === "string" ? operation.toUpperCase() : "";

function readNotification(fields: Envelope, room: Room): Part {
  const { objectType } = fields;
  if (typeof objectType === "string" && objectType.toUpperCase() !== "EVENT") return NOTHING;
  switch (operationOf(fields)) {
    case "DELETE":
      return readDelete(fields);
    case "CREATE":
    case "UPDATE":
    case "POST":
    case "PUT":
    case "READ":
    case "GET":
    case "":
      return readPart(fields.object, room) ?? asking(fields.eventId ?? fields.ID) ?? POLL_ONLY;
    default:
      return POLL_ONLY;
  }
}

/** The id alone is enough; an `id` of the notification is its own where there is a better one. */
function readDelete(fields: Envelope): Part {
  const { object = fields.eventId ?? fields.ID } = fields;
  const inside = fieldsOf(names, object);
  const id = readEventId(inside === undefined ? object : (inside.ID ?? inside.eventId));
  // The list will show what was meant.
  if (isProblem(id)) return { ...POLL_ONLY, notices: [rejected(fields, null, "object.ID", id.problem)] };
  const revision = readMoment((inside ?? fields).modificationDateTime);
  return { ...NOTHING, notices: [{ kind: "deleted", id, revision: isProblem(revision) ? null : revision }] };
}

/** Said in passing, not as a contract: never enough to withdraw, and the event beside it not enough to act. */
const DELETION = /delet|remov|withdr|cancel/i;

function readEnvelope(fields: Envelope, room: Room): Part | undefined {
  // A text in `event` names the kind of event, it holds none.
  if ([fields.type, fields.event].some((kind) => typeof kind === "string" && DELETION.test(kind)))
    return POLL_ONLY;
  if (Array.isArray(fields.events)) return readEntries(fields.events, room);
  const content = [fields.event, fields.data, fields.object].find((value) => typeof value === "object");
  const inside = content === undefined ? undefined : readPart(content, room);
  // The `id` of a CloudEvent is that of the delivery.
  return inside ?? asking(fields.eventId ?? (fields.specversion === undefined ? fields.ID : undefined));
}

function asking(found: unknown): Part | undefined {
  const id = readEventId(found);
  return isProblem(id) ? undefined : { ...NOTHING, ask: [id] };
}
