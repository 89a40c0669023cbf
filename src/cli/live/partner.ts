import { createServer } from "node:net";
import { Agent } from "undici";

import { urlHost } from "../../config/fields/address.ts";
import type { Config } from "../../config/schema.ts";
import type { WebhookConfig } from "../../config/sections/webhook.ts";
import type { Machine } from "../../daemon/edges.ts";
import type { Fetched } from "../../domain/delivery.ts";
import { type Instant, type Millis, seconds } from "../../domain/units.ts";
import { VtnClient } from "../../vtn/client.ts";
import { dialectOf } from "../../vtn/dialects/choose.ts";
import { type Answer, exchange } from "../../vtn/http.ts";
import { TokenSource } from "../../vtn/token.ts";
import type { Trials } from "./trials.ts";

/** Requests a token and the list of events from the partner, and compares its clock with ours. */
export async function tryPartner(config: Config, world: Machine, lines: Trials): Promise<void> {
  const { vtn, clock } = config;
  lines.by(`a token request to ${vtn.tokenUrl}`);
  const dialect = dialectOf(config);
  await using tokens = new TokenSource({ ...vtn, ...world, scope: dialect.scope });
  const token = await tokens.get();
  if (token.kind === "failed") {
    const isRefused = token.status !== null && [400, 401, 403].includes(token.status);
    lines.failed(
      "token",
      token.reason,
      isRefused
        ? "the partner does not know these credentials: check vtn.clientId, vtn.clientSecret and vtn.scope"
        : "an access token from vtn.tokenUrl: check its address and the network",
    );
    for (const item of ["events", "clock"]) lines.untried(item, "needs a token");
    return;
  }
  lines.ok("token", `issued by ${new URL(vtn.tokenUrl).host} to ${vtn.clientId}`);
  lines.by(`a request for the list of events at ${vtn.baseUrl}`);
  await using client = new VtnClient({ ...vtn, ...world, dialect, tokens });
  const fetched = await client.list();
  if (fetched.kind === "failed") {
    lines.failed("events", fetched.reason, "a list of events from vtn.baseUrl with vtn.family");
    lines.untried("clock", "there is no answer to compare with");
    return;
  }
  lines.ok("events", formatEvents(fetched));
  lines.about("clock");
  lines.by("the Date header of that answer");
  printSkew(fetched.skew, clock.maxSkew, lines);
}

function formatEvents(fetched: Exclude<Fetched, { kind: "failed" }>): string {
  const notices = fetched.kind === "read" ? fetched.delivery.notices : [];
  const [first, ...others] = notices.filter((notice) => notice.kind === "rejected");
  const count = `${notices.length} in the partner's list`;
  return first === undefined
    ? count
    : `${count}, of which ${others.length + 1} cannot be read (${first.path}: ${first.reason})`;
}

function printSkew(skew: Millis | null, maxSkew: Millis, lines: Trials): void {
  if (skew === null) return lines.untried("clock", "the partner's answers have no Date to compare with");
  const difference = `${Math.round(Math.abs(skew) / 1000)} s ${skew < 0 ? "behind" : "ahead of"} the partner's`;
  if (Math.abs(skew) <= maxSkew) lines.ok("clock", difference);
  else
    lines.failed(
      "clock",
      difference,
      `at most ${maxSkew / 1000} s (clock.maxSkew): set the time of this machine, for example with NTP`,
    );
}

/** Tries the webhook's address: by an echo where the daemon runs, else by binding it. */
export async function tryWebhook(
  webhook: WebhookConfig | null,
  isRunning: boolean,
  { now, randomBytes }: Machine,
  lines: Trials,
): Promise<void> {
  lines.by("the configuration");
  if (webhook === null) return lines.untried("webhook", "none is configured: events come by polling only");
  const { host, port } = webhook.listen;
  if (port === 0) return lines.untried("webhook", "webhook.listen has port 0, any free one");
  lines.by(isRunning ? "an echo of a random word" : "an attempt to listen there");
  if (!isRunning) return tryAddress(host, port, webhook.path, lines);
  await using listener = ownListener(webhook, now);
  const word = randomBytes(8).toString("hex");
  const answer = await listener.get(`?echo=${word}`);
  const echoed = answer.kind === "answered" && answer.body.toString("utf8") === word;
  if (echoed) lines.ok("webhook", `the running daemon answers an echo at ${listener.url}`);
  else if (answer.kind === "silent" && webhook.clientCa !== null)
    lines.untried("webhook", "the listener needs a client certificate, which this verb does not have");
  else
    lines.failed(
      "webhook",
      `${listener.url} ${answer.kind === "silent" ? `does not answer (${answer.reason})` : `answers ${answer.status}, without the echo`}`,
      "the listener of the running daemon: restart it after a change of webhook.listen, webhook.path or webhook.tls",
    );
}

async function tryAddress(host: string, port: number, path: string, lines: Trials): Promise<void> {
  const server = createServer();
  const { promise, resolve } = Promise.withResolvers<string | null>();
  server.once("error", (error) => resolve(error.message));
  server.listen(port, host, () => resolve(null));
  const fault = await promise;
  if (fault === null) {
    await new Promise((closed) => server.close(closed));
    lines.ok("webhook", `${host}:${port} is free, and setpointd will listen there (path ${path})`);
  } else
    lines.failed(
      "webhook",
      `${host}:${port} cannot be listened on: ${fault}`,
      "an address of this machine that no other program has (webhook.listen)",
    );
}

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
