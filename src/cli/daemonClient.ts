import { lstatSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";

import type { Json } from "../domain/audit.ts";
import type { Answer as ApiAnswer } from "../operator/answer.ts";
import { codeOf, messageOf } from "../platform/text.ts";

/** A request that failed although the socket exists. `reason`: one sentence. */
export interface Failed {
  readonly kind: "failed";
  readonly reason: string;
  /** Status of a refusal. Absent: there was no answer. */
  readonly status?: number;
  /** The daemon runs, and stands by for another one, which the reason names. */
  readonly isStandIn?: true;
}

/** Answer of a running daemon over its socket. "absent": no daemon runs. */
export type Answer =
  | { readonly kind: "absent" }
  | { readonly kind: "answered"; readonly status: number; readonly body: unknown }
  | Failed;

/** Timeout for the beginning of an answer. */
const PATIENCE_MS = 60_000;

/**
 * Sends a request to the daemon that holds this state, over `<state>/control.sock`. A request that it refuses, or cannot
 * answer while its database is away, has failed.
 */
export async function askDaemon(
  state: string,
  method: "GET" | "POST",
  path: string,
  body: unknown = null,
  patienceMs = PATIENCE_MS,
): Promise<Answer> {
  const answer = await askSocket(join(state, "control.sock"), method, path, body, patienceMs);
  if (answer.kind !== "answered") return answer;
  return refusalOf(answer.status, answer.body, path) ?? answer;
}

/** Null: the request was answered. */
function refusalOf(status: number, body: unknown, path: string): Failed | null {
  if (status < 400) return null;
  const { error = path } = body as { readonly error?: string };
  return { kind: "failed", status, reason: `the running daemon refuses (${status}): ${error}` };
}

/** A request of a verb. GET: without a body. */
export type ApiRequest =
  | { readonly method: "GET"; readonly path: string }
  | { readonly method: "POST"; readonly path: string; readonly body: unknown };

/** An action that a verb asks for. `words`: one sentence for the person. */
export interface Done {
  readonly ok: boolean;
  readonly words: string;
}

/** Sends a request whose answer is a value or a problem. A text: the reason why there is none; no daemon runs: `ifAbsent`. */
export async function askApi<Body = ApiAnswer<Json>>(
  state: string,
  request: ApiRequest,
  ifAbsent: string,
): Promise<Body | string> {
  const body = request.method === "POST" ? request.body : null;
  const answer = await askDaemon(state, request.method, request.path, body);
  if (answer.kind === "answered") return answer.body as Body;
  return answer.kind === "failed" ? answer.reason : ifAbsent;
}

/** The name of the person at this terminal, for the record. */
export function personHere(): string {
  try {
    return process.env["SUDO_USER"] ?? userInfo().username;
  } catch {
    return "operator";
  }
}

/** Sends a request over a Unix socket of the daemon. */
export async function askSocket(
  socketPath: string,
  method: "GET" | "POST",
  path: string,
  sent: unknown = null,
  patienceMs = PATIENCE_MS,
): Promise<Answer> {
  if (!isThere(socketPath)) return { kind: "absent" };
  const { Client } = await import("undici");
  const client = new Client("http://localhost", {
    socketPath,
    bodyTimeout: patienceMs,
    headersTimeout: patienceMs,
  });
  try {
    const response = await client.request(
      method === "GET"
        ? { method, path }
        : { method, path, headers: { "content-type": "application/json" }, body: JSON.stringify(sent) },
    );
    const body: unknown = await response.body.json();
    return standInOf(response.statusCode, body) ?? { kind: "answered", status: response.statusCode, body };
  } catch (error) {
    return isAbsent(error) ? { kind: "absent" } : failed(error, socketPath, patienceMs);
  } finally {
    await client.destroy();
  }
}

/**
 * Sends a request whose answer comes line by line, each line JSON, without a timeout. "absent": no daemon runs. "cut":
 * the daemon ended before its answer did.
 */
export async function askDaemonAtLength(
  state: string,
  path: string,
  body: unknown,
  onLine: (line: unknown) => void,
  patienceMs = PATIENCE_MS,
): Promise<"absent" | "answered" | "cut" | Failed> {
  const socketPath = join(state, "control.sock");
  if (!isThere(socketPath)) return "absent";
  const { Client } = await import("undici");
  const client = new Client("http://localhost", {
    socketPath,
    bodyTimeout: 0,
    headersTimeout: patienceMs,
  });
  let begun = false;
  try {
    const request = { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const response = await client.request({ method: "POST", path, ...request });
    begun = true;
    for await (const line of linesOf(response.body)) {
      const parsed: unknown = JSON.parse(line);
      const refused = standInOf(response.statusCode, parsed) ?? refusalOf(response.statusCode, parsed, path);
      if (refused !== null) return refused;
      onLine(parsed);
    }
    return "answered";
  } catch (error) {
    if (isAbsent(error)) return "absent";
    return begun ? "cut" : failed(error, socketPath, patienceMs);
  } finally {
    await client.destroy();
  }
}

/** Lines of a body. Readline would end one at U+2028 as well, which JSON may have in a text. */
async function* linesOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of body) {
    const lines = `${rest}${decoder.decode(chunk, { stream: true })}`.split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  if (rest !== "") yield rest;
}

/** A stand-in refuses every request of a verb. Null: the daemon leads, or needs no lead. */
function standInOf(status: number, body: unknown): Failed | null {
  if (status !== STAND_IN_STATUS || typeof body !== "object" || body === null || !("standIn" in body))
    return null;
  return { kind: "failed", reason: "error" in body ? String(body.error) : "", isStandIn: true };
}

const STAND_IN_STATUS = 503;

function failed(error: unknown, socketPath: string, patienceMs: number): Failed {
  const code = codeOf(error);
  const isSilent = code === "UND_ERR_HEADERS_TIMEOUT" || code === "UND_ERR_BODY_TIMEOUT";
  const why = isSilent ? `no answer within ${patienceMs / 1000} s` : messageOf(error);
  const reason =
    code === "EACCES"
      ? `this user may not use ${socketPath}. Root may, and a member of the daemon's group may ask for the status`
      : why;
  return { kind: "failed", reason: `the running daemon cannot be asked: ${reason}` };
}

/** Without a socket no daemon runs, and the HTTP client is not imported. */
function isThere(socketPath: string): boolean {
  try {
    lstatSync(socketPath);
    return true;
  } catch (error) {
    return !isAbsent(error);
  }
}

const isAbsent = (error: unknown): boolean =>
  error instanceof Error &&
  "code" in error &&
  (error.code === "ENOENT" || error.code === "ECONNREFUSED" || error.code === "EINVAL");
