import Fastify from "fastify";

import type { Json } from "../domain/audit.ts";
import { listen } from "./controlSocket.ts";

/**
 * `GET /status` over a Unix socket for the people on site: read-only, no password, open to the daemon's user and group.
 * The mode of its folder restricts it further. The control socket beside it is the owner's alone.
 */
export class StatusSocket implements AsyncDisposable {
  readonly #close: () => Promise<void>;

  private constructor(close: () => Promise<void>) {
    this.#close = close;
  }

  /** A string is the reason why there is no socket. The daemon works without one. */
  static async start(path: string, status: () => Json | Promise<Json>): Promise<StatusSocket | string> {
    const app = Fastify({ forceCloseConnections: true });
    app.get("/status", async () => status());
    app.setNotFoundHandler(async (_request, reply) => reply.code(404).send({ error: "only GET /status" }));
    const failed = await listen(app, path, 0o660);
    return failed ?? new StatusSocket(async () => app.close());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close();
  }
}
