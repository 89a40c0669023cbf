import type { Instant } from "../../src/domain/units.ts";
import { HOUR, MINUTE } from "./plan.ts";
import type { WireAnswer } from "./virtualWire.ts";

/** How the identity server fails. `short`: its tokens live for a minute and do not say so. */
export type Misidentity = "silent" | "error" | "refuses" | "short";

const HEADERS = { "content-type": "application/json" };
const NO_ANSWER = new Promise<never>(() => {});

/** The identity server (partner-interface 5): hands out tokens, and knows which are still good. */
export class SimIdentity {
  /** Undefined: well. */
  answers: Misidentity | undefined;
  /** When a token was asked for, monotonic ms. */
  readonly askedAt: number[] = [];
  readonly #truth: () => Instant;
  readonly #monotonic: () => number;
  readonly #goodUntil = new Map<string, number>();

  constructor(truth: () => Instant, monotonic: () => number) {
    this.#truth = truth;
    this.#monotonic = monotonic;
  }

  answer(): Promise<WireAnswer> {
    this.askedAt.push(this.#monotonic());
    const how = this.answers;
    switch (how) {
      case "silent":
        return NO_ANSWER;
      case "error":
        return Promise.resolve({ status: 500, headers: HEADERS, body: "{}" });
      case "refuses":
        return Promise.resolve({ status: 400, headers: HEADERS, body: '{"error":"invalid_client"}' });
      case "short":
      case undefined: {
        const token = `token-${this.askedAt.length}`;
        this.#goodUntil.set(token, this.#truth() + (how === "short" ? MINUTE : HOUR));
        return Promise.resolve({
          status: 200,
          headers: HEADERS,
          body: JSON.stringify({ access_token: token }),
        });
      }
    }
  }

  /** Whether a request with this header may pass. */
  accepts(authorization: string | undefined): boolean {
    const until = this.#goodUntil.get(authorization?.replace(/^Bearer /, "") ?? "");
    return until !== undefined && this.#truth() < until;
  }
}
