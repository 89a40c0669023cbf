import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";

import type { KeyPair } from "../config/fields/pem.ts";
import { arrivedIsRead } from "../platform/cooperative.ts";
import { createHttpServer, createHttpsServer, renewCertificate } from "../platform/listener.ts";

/** Key, certificate and client CA of the listener. */
export interface ListenerTls extends KeyPair {
  /** Null: senders need no certificate. */
  readonly clientCa: string | null;
}

/** Milliseconds. A slow sender is disconnected. */
const TIMEOUTS = {
  headersTimeout: 5000,
  // `endSlowBody` instead: this one ends also a body that lies unread in the socket.
  requestTimeout: 0,
  keepAliveTimeout: 10_000,
  connectionsCheckingInterval: 1000,
};
const HANDSHAKE_TIMEOUT = 5000;
const BODY_TIMEOUT = 10_000;

/** Authenticated encryption only. */
const AEAD_SUITES = [
  "TLS_AES_256_GCM_SHA384",
  "TLS_CHACHA20_POLY1305_SHA256",
  "TLS_AES_128_GCM_SHA256",
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
  "ECDHE-ECDSA-CHACHA20-POLY1305",
  "ECDHE-RSA-CHACHA20-POLY1305",
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
].join(":");

const contextOf = ({ cert, key, clientCa }: ListenerTls) => ({
  cert,
  key,
  ...(clientCa === null ? {} : { ca: clientCa }),
  ciphers: AEAD_SUITES,
  minVersion: "TLSv1.2" as const,
});

/** The HTTP server of the webhook, with its time-outs. `tls` null: plain HTTP. */
export function webhookServer(
  tls: ListenerTls | null,
  listener: RequestListener,
  bodyTimeout = BODY_TIMEOUT,
): Server {
  const server =
    tls === null
      ? createHttpServer(TIMEOUTS, listener)
      : createHttpsServer(
          {
            ...TIMEOUTS,
            ...contextOf(tls),
            handshakeTimeout: HANDSHAKE_TIMEOUT,
            requestCert: tls.clientCa !== null,
            rejectUnauthorized: tls.clientCa !== null,
          },
          listener,
        );
  return server.on("request", (request, response) => endSlowBody(request, response, bodyTimeout));
}

/** Ends a request whose body is late. After a standstill of this process, what had arrived is read first. */
function endSlowBody(request: IncomingMessage, response: ServerResponse, within: number): void {
  if (request.complete) return;
  const { socket } = request;
  const end = (): void => {
    if (request.complete || socket.destroyed) return;
    if (!response.headersSent) socket.write("HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n");
    socket.destroySoon();
  };
  const deadline = setTimeout(() => void arrivedIsRead().then(end), within);
  request.once("close", () => clearTimeout(deadline));
}

/** See `renewCertificate`. */
export const renewTls = (server: Server, tls: ListenerTls): string | null =>
  renewCertificate(server, contextOf(tls));

export type BodyRead =
  | { readonly kind: "whole"; readonly bytes: Buffer }
  | { readonly kind: "tooLarge" }
  /** The bodies in flight fill the budget, and none of them can be dropped. */
  | { readonly kind: "noRoom" }
  /** The sender disconnected, or its body was dropped to make room. */
  | { readonly kind: "aborted" };

interface HeldBody {
  readonly address: string;
  readonly request: IncomingMessage;
  /** Grows by doubling. A buffer per chunk would cost many times its bytes when chunks are small. */
  buffer: Buffer<ArrayBuffer>;
  isComplete: boolean;
}

const FIRST_BYTES = 4096;
const NOTHING = Buffer.alloc(0);

/**
 * Limits the bytes of all request bodies together, from their first byte to the answer. Without it,
 * unauthenticated senders could fill the memory. When it is spent, the oldest incomplete body of the address
 * with most bytes is dropped with its connection. So a slow sender cannot block the partner.
 */
export class RequestBodies {
  readonly #budget: number;
  readonly #onDropped: (address: string) => void;
  /** Oldest first. */
  readonly #held = new Set<HeldBody>();
  #bytes = 0;

  constructor(budget: number, onDropped: (address: string) => void) {
    this.#budget = budget;
    this.#onDropped = onDropped;
  }

  /** Bytes held now. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Reads a body of at most `most` bytes. It counts against the budget, and stays readable, until `response`
   * has closed.
   */
  async read(request: IncomingMessage, response: ServerResponse, most: number): Promise<BodyRead> {
    const announced = announcedLength(request);
    if (announced !== null && announced > most) return { kind: "tooLarge" };
    if (request.destroyed || response.destroyed) return { kind: "aborted" };
    const limit = announced ?? most;
    const address = request.socket.remoteAddress ?? "";
    const body: HeldBody = { address, request, buffer: NOTHING, isComplete: false };
    this.#held.add(body);
    response.once("close", () => this.#release(body));
    const { promise, resolve } = Promise.withResolvers<BodyRead>();
    let length = 0;
    const settle = (read: BodyRead): void => {
      request.off("data", onData);
      resolve(read);
      if (read.kind !== "whole" && !body.isComplete) this.#release(body);
    };
    const onData = (piece: Buffer): void => {
      const end = length + piece.length;
      if (end > limit) return settle({ kind: "tooLarge" });
      if (end > body.buffer.length) {
        const refusal = this.#grow(body, Math.min(Math.max(FIRST_BYTES, 2 * length, end), limit));
        if (refusal !== null) return settle({ kind: refusal });
      }
      piece.copy(body.buffer, length);
      length = end;
    };
    request.on("data", onData);
    request.once("end", () => {
      body.isComplete = true;
      settle({ kind: "whole", bytes: body.buffer.subarray(0, length) });
    });
    request.once("close", () => settle({ kind: "aborted" }));
    request.once("error", () => settle({ kind: "aborted" }));
    return promise;
  }

  #grow(body: HeldBody, capacity: number): "noRoom" | "aborted" | null {
    const more = capacity - body.buffer.length;
    while (this.#bytes + more > this.#budget) {
      const leaving = this.#oldestOfTheLargest();
      if (leaving === undefined) return "noRoom";
      this.#release(leaving);
      leaving.request.socket.destroy();
      this.#onDropped(leaving.address);
      if (leaving === body) return "aborted";
    }
    const grown = Buffer.allocUnsafeSlow(capacity);
    body.buffer.copy(grown);
    free(body.buffer);
    body.buffer = grown;
    this.#bytes += more;
    return null;
  }

  #release(body: HeldBody): void {
    if (!this.#held.delete(body)) return;
    this.#bytes -= body.buffer.length;
    free(body.buffer);
    body.buffer = NOTHING;
  }

  /** Undefined: all bodies are complete and wait for their answers. */
  #oldestOfTheLargest(): HeldBody | undefined {
    const incomplete = [...this.#held].filter(({ isComplete }) => !isComplete);
    const byAddress = [...Map.groupBy(incomplete, ({ address }) => address).values()];
    return byAddress.toSorted((a, b) => bytesOf(b) - bytesOf(a))[0]?.[0];
  }
}

/** Frees the memory now. Left to the garbage collector, a flood would hold many times its budget. */
function free({ buffer }: Buffer<ArrayBuffer>): void {
  if (buffer.byteLength > 0) buffer.transfer(0);
}

const bytesOf = (bodies: readonly HeldBody[]): number =>
  bodies.reduce((sum, { buffer }) => sum + buffer.length, 0);

/** Null: chunked, or no body. */
function announcedLength({ headers }: IncomingMessage): number | null {
  const length = headers["content-length"];
  return length === undefined ? null : Number(length);
}

/** Bytes that a rejected sender may still write: many write on before they read the answer. */
const MOST_IN_VAIN = 8 * 1024 * 1024;

/** Reads and drops the rest of a body. A sender that never ends is disconnected. */
export function dropRest(request: IncomingMessage): void {
  if (request.complete) return;
  let passed = 0;
  request.on("data", (piece: Buffer) => {
    passed += piece.length;
    if (passed > MOST_IN_VAIN) request.destroy();
  });
}
