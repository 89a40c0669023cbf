import { type RequestListener, type Server, createServer } from "node:http";
import { createServer as createTlsServer, Server as TlsServer } from "node:https";
import type { KeyPair } from "../config/pem.ts";

/** What the listener serves TLS with. */
export interface ListenerTls extends KeyPair {
  /** Null: no certificate is asked of a sender. */
  readonly clientCa: string | null;
}

/** Milliseconds. A slow sender gives its connection back (F61). */
const TIMEOUTS = {
  headersTimeout: 5000,
  requestTimeout: 10_000,
  keepAliveTimeout: 10_000,
  connectionsCheckingInterval: 1000,
};
const HANDSHAKE_TIMEOUT = 5000;

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

/** The server of the webhook, with its time-outs. `tls` null: plain HTTP. */
export const webhookServer = (tls: ListenerTls | null, listener: RequestListener): Server =>
  tls === null
    ? createServer(TIMEOUTS, listener)
    : createTlsServer(
        {
          ...TIMEOUTS,
          ...contextOf(tls),
          handshakeTimeout: HANDSHAKE_TIMEOUT,
          requestCert: tls.clientCa !== null,
          rejectUnauthorized: tls.clientCa !== null,
        },
        listener,
      );

/** New connections get this certificate; open ones keep theirs. A text says why it cannot be used: the one before stays. */
export function renewTls(server: Server, tls: ListenerTls): string | null {
  if (!(server instanceof TlsServer)) return "this listener has no TLS";
  try {
    server.setSecureContext(contextOf(tls));
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
