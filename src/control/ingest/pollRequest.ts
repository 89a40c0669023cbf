import type { Delivery, IngestResult, IngestAnswer, Fetched } from "../../domain/delivery.ts";
import type { Millis } from "../../domain/units.ts";

/** A request for the list at once, also while the partner is failing. */
export interface PollRequest {
  /** Called with the answer to the first list request that starts after this one. */
  readonly onList: (fetched: Fetched) => void;
}

/** The result of one requested poll. */
export type PollResult =
  | { readonly kind: "read"; readonly ingested: IngestResult }
  | { readonly kind: "unchanged" }
  | { readonly kind: "notStored"; readonly reason: string }
  /** `asked` false: no request was made. `retryAfter`: the wait before the next request. */
  | {
      readonly kind: "failed";
      readonly asked: boolean;
      readonly reason: string;
      readonly retryAfter: Millis | null;
    };

/** Requested polls, until their result is committed. */
export class RequestedPolls {
  readonly #send: (request: PollRequest) => void;
  readonly #waiting = new WeakMap<Delivery, ((answer: IngestAnswer) => void)[]>();

  /** `send`: passes a request to the polling of the list. */
  constructor(send: (request: PollRequest) => void) {
    this.#send = send;
  }

  request(): Promise<PollResult> {
    const { promise, resolve } = Promise.withResolvers<PollResult>();
    const onList = (fetched: Fetched): void => {
      if (fetched.kind !== "read") return resolve(fetched);
      const { delivery } = fetched;
      const waiting = this.#waiting.get(delivery) ?? [];
      this.#waiting.set(delivery, [
        ...waiting,
        (answer) =>
          resolve(
            answer.ok
              ? { kind: "read", ingested: answer.ingested }
              : { kind: "notStored", reason: answer.reason },
          ),
      ]);
    };
    this.#send({ onList });
    return promise;
  }

  /** Call it with every delivery, once it is committed or could not be stored. */
  settled(delivery: Delivery, answer: IngestAnswer): void {
    for (const settle of this.#waiting.get(delivery) ?? []) settle(answer);
  }
}

/** Result text for the operator. */
export function pollMessage(result: PollResult): string {
  switch (result.kind) {
    case "read": {
      const { accepted, repeats, rejected } = result.ingested;
      return `the list was read: ${accepted} accepted, ${repeats} repeats, ${rejected} rejected`;
    }
    case "unchanged":
      return "the list was read: it is the same as last time";
    case "notStored":
      return `the list was read, but could not be stored: ${result.reason}`;
    case "failed": {
      const { asked, reason, retryAfter } = result;
      const wait = retryAfter === null ? "" : `; it can be asked for in ${Math.ceil(retryAfter / 1000)} s`;
      return `the list ${asked ? "could not be read" : "was not asked for"}: ${reason}${wait}`;
    }
  }
}
