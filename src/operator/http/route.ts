import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import * as z from "zod";

import type { Json } from "../../domain/audit.ts";
import type { Role } from "../accounts.ts";
import { wholeNumber } from "../recordPages.ts";
import { type AccessOptions, authorize, type Person, type registerAccess } from "./access.ts";
import { parsed, Refusal } from "./problem.ts";
import { EVENT_STREAM } from "./stream.ts";

/** Media type of a body unless its route names another one. */
export const JSON_TYPE = "application/json";

/** A request whose query and body were checked, of a person who may send it. */
export interface Call<Query, Body> {
  readonly query: Query;
  readonly body: Body;
  /** Parts of the path, e.g. `id` of `/api/v1/holds/:id`. */
  readonly params: Readonly<Record<string, string>>;
  /** Without rights at a route with `role: null`, unless someone is signed in. */
  readonly person: Person;
  /** False: signed out meanwhile, removed, or with a smaller role. For answers that go on. */
  readonly mayStay: () => boolean;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

interface Described {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  /** Least role that may call it. Null: everyone who reaches the listener, also without a session. */
  readonly role: Role | null;
  /** A sentence for the API document. */
  readonly summary: string;
  /** Status of a success. Default 200. */
  readonly status?: number;
  /** Schema of the answer, for the API document. Absent: no JSON. */
  readonly answer?: z.ZodType;
  /** Media type of a body that is not JSON. Another one is answered 415. */
  readonly bodyType?: string;
  /** Media type of an answer that is not JSON. */
  readonly answerType?: string;
  /** Media type of another form of the answer, which the query chooses: text. */
  readonly textType?: string;
  /** Requests of one address in a minute. Absent: the limit of the whole listener. */
  readonly rateLimit?: number;
  /** True: for browsers, and not in the API document. */
  readonly isPage?: boolean;
}

/** A row of the route table. */
export interface Route extends Described {
  readonly query: z.ZodType;
  /** Null: the request has no body, or one that the route reads itself. */
  readonly body: z.ZodType | null;
  readonly run: (call: Omit<Call<unknown, unknown>, "query" | "body" | "params">) => unknown;
}

const NO_QUERY = z.strictObject({});

/** A row of the route table whose handler gets what the schemas of its query and body let through. */
export function route<Query extends z.ZodType = typeof NO_QUERY, Body extends z.ZodType = z.ZodNull>(
  row: Described & {
    readonly query?: Query;
    readonly body?: Body;
    readonly handle: (call: Call<z.output<Query>, z.output<Body>>) => unknown;
  },
): Route {
  const { query = NO_QUERY, body, handle, ...described } = row;
  return {
    ...described,
    query,
    body: body ?? null,
    run: (call) =>
      handle({
        ...call,
        query: parsed(query, call.request.query, "query") as z.output<Query>,
        body: (body === undefined
          ? null
          : parsed(body, bodyOf(body, call.request.body), "body")) as z.output<Body>,
        params: call.request.params as Readonly<Record<string, string>>,
      }),
  };
}

/** A request without a body is one without any member, so that each missing member is named. */
const bodyOf = (schema: z.ZodType, sent: unknown): unknown =>
  schema instanceof z.ZodObject ? (sent ?? {}) : sent;

/** Refuses a body of another media type than the route reads: a form would otherwise be read as JSON without its members. */
function checkBodyType(sent: string | undefined, expected: string): void {
  const [type = ""] = sent?.split(";") ?? [];
  if (type.trim() !== "" && type.trim().toLowerCase() !== expected)
    throw new Refusal(415, `${sent}; expected ${expected}`);
}

const KEY = /^[!-~]{1,128}$/;

/** The `Idempotency-Key` of a request. Null: none. Throws `Refusal` for a malformed one. */
export function idempotencyKey({ headers }: Pick<FastifyRequest, "headers">): string | null {
  const given = headers["idempotency-key"];
  if (given === undefined) return null;
  if (typeof given === "string" && KEY.test(given)) return given;
  const expected = "1 to 128 characters, no space";
  const found = String(given);
  throw new Refusal(400, `Idempotency-Key: ${expected}`, {
    title: "the request is not valid",
    errors: [{ path: "Idempotency-Key", found, expected }],
  });
}

/** Access to a route. `prove`: the connection of a request has shown who it is, and is not closed for others. */
interface RouteAccess extends Pick<AccessOptions, "access"> {
  readonly personOf: Awaited<ReturnType<typeof registerAccess>>;
  readonly prove: (socket: Socket) => void;
}

/** Has the listener answer this route to those who may call it. */
export function addRoute(
  app: FastifyInstance,
  { method, path, role, status = 200, bodyType = JSON_TYPE, answerType, rateLimit, run }: Route,
  { personOf, access, prove }: RouteAccess,
): void {
  // A probe of the health outlives its token, and so does the form to sign in.
  const callerOf = (request: FastifyRequest, isLater?: boolean): Person =>
    authorize(role === null ? null : personOf(request, isLater), role);
  app.route({
    method,
    url: path,
    ...(rateLimit === undefined ? {} : { config: { rateLimit: { max: rateLimit } } }),
    // After the rate limit, before the body is read.
    preParsing: async (request) => {
      callerOf(request);
      if (role !== null && (access.kind === "login" || answerType === EVENT_STREAM))
        prove(request.raw.socket);
      checkBodyType(request.headers["content-type"], bodyType);
    },
    handler: async (request, reply) => {
      reply.code(status).header("cache-control", "no-store");
      const mayStay = (): boolean => {
        try {
          callerOf(request, true);
          return true;
        } catch {
          return false;
        }
      };
      const answer = await run({ request, reply, person: callerOf(request), mayStay });
      return status === 204 ? reply.send() : answer;
    },
  });
}

/** The methods of the routes whose pattern a path has. Empty: there is no such path. */
export function methodsOf(routes: readonly Route[]): (path: string) => readonly string[] {
  const patterns = routes.map(({ method, path }) => ({
    methods: method === "GET" ? ["GET", "HEAD"] : [method],
    parts: path.split("/"),
  }));
  return (path) => {
    const parts = path.split("/");
    return patterns
      .filter(
        (pattern) =>
          pattern.parts.length === parts.length &&
          pattern.parts.every((part, index) => part === parts[index] || part.startsWith(":")),
      )
      .flatMap(({ methods }) => methods);
  };
}

/** Rows of a list. Asynchronous where they are read one by one. */
export type Rows = Iterable<Json> | AsyncIterable<Json>;

/** Query of every list: a part of it, by the key of its rows. */
export const pageQuery = z.strictObject({
  limit: wholeNumber.exactOptional().describe("At most so many rows."),
  after: z.string().exactOptional().describe("The key of the last row seen: the rows behind it follow."),
});

/** Rows that are built in one turn of the event loop. A row of a vehicle under many events takes half a millisecond. */
const ROWS_A_TURN = 16;

/** The rows behind the one whose key is `after`, at most `limit`. Throws if no row has that key. */
export async function page(
  all: Rows,
  key: string,
  { after, limit = Infinity }: z.output<typeof pageQuery>,
): Promise<Rows> {
  if (after === undefined && limit === Infinity) return all;
  const found: Json[] = [];
  let isBehind = after === undefined;
  let count = 0;
  for await (const row of all) {
    count += 1;
    if (count % ROWS_A_TURN === 0) await setImmediate();
    if (isBehind && found.length < limit) found.push(row);
    else isBehind ||= typeof row === "object" && row !== null && Reflect.get(row, key) === after;
    // A row too many may have to be read from the disk.
    if (isBehind && found.length >= limit) break;
  }
  if (isBehind) return found;
  throw new Refusal(400, `after: no row has the ${key} ${after}`, {
    errors: [{ path: "after", found: JSON.stringify(after), expected: `the ${key} of a row of this list` }],
  });
}

/** Characters of a list that are handed to the connection at once, more or less. */
const PIECE = 16 * 1024;

/** Serializes a JSON array piece by piece. So it neither fills the memory nor blocks the event loop. */
export async function* jsonList(elements: Rows): AsyncGenerator<string> {
  let piece = "[";
  let before = "";
  for await (const element of elements) {
    piece += before + JSON.stringify(element);
    before = ",";
    if (piece.length < PIECE) continue;
    yield piece;
    piece = "";
    await setImmediate();
  }
  yield `${piece}]`;
}
