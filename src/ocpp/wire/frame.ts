/** Frames of OCPP-J: what both versions share. Pure. */

/** Members of a message. */
export type Payload = Readonly<Record<string, unknown>>;

/** A request of either side. */
export interface Call {
  readonly kind: "call";
  readonly id: string;
  readonly action: string;
  readonly payload: Payload;
}

export type Frame =
  | Call
  | { readonly kind: "result"; readonly id: string; readonly payload: Payload }
  | { readonly kind: "error"; readonly id: string; readonly code: string; readonly description: string }
  /** `id`: of a CALL that can be refused by name. Null: no id is readable. */
  | { readonly kind: "malformed"; readonly id: string | null; readonly reason: string };

/** Answer to a CALL. */
export type Reply =
  | { readonly ok: true; readonly payload: Payload }
  | { readonly ok: false; readonly code: string; readonly description: string };

const CALL = 2;
const RESULT = 3;
const ERROR = 4;

/** Ids have at most 36 characters. Some makes use more. */
const LONGEST_ID = 128;
const LONGEST_ACTION = 64;

const isPayload = (value: unknown): value is Payload =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const malformed = (id: string | null, reason: string): Frame => ({ kind: "malformed", id, reason });

/** Reads one message. Never throws, whatever the text. */
export function readFrame(text: string): Frame {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return malformed(null, "not JSON");
  }
  if (!Array.isArray(json)) return malformed(null, "no array");
  const [type, id, third, fourth] = json as readonly unknown[];
  // Some makes send the id as a number.
  const name = typeof id === "number" ? String(id) : id;
  if (typeof name !== "string" || name === "" || name.length > LONGEST_ID)
    return malformed(null, "no message id");
  switch (type) {
    case CALL:
      if (typeof third !== "string" || third.length > LONGEST_ACTION) return malformed(name, "no action");
      // Some makes leave out the payload of a message without members.
      if (fourth !== undefined && fourth !== null && !isPayload(fourth))
        return malformed(name, "the payload is no object");
      return { kind: "call", id: name, action: third, payload: isPayload(fourth) ? fourth : {} };
    case RESULT:
      return { kind: "result", id: name, payload: isPayload(third) ? third : {} };
    case ERROR:
      return {
        kind: "error",
        id: name,
        code: typeof third === "string" ? third.slice(0, LONGEST_ACTION) : "GenericError",
        description: typeof fourth === "string" ? fourth.slice(0, 255) : "",
      };
    default:
      return malformed(null, "no message type");
  }
}

export const writeCall = (id: string, action: string, payload: Payload): string =>
  JSON.stringify([CALL, id, action, payload]);

export const writeReply = (id: string, reply: Reply): string =>
  JSON.stringify(
    reply.ok ? [RESULT, id, reply.payload] : [ERROR, id, reply.code, reply.description.slice(0, 255), {}],
  );
