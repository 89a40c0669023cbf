import { Agent } from "undici";
import type { Instant, Millis } from "../core/units.ts";
import { Body } from "./body.ts";
import type { HeaderFields } from "./headers.ts";

/** One request: `origin` and `path` apart, because a joined URL would resolve dot segments. */
export interface Ask {
  readonly origin: string;
  readonly path: string;
  readonly method: "GET" | "POST";
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer | null;
  /** The body that the answer may well have; null: nobody knows. */
  readonly expected: Buffer | null;
}

/** A whole answer, whatever its status. */
export interface Answered {
  readonly kind: "answered";
  readonly status: number;
  readonly headers: HeaderFields;
  /** The very buffer that was `expected`, if it is the same byte for byte. */
  readonly body: Buffer;
  /** When it was asked for, and when its head came. */
  readonly askedAt: Instant;
  readonly at: Instant;
}

/** Silent: no whole answer came. */
export type Answer = Answered | { readonly kind: "silent"; readonly reason: string };

/** An HTTP/1.1 client whose answers cannot exceed `maxBytes`; to be destroyed at the end. */
export const agentFor = (maxBytes: number, deadline: Millis): Agent =>
  // `rejectUnauthorized` said aloud: NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment must not turn it off.
  new Agent({
    maxResponseSize: maxBytes,
    connect: { timeout: deadline, rejectUnauthorized: true },
    allowH2: false,
  });

/**
 * Asks once and reads the whole answer. One deadline covers connecting, the head and the body: a timeout per
 * read never fires on a server that drips (F31). Redirects are answers like any other.
 */
export async function exchange(
  agent: Agent,
  { expected, ...ask }: Ask,
  deadline: Millis,
  now: () => Instant,
): Promise<Answer> {
  const signal = AbortSignal.timeout(deadline);
  const askedAt = now();
  try {
    const answer = await agent.request({ ...ask, signal });
    const at = now();
    const body = new Body(expected);
    for await (const piece of answer.body) body.add(piece);
    const { statusCode: status, headers } = answer;
    return { kind: "answered", status, headers, body: body.whole(), askedAt, at };
  } catch (error) {
    const reason = signal.aborted ? `no complete answer within ${deadline} ms` : failureText(error);
    return { kind: "silent", reason };
  }
}

const failureText = (error: unknown): string => {
  if (!(error instanceof Error)) return "the request failed";
  const code = "code" in error && typeof error.code === "string" ? error.code : error.name;
  return error.message === "" ? code : `${code}: ${error.message}`;
};
