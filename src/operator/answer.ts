import { z } from "zod";

import type { Json } from "../domain/audit.ts";
import type { NotStored } from "../domain/changes.ts";
import { instant, type Instant } from "../domain/units.ts";
import { listed, sanitizeForLog } from "../platform/text.ts";

/** A mistake in a request. */
export type InputError = { readonly path: string; readonly found: Json; readonly expected: string };

/** Why a request was refused (RFC 9457). */
export type Problem = {
  readonly status: 400 | 404 | 409 | 503;
  readonly title: string;
  readonly detail: string;
  readonly errors: readonly InputError[];
};

export type Answer<Value extends Json> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly problem: Problem };

/** A sealed text, in pieces of whole lines: that of a fleet is 100 MB. Or the reason why there is none. */
export type Proof =
  | { readonly ok: true; readonly pieces: AsyncIterable<string> }
  | { readonly ok: false; readonly reason: string };

/** A proof as lines of JSON: a piece of its text in each, or the reason why there is none. */
export async function* proofLines(proof: Proof): AsyncGenerator<string> {
  if (!proof.ok) yield `${JSON.stringify({ reason: proof.reason })}\n`;
  else for await (const piece of proof.pieces) yield `${JSON.stringify({ piece })}\n`;
}

/** Media type of a problem. */
export const PROBLEM_TYPE = "application/problem+json; charset=utf-8";

/** A request with mistakes. */
export const invalid = (
  ...errors: readonly InputError[]
): { readonly ok: false; readonly problem: Problem } => ({
  ok: false,
  problem: {
    status: 400,
    title: "the request is not valid",
    detail: errors.map(({ path, expected }) => `${path === "" ? "body" : path}: ${expected}`).join("; "),
    errors,
  },
});

/** The commit of a change failed, or its outcome is not known. `shownIn`: what shows the change once it is stored. */
export const notStored = (
  { reason, isUnsure }: Omit<NotStored, "ok">,
  shownIn = "the status and the holds",
): { readonly ok: false; readonly problem: Problem } => ({
  ok: false,
  problem: {
    status: 503,
    title:
      isUnsure === true
        ? "it is not known whether this was stored"
        : "nothing was changed: it cannot be stored",
    detail: isUnsure === true ? `${reason}; look at ${shownIn} before you repeat it` : reason,
    errors: [],
  },
});

/** A request that what is known or configured does not allow. */
export const conflict = (title: string, detail: string, ...errors: readonly InputError[]): Answer<Json> => ({
  ok: false,
  problem: { status: 409, title, detail, errors },
});

/** Names in the answer to an unknown name. */
const MOST_NAMES = 20;

/** The known names, for the answer to an unknown one. */
export function oneOf(known: readonly string[]): string {
  return known.length === 0 ? "none is configured" : `one of ${listed(known, MOST_NAMES)}`;
}

/** A name that no charger or no vehicle of the site has. */
export function noSuch(
  kind: "charger" | "vehicle",
  name: string,
  known: readonly string[],
): { readonly ok: false; readonly problem: Problem } {
  const found = sanitizeForLog(name);
  const expected = oneOf(known);
  return {
    ok: false,
    problem: {
      status: 404,
      title: `there is no ${kind} ${found}`,
      detail: expected,
      errors: [{ path: kind, found, expected }],
    },
  };
}

/** A key that came with another request before. */
export const keyOfAnother = (key: string): Answer<Json> =>
  conflict("this Idempotency-Key was used for another request", "use a new key for a new request", {
    path: "Idempotency-Key",
    found: key,
    expected: "a key that is new",
  });

export const starting: Answer<Json> = {
  ok: false,
  problem: { status: 503, title: "setpointd is starting", detail: "try again in a moment", errors: [] },
};

/** A part of a request, as a problem shows it. Null: absent. */
export const asJson = (value: unknown): Json =>
  value === undefined ? null : (JSON.parse(JSON.stringify(value, finite)) as Json);

/** JSON.parse reads 1e400 as Infinity, and JSON.stringify would write it as null. */
const finite = (_name: string, value: unknown): unknown =>
  typeof value === "number" && !Number.isFinite(value) ? String(value) : value;

const DAY = z.iso.date();
const MOMENT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(Z|[+-]\d{2}:\d{2})?$/;

/** A moment in a request. UTC without a zone. Null: not a moment. */
export function momentIn(text: string): Instant | null {
  const match = MOMENT.exec(text);
  // Date.parse reads November 31 as December 1, and "5" as a day of 2001.
  if (match === null || !DAY.safeParse(text.slice(0, 10)).success) return null;
  const at = Date.parse(match[1] === undefined ? `${text}Z` : text);
  return Number.isNaN(at) ? null : instant(at);
}

/** A problem as people read it. */
export const formatProblem = ({ title, detail }: Pick<Problem, "title" | "detail">): string =>
  detail === "" ? title : `${title}: ${detail}`;

/** A mistake for each member of a request that has no meaning. `known` has the members that do. */
export const unknownMembers = (given: object, known: object): readonly InputError[] =>
  Object.entries(given)
    // `in` would count a member named constructor as known.
    .filter(([name]) => !Object.hasOwn(known, name))
    .map(([path, found]) => ({
      path,
      found: asJson(found),
      expected: `one of ${Object.keys(known).join(", ")}`,
    }));

/**
 * Mistakes in the body of a request: members that have no meaning, then those that `schema` refuses. `expected` has a
 * sentence for each member.
 */
export function mistakesIn(
  body: unknown,
  schema: z.ZodType,
  expected: Readonly<Record<string, string>>,
): readonly InputError[] {
  if (typeof body !== "object" || body === null || Array.isArray(body))
    return [{ path: "", found: asJson(body), expected: "a JSON object" }];
  const wrong = new Set(schema.safeParse(body).error?.issues.map(({ path: [member] }) => member));
  const refused = Object.entries(expected).filter(([member]) => wrong.has(member));
  return [
    ...unknownMembers(body, expected),
    ...refused.map(([path, sentence]) => ({
      path,
      found: asJson(Reflect.get(body, path)),
      expected: sentence,
    })),
  ];
}

/** Cap on remembered answers to requests with a key. */
const MOST_ANSWERS = 1_000;

/** Answers to requests with a key: a repeated request gets the first answer. */
export class FirstAnswers {
  readonly #first = new Map<string, { readonly hash: string; readonly answer: Promise<Answer<Json>> }>();

  /**
   * Answers by `act`, or as the first request with this key was answered. Null key: by `act`.
   * `act` calls `onKnown` with the later answer of a request in doubt: a repeated request gets that one.
   */
  once(
    key: string | null,
    hash: string,
    act: (onKnown: (answer: Answer<Json>) => void) => Promise<Answer<Json>>,
  ): Promise<Answer<Json>> {
    if (key === null) return act(() => undefined);
    const first = this.#first.get(key);
    if (first !== undefined) return first.hash === hash ? first.answer : Promise.resolve(keyOfAnother(key));
    const answer = act((known) => this.#remember(key, hash, Promise.resolve(known)));
    this.#remember(key, hash, answer);
    return answer;
  }

  #remember(key: string, hash: string, answer: Promise<Answer<Json>>): void {
    this.#first.set(key, { hash, answer });
    for (const oldest of this.#first.keys().take(Math.max(0, this.#first.size - MOST_ANSWERS)))
      this.#first.delete(oldest);
    // A request that changed nothing, or failed by a bug, may be sent again. The caller handles the error.
    const forget = (): unknown => this.#first.get(key)?.answer === answer && this.#first.delete(key);
    void answer.then(({ ok }) => ok || forget(), forget);
  }
}
