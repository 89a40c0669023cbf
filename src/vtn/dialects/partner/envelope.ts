import type { Notice } from "../../../domain/delivery.ts";
import type { EventId } from "../../../domain/units.ts";
import type { ResumableTask } from "../../../platform/cooperative.ts";
import type { WebhookBody, ListBody, ListIndex } from "../dialect.ts";
import { readEvent, rejected, readEventId } from "./event.ts";
import { fieldsOf, spelling, type Fields, isProblem, readMoment } from "./fields.ts";
import { decodeJson, type Decoded, eachEntry } from "./json.ts";
import { listChanges, ListIndexer } from "./listChanges.ts";

const POLL: WebhookBody = {
  kind: "read",
  notices: [],
  fetchById: [],
  poll: true,
  foreign: 0,
};

/** Limit of fetches by id. Each costs a request; beyond this many the list is cheaper. */
const MOST_ASKED = 20;
/** A webhook body (1 MiB) holds about 7,000 events of the least size, or 2,500 of the usual size. */
const MOST_ENTRIES = 10_000;
/** A list (16 MiB) holds about 40,000 events of the usual size. */
const MOST_LISTED = 100_000;

/** Accepts every known shape of a webhook body. Unknown JSON and an empty body request the list. */
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
      const { notices, poll, foreign } = part;
      const fetchById = [...new Set(part.fetchById)];
      return fetchById.length > MOST_ASKED
        ? { kind: "read", notices, fetchById: [], poll: true, foreign }
        : { kind: "read", notices, fetchById, poll, foreign };
    }
  }
}

const listFields = spelling(["events"]);

/**
 * Reads `GET /events`: a bare array or `{events: [...]}`; anything else is no list. Entries are parsed one by
 * one: the parsed text of a whole list would need more memory than all its events.
 */
export function* readingList(body: Buffer, earlier?: ListIndex | null): ResumableTask<ListBody> {
  if (earlier === undefined) return yield* readingWhole(body);
  const compared = earlier === null ? null : yield* readingChanges(body, earlier);
  if (compared !== null) return compared;
  const indexer = new ListIndexer();
  const whole = yield* readingWhole(body, (notice, until) => addTo(indexer, notice, until));
  return whole.kind === "read" ? { ...whole, index: indexer.index(body) } : whole;
}

function* readingWhole(
  body: Buffer,
  onEntry: (notice: ListNotice, until: number) => void = () => {},
): ResumableTask<ListBody> {
  const notices: Notice[] = [];
  const refused = yield* eachEntry(body, listFields, "events", (entry, until) => {
    if (notices.length === MOST_LISTED) return `over ${MOST_LISTED} entries`;
    const notice = readEvent(entry);
    onEntry(notice, until);
    notices.push(within(notices.length, notice));
    return null;
  });
  return refused === null ? read(notices) : unread(refused);
}

type ListNotice = ReturnType<typeof readEvent>;

const addTo = (indexer: ListIndexer, notice: ListNotice, until: number): void =>
  notice.kind === "event" ? indexer.add(until, notice.event.id, false) : indexer.add(until, notice.id, true);

/** Null: read the list as a whole. */
function* readingChanges(body: Buffer, earlier: ListIndex): ResumableTask<ListBody | null> {
  const found = yield* listChanges(body, earlier);
  if (found === null) return null;
  const indexer = new ListIndexer();
  const notices: Notice[] = [];
  const ids: EventId[] = [];
  let [position, rejected] = [0, 0];
  for (const part of found) {
    if ("value" in part) {
      const notice = readEvent(part.value);
      notices.push(within(position, notice));
      addTo(indexer, notice, part.until);
      position += 1;
    } else {
      const { first, count } = part;
      indexer.addSame(part, earlier);
      for (const id of earlier.ids.slice(first, first + count)) ids.push(id);
      for (const isRejected of earlier.rejected.slice(first, first + count)) if (isRejected) rejected += 1;
      position += count;
    }
  }
  const index = position > MOST_LISTED ? null : indexer.index(body);
  return index === null ? null : { ...read(notices), unchanged: { ids, rejected }, index };
}

const singleFields = spelling(["event", "data", "ID", "intervalPeriod", "payload", "eventId"]);

/** Reads `GET /events/{id}`: one event object, also inside `{event}` or `{data}`. */
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

const read = (notices: readonly Notice[]): Extract<ListBody, { kind: "read" }> => ({
  kind: "read",
  notices,
  complete: notices.every((notice) => notice.kind !== "rejected" || notice.id !== null),
});

/** Content of one part of a webhook body. */
export interface Part {
  readonly notices: readonly Notice[];
  /** Events of which only the id was given. */
  readonly fetchById: readonly EventId[];
  /** True: something may have changed, but the part does not show what. */
  readonly poll: boolean;
  /** Entries of lists that concern other objects than events. */
  readonly foreign: number;
}

/** Entries that may still be read, nested lists included. A body with a million entries would block everything else. */
export interface Room {
  left: number;
}

const NOTHING: Part = { notices: [], fetchById: [], poll: false, foreign: 0 };
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
  "eventType",
  "notificationType",
  "action",
] as const;
type Envelope = Fields<(typeof NAMES)[number]>;
const names = spelling(NAMES);

/**
 * Reads an event, a list of anything, an OpenADR notification, an envelope around one of these (CloudEvents
 * too), or a bare id. Undefined: none of them. Recursion ends because json.ts caps the depth.
 */
export function readPart(raw: unknown, room: Room): Part | undefined {
  if (Array.isArray(raw)) return readEntries(raw, room);
  if (typeof raw === "string") return asking(raw);
  const fields = fieldsOf(names, raw);
  if (fields === undefined) return undefined;
  const isEvent = fields.intervalPeriod !== undefined || fields.payload !== undefined;
  // An OpenADR event has an objectType too, but neither an object nor an operation.
  const isNotification = typeof fields.objectType === "string" || typeof fields.operation === "string";
  if (isEvent && !(isNotification && (fields.object !== undefined || operationOf(fields) === "DELETE")))
    return { ...NOTHING, notices: [readEvent(raw)] };
  return isNotification ? readNotification(fields, room) : readEnvelope(fields, room);
}

/** A bad entry is rejected alone; the others are read. Each entry is counted, so the answer accounts for all of them. */
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
    fetchById: parts.flatMap((part) => part.fetchById),
    poll: parts.some((part) => part.poll),
    foreign: parts.reduce((sum, part) => sum + part.foreign, 0),
  };
}

/**
 * Counts an entry without a notice: it concerns another object, or is rejected. An entry with an id alone is no event:
 * it is rejected, and the event is fetched by that id.
 */
function withCount(part: Part, entry: unknown): Part {
  if (part.notices.length + part.foreign > 0) return part;
  const [named] = part.fetchById;
  if (named !== undefined)
    return { ...part, notices: [rejected(entry, named, "", "an id and no event; it is fetched by that id")] };
  if (!part.poll) return { ...part, foreign: 1 };
  return { ...part, notices: [rejected(entry, null, "", "no event in it; expected an event or its id")] };
}

/** Adds the index of the list entry to the path of a rejection. */
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
  const operation = operationOf(fields);
  if (operation === "DELETE") return readDelete(fields);
  if (suggestsDeletion(fields)) return readSuggestedDelete(fields);
  switch (operation) {
    case "CREATE":
    case "UPDATE":
    case "POST":
    case "PUT":
    case "READ":
    case "GET":
    case "":
      return readPart(contentOf(fields), room) ?? asking(fields.eventId ?? fields.ID) ?? POLL_ONLY;
    default:
      return POLL_ONLY;
  }
}

/** The object of a notification. Some senders call it as an envelope does. */
const contentOf = ({ object, event, data }: Envelope): unknown =>
  object ?? [event, data].find((value) => typeof value === "object");

/** The id alone is enough. The notification's own `id` is used only where no better one exists. */
function readDelete(fields: Envelope): Part {
  const object = contentOf(fields) ?? fields.eventId ?? fields.ID;
  const inside = fieldsOf(names, object);
  const id = readEventId(inside === undefined ? object : (inside.ID ?? inside.eventId));
  // The list will show what was meant.
  if (isProblem(id)) return { ...POLL_ONLY, notices: [rejected(fields, null, "object.ID", id.problem)] };
  const revision = readMoment((inside ?? fields).modificationDateTime);
  return { ...NOTHING, notices: [{ kind: "deleted", id, revision: isProblem(revision) ? null : revision }] };
}

/**
 * Names that suggest a deletion. They are no contract: the event beside them is not acted on, and the partner is asked
 * whether the event is gone.
 */
const DELETION = /delet|remov|withdr|cancel/i;

/** A text in `event` is the kind of event, not an event. */
const suggestsDeletion = (fields: Envelope): boolean =>
  (["operation", "type", "event", "eventType", "notificationType", "action"] as const).some((name) => {
    const kind = fields[name];
    return typeof kind === "string" && DELETION.test(kind);
  });

/** A delete without a revision: a fetch by id confirms it. */
function readSuggestedDelete(fields: Envelope): Part {
  const inside = fieldsOf(names, contentOf(fields));
  const own = fields.specversion === undefined ? fields.ID : undefined;
  const id = readEventId(inside?.ID ?? inside?.eventId ?? fields.eventId ?? own);
  return isProblem(id) ? POLL_ONLY : { ...NOTHING, notices: [{ kind: "deleted", id, revision: null }] };
}

function readEnvelope(fields: Envelope, room: Room): Part | undefined {
  if (suggestsDeletion(fields)) return readSuggestedDelete(fields);
  if (Array.isArray(fields.events)) return readEntries(fields.events, room);
  const content = [fields.event, fields.data, fields.object].find((value) => typeof value === "object");
  const inside = content === undefined ? undefined : readPart(content, room);
  // The `id` of a CloudEvent is that of the delivery.
  return inside ?? asking(fields.eventId ?? (fields.specversion === undefined ? fields.ID : undefined));
}

function asking(found: unknown): Part | undefined {
  const id = readEventId(found);
  return isProblem(id) ? undefined : { ...NOTHING, fetchById: [id] };
}
