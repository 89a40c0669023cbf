import { connect, type MqttClient } from "mqtt";

import type { SetPayload } from "../support/aFloor.ts";

/** A command as a charger received it. `at`: ms since 1970. */
export interface Received {
  readonly charger: string;
  readonly at: number;
  readonly set: SetPayload;
  /** By the contract of native chargers: not older than the one before. */
  readonly accepted: boolean;
}

/** A charger without a command for longer than its lease. `from`, `until`: ms since 1970; `overBy`: ms beyond the lease. */
export interface Gap {
  readonly charger: string;
  readonly from: number;
  readonly until: number;
  readonly overBy: number;
}

/** Chargers of a depot. They keep the contract of native chargers, and remember what they received. */
export class Chargers implements AsyncDisposable {
  readonly received: Received[] = [];
  /** Longest time between two commands that a charger accepted, in parts of its lease. 1: it fell back. */
  longestGap = 0;
  readonly gaps: Gap[] = [];
  /** Commands that a charger did not accept, because it had a newer one. */
  refused = 0;
  readonly #last = new Map<string, Received>();
  readonly #client: MqttClient;

  constructor(url: string) {
    this.#client = connect(url, { reconnectPeriod: 50, resubscribe: true });
    this.#client.on("error", () => undefined);
    this.#client.on("connect", () => this.#client.subscribe("setpointd/depot/chargers/+/set", { qos: 1 }));
    this.#client.on("message", (topic, payload) => {
      const [, , , charger = ""] = topic.split("/");
      this.#receive(charger, JSON.parse(payload.toString()));
    });
  }

  #receive(charger: string, set: SetPayload): void {
    const before = this.#last.get(charger);
    const accepted =
      before === undefined ||
      set.epoch > before.set.epoch ||
      (set.epoch === before.set.epoch && set.seq >= before.set.seq);
    const received: Received = { charger, at: Date.now(), set, accepted };
    this.received.push(received);
    if (!accepted) {
      this.refused += 1;
      return;
    }
    if (before !== undefined) {
      const lease = before.set.lease * 1_000;
      const overBy = received.at - before.at - lease;
      this.longestGap = Math.max(this.longestGap, (received.at - before.at) / lease);
      if (overBy > 0) this.gaps.push({ charger, from: before.at, until: received.at, overBy });
    }
    this.#last.set(charger, received);
    const ack = { id: set.id, accepted: true, value: set.value, reason: null };
    this.#client.publish(`setpointd/depot/chargers/${charger}/ack`, JSON.stringify(ack), { qos: 1 });
  }

  last(charger: string): Received | undefined {
    return this.#last.get(charger);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.endAsync(true);
  }
}

/** A leader by the database. `since`: ms since 1970, by the clock of the same machine. */
export interface Led {
  readonly epoch: number;
  readonly since: number;
}

/** A decision in the record, with the number of its command. `at`: ms since 1970. */
export interface Decided {
  readonly charger: string;
  readonly epoch: number;
  readonly seq: number;
  readonly at: number;
}

/** Time from a decision to its message at a charger, ms. A busy machine needs a part of it. */
const ON_ITS_WAY_MS = 1_000;

/** A command that a charger accepted, and the first newer one. `overBy`: ms beyond the time that a message may take. */
export interface Stale {
  readonly received: Received;
  readonly newer: Decided;
  readonly from: number;
  readonly until: number;
  readonly overBy: number;
}

/**
 * Commands that a charger accepted although a newer one for it was decided long before. A new leader sends again what
 * holds with the id that it had, so a low epoch alone is no fault.
 */
export function staleIn(received: readonly Received[], decided: readonly Decided[]): readonly Stale[] {
  const byCharger = Map.groupBy(
    decided.toSorted((a, b) => a.at - b.at),
    ({ charger }) => charger,
  );
  return received.flatMap((one) => {
    const { accepted, charger, set, at: until } = one;
    const newer = (byCharger.get(charger) ?? []).find(
      ({ epoch, seq }) => epoch > set.epoch || (epoch === set.epoch && seq > set.seq),
    );
    if (!accepted || newer === undefined) return [];
    const overBy = until - newer.at - ON_ITS_WAY_MS;
    return overBy > 0 ? [{ received: one, newer, from: newer.at, until, overBy }] : [];
  });
}

/** Decisions of a leader that were made after the next one had the site, and are stored nevertheless. */
export const tooLateIn = (decided: readonly Decided[], leaders: readonly Led[]): readonly Decided[] =>
  decided.filter(({ epoch, at }) => leaders.some((led) => led.epoch > epoch && led.since < at));
