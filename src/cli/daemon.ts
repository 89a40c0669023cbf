import { join } from "node:path";
import { createInterface } from "node:readline";

import { Client } from "undici";

/** What a running daemon answered over its socket; "absent": there is none. */
export type Answer =
  | { readonly kind: "absent" }
  | { readonly kind: "answered"; readonly status: number; readonly body: unknown };

/** One request to the daemon that holds this state, over `<state>/control.sock` (DESIGN 6.4). */
export async function askDaemon(
  state: string,
  method: "GET" | "POST",
  path: string,
  body: unknown = null,
  patienceMs = 60_000,
): Promise<Answer> {
  const client = new Client("http://localhost", {
    socketPath: join(state, "control.sock"),
    bodyTimeout: patienceMs,
    headersTimeout: patienceMs,
  });
  try {
    const response = await client.request(
      method === "GET"
        ? { method, path }
        : { method, path, headers: { "content-type": "application/json" }, body: JSON.stringify(body) },
    );
    return { kind: "answered", status: response.statusCode, body: await response.body.json() };
  } catch (error) {
    if (isNobodyThere(error)) return { kind: "absent" };
    throw error;
  } finally {
    await client.destroy();
  }
}

/**
 * A request that is answered line by line, each of them JSON, for as long as it takes. "absent": there is no daemon;
 * "cut": it went away in the middle.
 */
export async function askDaemonAtLength(
  state: string,
  path: string,
  body: unknown,
  onLine: (line: unknown) => void,
): Promise<"absent" | "answered" | "cut"> {
  const client = new Client("http://localhost", {
    socketPath: join(state, "control.sock"),
    bodyTimeout: 0,
    headersTimeout: 60_000,
  });
  let begun = false;
  try {
    const request = { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const response = await client.request({ method: "POST", path, ...request });
    begun = true;
    for await (const line of createInterface({ input: response.body })) onLine(JSON.parse(line));
    return "answered";
  } catch (error) {
    if (isNobodyThere(error)) return "absent";
    if (begun) return "cut";
    throw error;
  } finally {
    await client.destroy();
  }
}

const isNobodyThere = (error: unknown): boolean =>
  error instanceof Error &&
  "code" in error &&
  (error.code === "ENOENT" || error.code === "ECONNREFUSED" || error.code === "EINVAL");
