import { join } from "node:path";

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

const isNobodyThere = (error: unknown): boolean =>
  error instanceof Error &&
  "code" in error &&
  (error.code === "ENOENT" || error.code === "ECONNREFUSED" || error.code === "EINVAL");
