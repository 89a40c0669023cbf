import Fastify, { type FastifyError, type FastifyInstance } from "fastify";
import { chmodSync, rmSync } from "node:fs";

import type { Json } from "../domain/audit.ts";
import { messageOf } from "../platform/text.ts";
import { limitConnections } from "../platform/listener.ts";

/** Longest path that the system can bind (sun_path, without its final zero). */
const LONGEST_PATH = 107;
/** A verb sends one request at a time. The cap protects the daemon's file descriptors. */
const CONNECTIONS = { unproven: 16, proven: 0, onDropped: () => {} };

/**
 * `GET /status` over a Unix socket for the people on site: read-only, no password, open to the daemon's user and group.
 * The mode of its folder restricts it further. The control socket beside it is the owner's alone. A string is the reason
 * why there is no socket. The daemon works without one.
 */
export function statusSocket(
  path: string,
  status: () => Json | Promise<Json>,
  failures: FailureOptions,
): Promise<AsyncDisposable | string> {
  const app = Fastify({ forceCloseConnections: true });
  answerFailures(app, failures);
  app.get("/status", async () => status());
  app.setNotFoundHandler(async (_request, reply) => reply.code(404).send({ error: "only GET /status" }));
  return listenAtPath(path, app, 0o660, () => app.close());
}

/** Answer of a socket to a request that failed. */
export interface FailureOptions {
  /** Reason of an error that may pass, such as a database that is away: the client gets 503. Null: a bug, 500. */
  readonly passing: (error: unknown) => string | null;
  /** Called with each bug, for the log. */
  readonly onError: (error: unknown) => void;
}

/** Answers requests that failed with the reason, or refers to the log. */
export function answerFailures(app: FastifyInstance, { passing, onError }: FailureOptions): void {
  app.setErrorHandler((error: FastifyError, _request, reply) => {
    const { statusCode = 500, message } = error;
    if (statusCode < 500) return reply.code(statusCode).send({ error: message });
    const reason = passing(error);
    if (reason !== null) return reply.code(503).send({ error: reason });
    onError(error);
    return reply.code(500).send({ error: "internal error: the log of the daemon has it" });
  });
}

/** Binds a Unix socket with this mode. Its disposal closes it. A string is the reason why it cannot be bound. */
export async function listenAtPath(
  path: string,
  app: FastifyInstance,
  mode: number,
  close: () => Promise<unknown>,
): Promise<AsyncDisposable | string> {
  if (Buffer.byteLength(path) > LONGEST_PATH) return `${path} is too long for a Unix socket`;
  limitConnections(app.server, CONNECTIONS);
  try {
    // The state lock is ours, so an existing socket belongs to a killed daemon.
    rmSync(path, { force: true });
    await app.listen({ path });
    chmodSync(path, mode);
  } catch (error) {
    return `${path} cannot be listened on: ${messageOf(error)}`;
  }
  return {
    async [Symbol.asyncDispose]() {
      await close();
    },
  };
}
