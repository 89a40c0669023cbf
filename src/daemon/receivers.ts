import type { Agent } from "undici";

import type { NoticeAnswer, Receiver } from "../alarms/notifier.ts";
import { alertmanagerForm, webhookForm } from "../alarms/notices.ts";
import type { ReceiverConfig } from "../config/sections/alarms.ts";
import { type Instant, seconds, hours } from "../domain/units.ts";
import { sanitizeForLog } from "../platform/text.ts";
import { agentFor, type Answered, exchange, retryAfterOf } from "../vtn/http.ts";
import { sign } from "../vtn/signature.ts";

/** Receivers of alarms over HTTP. */
export interface AlarmReceivers extends AsyncDisposable {
  readonly all: readonly Receiver[];
}

const DEADLINE = seconds(10);
const MAX_ANSWER = 64 * 1024;
/** Characters of an answer that are logged. */
const LONGEST_REASON = 200;
/** The receiver rejects this body. It would reject it again. */
const REFUSALS: readonly number[] = [400, 413, 422];

/** Receivers as the configuration names them. */
export function receiversOverHttp(
  site: string,
  receivers: readonly ReceiverConfig[],
  now: () => Instant,
): AlarmReceivers {
  // A fleet has a site for each of thousands of depots, mostly without a receiver.
  if (receivers.length === 0) return { all: [], [Symbol.asyncDispose]: async () => {} };
  const agent = agentFor(MAX_ANSWER, DEADLINE);
  return {
    all: receivers.map((receiver) => ({
      name: receiver.name,
      form:
        receiver.kind === "alertmanager"
          ? alertmanagerForm(site)
          : webhookForm(site, receiver.repeat ?? hours(4)),
      post: (body) => post(agent, receiver, body, now),
    })),
    [Symbol.asyncDispose]: () => agent.destroy(),
  };
}

async function post(
  agent: Agent,
  { kind, url: address, headers, secret }: ReceiverConfig,
  text: string,
  now: () => Instant,
): Promise<NoticeAnswer> {
  const url = URL.parse(address());
  if (url === null) return failed("its address cannot be read");
  const body = Buffer.from(text);
  const path = kind === "alertmanager" ? `${url.pathname.replace(/\/+$/, "")}/api/v2/alerts` : url.pathname;
  const answer = await exchange(
    agent,
    {
      origin: url.origin,
      path: `${path}${url.search}`,
      method: "POST",
      headers: {
        ...headers(),
        "content-type": "application/json",
        ...(secret === null ? {} : signature(() => [secret()], body, now())),
      },
      body,
      expected: null,
    },
    DEADLINE,
    now,
  );
  if (answer.kind === "silent") return failed(answer.reason);
  const { status } = answer;
  if (status >= 200 && status < 300) return { ok: true };
  return {
    ok: false,
    reason: reasonOf(answer),
    isRefused: REFUSALS.includes(status),
    retryAfter: retryAfterOf(answer.headers, answer.at),
  };
}

/** Signature in the partner's scheme. */
const signature = (secrets: () => readonly string[], body: Buffer, at: Instant) =>
  sign(
    {
      kind: "hmac",
      header: "x-payload-signature",
      algorithm: "sha256",
      encoding: "base64",
      timestamp: null,
      secrets,
    },
    body,
    "",
    at,
  );

const failed = (reason: string): NoticeAnswer => ({ ok: false, reason, isRefused: false, retryAfter: null });

function reasonOf({ status, body }: Answered): string {
  const [line = ""] = body.toString("utf8").split("\n", 1);
  const shown = sanitizeForLog(line.slice(0, LONGEST_REASON)).trim();
  return shown === "" ? `HTTP ${status}` : `HTTP ${status}: ${shown}`;
}
