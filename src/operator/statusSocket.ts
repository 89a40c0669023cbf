import { chmodSync, rmSync } from "node:fs";

import Fastify from "fastify";

import { limitConnections } from "../connectionLimit.ts";
import type { Json } from "../core/audit.ts";

/** Verbs ask one thing each; a file descriptor is kept for those who do more. */
const CONNECTIONS = { unproven: 16, proven: 0, onDropped: () => {} };
/** The longest path that the system can bind (sun_path, without its final zero). */
const LONGEST_PATH = 107;
/** The daemon's user and group. Who may enter the folder is the folder's own mode. */
const MODE = 0o660;

/**
 * `GET /status` over a Unix socket for the people on site: read-only, no password, open to the daemon's group. The
 * control socket beside it stays the owner's alone (DESIGN 6.4).
 */
export class StatusSocket implements AsyncDisposable {
  readonly #close: () => Promise<void>;

  private constructor(close: () => Promise<void>) {
    this.#close = close;
  }

  /** A text says why there is no socket; the daemon works without one. */
  static async start(path: string, status: () => Json): Promise<StatusSocket | string> {
    if (Buffer.byteLength(path) > LONGEST_PATH) return `${path} is too long for a Unix socket`;
    const app = Fastify({ forceCloseConnections: true });
    limitConnections(app.server, CONNECTIONS);
    app.get("/status", async () => status());
    app.setNotFoundHandler(async (_request, reply) => reply.code(404).send({ error: "only GET /status" }));
    try {
      // One daemon holds the state: an existing socket belongs to a killed one.
      rmSync(path, { force: true });
      await app.listen({ path });
      chmodSync(path, MODE);
    } catch (error) {
      return `${path} cannot be listened on: ${error instanceof Error ? error.message : String(error)}`;
    }
    return new StatusSocket(async () => app.close());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close();
  }
}
