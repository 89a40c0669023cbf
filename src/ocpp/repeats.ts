import type { Logger } from "pino";

import { millis } from "../domain/units.ts";
import type { RelayStore } from "./relayStore.ts";
import type { Dialect } from "./wire/dialect.ts";
import type { Call, Payload, Reply } from "./wire/frame.ts";
import { messageOf } from "../platform/text.ts";

/** The answer of the bridge to a CALL of the charger, for the time when the upstream gives none. */
export interface OwnAnswer {
  readonly reply: Reply;
  /** Transaction id in `reply`. Null: the CALL starts none. */
  readonly transaction: string | null;
}

/** The answer for the charger. `text`: the upstream's, as it came. Null text: `reply` is the bridge's. */
export interface Relayed {
  readonly text: string | null;
  readonly reply: Reply;
}

/**
 * Answers to starts and stops of transactions, for a charger that repeats its message because the answer was lost at a cut.
 * The upstream gets a start once, so one session is one transaction there.
 */
export class Repeats {
  readonly #store: RelayStore;
  readonly #station: string;
  readonly #dialect: Dialect;
  readonly #log: Logger;

  constructor(store: RelayStore, station: string, dialect: Dialect, log: Logger) {
    this.#store = store;
    this.#station = station;
    this.#dialect = dialect;
    this.#log = log;
  }

  /** The answer to an earlier CALL with this content. Null: none. */
  answerTo(call: Call): Reply | null {
    if (!this.#dialect.isOnce(call)) return null;
    const { action, payload } = call;
    const answer = this.#tried(() => this.#store.remembered(this.#station, action, JSON.stringify(payload)));
    return answer === null ? null : { ok: true, payload: JSON.parse(answer) as Payload };
  }

  /** Keeps an answer before the charger gets it. A refusal is not kept: the charger may try again. */
  remember(call: Call, reply: Reply): void {
    if (!reply.ok || !this.#dialect.isOnce(call)) return;
    const { action, payload } = call;
    const [started, ended] = [reply.payload, payload].map((each) => this.#dialect.transactionIn(each));
    this.#tried(() => {
      // A charger without a clock may begin its next session with the same content.
      if (typeof ended === "string") this.#store.forgetStart(this.#station, ended);
      this.#store.remember(this.#station, {
        action,
        payload: JSON.stringify(payload),
        answer: JSON.stringify(reply.payload),
        transaction: started ?? null,
      });
      return null;
    });
  }

  /** A disk that fails costs the protection against repeats, and no answer. */
  #tried(step: () => string | null): string | null {
    try {
      return step();
    } catch (error) {
      const reason = messageOf(error);
      this.#log.error({ station: this.#station, reason }, "answers of the upstream cannot be stored");
      return null;
    }
  }
}

/** Faults of the upstream itself. The same message may be accepted later. */
const PASSING_FAULTS: ReadonlySet<string> = new Set(["InternalError", "GenericError"]);
/** A fault of 20 minutes loses nothing, as the pauses grow. */
const MOST_ATTEMPTS = 10;
const NEXT_ATTEMPT = millis(30_000);

/** Pause after so many refusals of a stored message, ms. Null: the last one is final. */
export const pauseAfter = (code: string, refusals: number): number | null =>
  PASSING_FAULTS.has(code) && refusals < MOST_ATTEMPTS ? refusals * NEXT_ATTEMPT : null;

export const refusal = (description: string): Relayed => ({
  text: null,
  reply: { ok: false, code: "InternalError", description },
});

/** The charger keeps a message that is refused so, and repeats it. */
export const FULL = refusal("too many messages wait for the central system");

/** The reply with the transaction id of an earlier answer. */
export const renamedReply = (dialect: Dialect, reply: Reply, from: string | null, to: string | null): Reply =>
  !reply.ok || from === null || to === null
    ? reply
    : { ok: true, payload: dialect.renameTransaction(reply.payload, new Map([[from, to]])) };
