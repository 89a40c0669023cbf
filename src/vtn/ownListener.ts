import { Agent } from "undici";
import { urlHost } from "../config/fields/address.ts";
import type { WebhookConfig } from "../config/sections/webhook.ts";
import { type Instant, type Millis, seconds } from "../domain/units.ts";
import { type Answer, exchange } from "./http.ts";

/** Sends requests to the webhook listener of this machine, as the partner would. */
export interface OwnListener extends AsyncDisposable {
  readonly url: string;
  readonly get: (query: string) => Promise<Answer>;
  readonly post: (headers: Readonly<Record<string, string>>, body: Buffer) => Promise<Answer>;
}

const DEADLINE: Millis = seconds(10);
const MAX_BYTES = 64 * 1024;

/** `now` gives the time stamps of the answers. */
export function ownListener(webhook: WebhookConfig, now: () => Instant): OwnListener {
  const { listen, path, tls } = webhook;
  const origin = `${tls === null ? "http" : "https"}://${urlHost(listen.host)}:${listen.port}`;
  const agent = new Agent({
    maxResponseSize: MAX_BYTES,
    connect: { timeout: DEADLINE, ...(tls === null ? {} : trustOf(tls.current().cert)) },
    allowH2: false,
  });
  const ask = (
    method: "GET" | "POST",
    query: string,
    headers: Readonly<Record<string, string>>,
    body: Buffer | null,
  ) => exchange(agent, { origin, path: path + query, method, headers, body, expected: null }, DEADLINE, now);
  return {
    url: `${origin}${path}`,
    get: (query) => ask("GET", query, {}, null),
    post: (headers, body) => ask("POST", "", { "content-type": "application/json", ...headers }, body),
    [Symbol.asyncDispose]: () => agent.destroy(),
  };
}

/**
 * The certificate names the public address, which leads here only from outside. So this one certificate is
 * trusted under any name.
 */
const trustOf = (cert: string) => ({
  ca: cert,
  allowPartialTrustChain: true,
  checkServerIdentity: () => undefined,
  rejectUnauthorized: true,
});
