import type { FastifyReply } from "fastify";
import * as z from "zod";

import type { Json } from "../../domain/audit.ts";
import { STATUS_CODES } from "../../platform/listener.ts";
import { type Answer, type InputError, PROBLEM_TYPE } from "../answer.ts";
import { findings, pathText, sentence } from "../../config/explain.ts";

/** Thrown by a handler: the client gets this status and text as problem+json (RFC 9457). */
export class Refusal extends Error {
  readonly statusCode: number;
  readonly title: string;
  readonly errors: readonly InputError[];
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    detail: string,
    more: {
      readonly title?: string;
      readonly errors?: readonly InputError[];
      readonly headers?: Readonly<Record<string, string>>;
    } = {},
  ) {
    super(detail);
    this.statusCode = status;
    this.title = more.title ?? STATUS_CODES[status] ?? "Error";
    this.errors = more.errors ?? [];
    this.headers = more.headers ?? {};
  }
}

/** Answer to a request that failed. `passing`: the reason of an error that may pass. Null: a bug. */
export const failure = (passing: string | null): Refusal =>
  passing === null
    ? new Refusal(500, "internal error")
    : new Refusal(503, passing, { headers: { "retry-after": "5" } });

/** The value of an answer. Throws its problem. */
export function valueOf<Value extends Json>(answer: Answer<Value>): Value {
  if (answer.ok) return answer.value;
  const { status, title, detail, errors } = answer.problem;
  throw new Refusal(status, detail, { title, errors });
}

export const problemBody = z.object({
  type: z.literal("about:blank"),
  title: z.string(),
  status: z.int(),
  detail: z.string().describe("A sentence for the person who asked."),
  error: z.string().describe("The same as detail, for older programs."),
  errors: z
    .array(z.object({ path: z.string(), found: z.unknown(), expected: z.string() }))
    .describe("The faults of the request, one by one. Empty: none has a place."),
});

/** Answers with a problem (RFC 9457), and ends the request. */
export function sendProblem(reply: FastifyReply, refusal: Refusal): FastifyReply {
  const { statusCode: status, title, message: detail, errors, headers } = refusal;
  const body: z.infer<typeof problemBody> = {
    type: "about:blank",
    title,
    status,
    detail,
    error: detail,
    errors: [...errors],
  };
  return reply.code(status).headers(headers).type(PROBLEM_TYPE).send(JSON.stringify(body));
}

/** The right value of a member of a JSON body. The sentences of the configuration are about YAML. */
const JSON_TYPES: Readonly<Record<string, string>> = {
  string: "a text",
  object: "a JSON object",
  record: "a JSON object",
  array: "a JSON array",
};

const requestSentence: z.core.$ZodErrorMap = (issue) =>
  (issue.code === "invalid_type" ? JSON_TYPES[issue.expected] : undefined) ?? sentence(issue);

/** Parses one part of a request. Throws a `Refusal` that names each fault. */
export function parsed<T extends z.ZodType>(schema: T, value: unknown, part: "body" | "query"): z.output<T> {
  const result = schema.safeParse(value, { error: requestSentence });
  if (result.success) return result.data;
  const errors = findings(result.error, value).map(({ path, found, expected }) => ({
    path: pathText(path),
    found: found === "a section" ? "a JSON object" : found,
    expected,
  }));
  const [first] = errors;
  const detail =
    first === undefined
      ? `the ${part} cannot be used`
      : `${first.path === "" ? part : first.path}: ${first.found}; expected ${first.expected}`;
  throw new Refusal(400, detail, { errors });
}
