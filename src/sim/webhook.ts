import { createHmac } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { request } from "undici";
import type { Millis } from "../core/units.ts";

/** Where a partner delivers to, and the secret given at registration. */
export interface WebhookTarget {
  readonly url: string;
  readonly secret: string;
}

/** What became of one delivery. */
export interface Delivered {
  /** HTTP status of the last attempt; null: no answer, or stopped. */
  readonly status: number | null;
  readonly attempts: number;
  /** Body of the last answer. */
  readonly answer: string;
}

/** `X-Payload-Signature`: base64 of HMAC-SHA256 over the raw body (openadr3.md 0). */
export const signature = (body: string, secret: string): string =>
  createHmac("sha256", secret).update(body).digest("base64");

const RETRIES = 3;
const DEADLINE_MS = 10_000;

async function post(target: WebhookTarget, body: string, stop: AbortSignal) {
  try {
    const response = await request(target.url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-payload-signature": signature(body, target.secret),
      },
      body,
      signal: AbortSignal.any([stop, AbortSignal.timeout(DEADLINE_MS)]),
    });
    return { status: response.statusCode, answer: await response.body.text() };
  } catch {
    return { status: null, answer: "" };
  }
}

const succeeded = (status: number | null): boolean => status !== null && status >= 200 && status < 300;

/** Sends a signed body; anything but 2xx is tried again up to 3 times with doubling pauses, then dropped. */
export async function sendSigned(
  target: WebhookTarget,
  body: string,
  firstPause: Millis,
  stop: AbortSignal,
): Promise<Delivered> {
  for (let attempts = 1; ; attempts += 1) {
    const answer = await post(target, body, stop);
    if (succeeded(answer.status) || attempts > RETRIES || stop.aborted) return { ...answer, attempts };
    await sleep(firstPause * 2 ** (attempts - 1), undefined, { signal: stop }).catch(() => undefined);
  }
}
