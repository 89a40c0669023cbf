import { chmodSync, rmSync } from "node:fs";
import { PassThrough } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import Fastify from "fastify";

import type { Json } from "../domain/audit.ts";
import { limitConnections } from "../platform/connectionLimit.ts";
import { type AuditParameters, auditParameters } from "./http/server.ts";

/** What the verbs of the command line ask of a running daemon (DESIGN 6.4). */
export interface ControlApi {
  readonly audit: (query: AuditParameters) => Json;
  readonly verify: () => Promise<Json>;
  /** Number and hash of those of these rows that are kept. */
  readonly hashes: (seqs: readonly number[]) => Json;
  /** The proof of an event as a text, or why there is none. */
  readonly proof: (event: string, format: "json" | "csv") => Promise<Json>;
  readonly prices: () => Json;
  readonly reports: () => Json;
  /** Null: there is none of this name. */
  readonly report: (name: string) => Json;
  /** Answers that it is on its way, or why it is not. */
  readonly resend: (name: string) => { readonly ok: boolean; readonly words: string };
  /** Asks the partner for the list now; answers with what came of it. */
  readonly poll: () => Promise<{ readonly ok: boolean; readonly words: string }>;
  /** The stored files can be copied between the two. False: another copy is being made, or this one came to nothing. */
  readonly keepStill: () => boolean;
  readonly copied: () => boolean;
  /** What each broker lets the daemon do, tried without commanding anyone. */
  readonly tryBrokers: () => Promise<Json>;
  /** When each charger was last heard (ISO, or null), and whether it is silent. */
  readonly heard: () => Json;
  /** The chargers that stand limited, with what they were told. */
  readonly limited: () => Json;
  /**
   * Tries a charger while the daemon runs; says how far it has come, and answers how it ended. `gone`: nobody waits for
   * it any more, and the charger is left as it was.
   */
  readonly commission: (
    request: CommissionRequest,
    progress: (words: string) => void,
    gone: AbortSignal,
  ) => Promise<Json>;
  /** Whoever tries this charger has had enough: it is left as it was. */
  readonly stopCommission: (charger: string) => void;
  /** Null: all. Answers what was done, or that there is no such charger. */
  readonly release: (charger: string | null) => Promise<{ readonly ok: boolean; readonly words: string }>;
}

export interface CommissionRequest {
  readonly charger: string;
  /** Try too what it does when it hears no more of us. */
  readonly silence: boolean;
  /** Although an event holds on it, or nothing is to be commanded. */
  readonly force: boolean;
}

/** How long those who listen to a long answer may take for the end of it. */
const LAST_WORDS_MS = 500;
/** Verbs ask one thing each; a file descriptor is kept for those who do more. */
const CONNECTIONS = { unproven: 16, proven: 0, onDropped: () => {} };
/** The longest path that the system can bind (sun_path, without its final zero). */
const LONGEST_PATH = 107;

const line = (said: Json): string => `${JSON.stringify(said)}\n`;

/** `<state>/control.sock`, mode 0600: who may write to the state directory may command the daemon. */
export class ControlSocket implements AsyncDisposable {
  readonly #close: () => Promise<void>;

  private constructor(close: () => Promise<void>) {
    this.#close = close;
  }

  /** A text says why there is no socket; the daemon works without one. */
  static async start(path: string, door: ControlApi): Promise<ControlSocket | string> {
    if (Buffer.byteLength(path) > LONGEST_PATH) return `${path} is too long for a Unix socket`;
    const app = Fastify({ forceCloseConnections: true });
    limitConnections(app.server, CONNECTIONS);
    const answers = new Set<Promise<void>>();
    app.get<{ Querystring: Record<string, unknown> }>("/audit", async ({ query }, reply) => {
      const parameters = auditParameters(query);
      if (typeof parameters === "string") return reply.code(400).send({ error: parameters });
      return reply.send(door.audit(parameters));
    });
    app.get("/audit/verify", async () => door.verify());
    app.post<{ Body: { readonly seqs?: unknown } | null }>("/audit/hashes", async ({ body }, reply) => {
      const seqs: unknown = body?.seqs;
      if (!Array.isArray(seqs) || !seqs.every((seq): seq is number => Number.isSafeInteger(seq)))
        return reply.code(400).send({ error: "seqs: numbers of rows" });
      return reply.send(door.hashes(seqs));
    });
    app.get<{ Querystring: { readonly event?: unknown; readonly format?: unknown } }>(
      "/proof",
      async ({ query: { event, format } }, reply) => {
        if (typeof event !== "string" || (format !== "json" && format !== "csv"))
          return reply.code(400).send({ error: "event: an id; format: json or csv" });
        return reply.send(await door.proof(event, format));
      },
    );
    app.get("/prices", async () => door.prices());
    app.get("/reports", async () => door.reports());
    // A name has slashes, and whatever else an event ID may hold.
    app.get<{ Querystring: { readonly name?: unknown } }>("/report", async ({ query }, reply) => {
      const { name } = query;
      if (typeof name !== "string") return reply.code(400).send({ error: "name: of one report" });
      // Not null itself, which would be an empty answer.
      return reply.send({ found: door.report(name) });
    });
    app.post<{ Body: { readonly name?: unknown } | null }>("/report/resend", async ({ body }, reply) => {
      const name = body?.name;
      if (typeof name !== "string") return reply.code(400).send({ error: "name: of one report" });
      return door.resend(name);
    });
    app.post("/poll", async () => door.poll());
    app.post("/backup/begin", async () => ({ ok: door.keepStill() }));
    app.post("/backup/end", async () => ({ ok: door.copied() }));
    app.get("/limited", async () => door.limited());
    app.post("/try/brokers", async () => door.tryBrokers());
    app.get("/heard", async () => door.heard());
    app.post<{ Body: { readonly charger?: unknown } | null }>("/release", async ({ body }, reply) => {
      const charger = body?.charger;
      if (charger !== null && typeof charger !== "string")
        return reply.code(400).send({ error: "charger: an id, or null for all" });
      return door.release(charger);
    });
    // One line of JSON for each step, and one for the end; who hangs up has the charger left as it was.
    app.post<{ Body: Partial<Record<keyof CommissionRequest, unknown>> | null }>(
      "/commission",
      async ({ body }, reply) => {
        const { charger, silence = false, force = false } = body ?? {};
        if (typeof charger !== "string" || typeof silence !== "boolean" || typeof force !== "boolean")
          return reply.code(400).send({ error: "charger: an id; silence, force: true or false" });
        const lines = new PassThrough();
        const { promise: heard, resolve } = Promise.withResolvers<void>();
        const gone = new AbortController();
        answers.add(heard);
        reply.raw.once("close", () => {
          gone.abort();
          answers.delete(heard);
          resolve();
        });
        const progress = (words: string): boolean => lines.write(line({ progress: words }));
        void door
          .commission({ charger, silence, force }, progress, gone.signal)
          // A bug in a trial is no reason to stop driving all others.
          .catch((error: unknown) => ({ good: false, words: null, complaint: `a bug: ${String(error)}` }))
          .then((done) => lines.end(line({ done })));
        return reply.type("application/x-ndjson").send(lines);
      },
    );
    app.post<{ Body: { readonly charger?: unknown } | null }>("/commission/stop", async ({ body }, reply) => {
      const charger = body?.charger;
      if (typeof charger !== "string") return reply.code(400).send({ error: "charger: an id" });
      door.stopCommission(charger);
      return { ok: true };
    });
    const umask = process.umask(0o177);
    try {
      // One daemon holds the state, so a socket that is there is what a killed one left.
      rmSync(path, { force: true });
      await app.listen({ path });
      chmodSync(path, 0o600);
    } catch (error) {
      return `${path} cannot be listened on: ${error instanceof Error ? error.message : String(error)}`;
    } finally {
      process.umask(umask);
    }
    return new ControlSocket(async () => {
      await Promise.race([Promise.all(answers), sleep(LAST_WORDS_MS, undefined, { ref: false })]);
      await app.close();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close();
  }
}

/** Verbs ask one thing each; a file descriptor is kept for those who do more. */
const STATUS_CONNECTIONS = { unproven: 16, proven: 0, onDropped: () => {} };
/** The longest path that the system can bind (sun_path, without its final zero). */
const LONGEST_STATUS_PATH = 107;
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
    if (Buffer.byteLength(path) > LONGEST_STATUS_PATH) return `${path} is too long for a Unix socket`;
    const app = Fastify({ forceCloseConnections: true });
    limitConnections(app.server, STATUS_CONNECTIONS);
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
