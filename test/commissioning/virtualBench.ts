import type { Bench, ChargerAnswer } from "../../src/commissioning/trial.ts";
import type { Sent } from "../../src/domain/command.ts";
import type { Telemetry } from "../../src/domain/telemetry.ts";
import { millis, type Millis, seconds } from "../../src/domain/units.ts";
import { Pair, type Pairing } from "../sim/pairing.ts";

const LOOK = seconds(1);

export interface VirtualBench extends Bench {
  readonly pair: Pair;
  /** Orders, oldest first. */
  readonly ordered: string[];
  /** Ctrl-C. */
  stop(): void;
  /** Control takes the charger for this. */
  take(why: string): void;
  /** Nothing that it says reaches us. */
  isMute: boolean;
  /** What the broker says to the next orders. */
  broker: Sent[];
}

/** A simulated charger on the bench, in virtual time. */
export function virtualBench(pairing: Pairing): VirtualBench {
  const pair = new Pair(pairing);
  pair.pass(seconds(3));
  let [stopped, orderedAt, signal] = [false, pair.now, 0];
  let wanted: string | null = null;
  const { confirmedBy } = pair.instance.profile;
  const taken = (): ChargerAnswer | null => {
    if (bench.isMute) return null;
    const [reason] = pair.refusals;
    if (reason !== undefined) return { accepted: false, reason, at: pair.now };
    const seen = confirmedBy === undefined ? undefined : pair.signals[confirmedBy.signal];
    return seen === signal ? { accepted: true, reason: null, at: orderedAt } : null;
  };
  const bench: VirtualBench = {
    pair,
    ordered: [],
    broker: [],
    isMute: false,
    stop: () => void (stopped = true),
    take: (why) => void (wanted = why),
    now: () => pair.now,
    send: async (desired) => {
      const sent = bench.broker.shift() ?? { ok: true };
      if (!sent.ok) return sent;
      bench.ordered.push(desired.kind === "current" ? String(desired.amperes) : desired.kind);
      pair.refusals.length = 0;
      pair.order(desired);
      signal = desired.kind === "current" ? desired.amperes : 0;
      orderedAt = pair.now;
      return sent;
    },
    answer: taken,
    telemetry: (): Telemetry | null => (bench.isMute ? null : pair.telemetry),
    hasReported: () => !bench.isMute,
    fallSilent: () => void (pair.sendsKeepalives = false),
    until: async (condition, patience: Millis) => {
      const deadline = pair.now + patience;
      while (!condition()) {
        if (bench.isStopped() || pair.now >= deadline) return false;
        pair.pass(millis(Math.min(LOOK, deadline - pair.now)));
      }
      return true;
    },
    wait: async (span) => pair.pass(span),
    isStopped: () => stopped || wanted !== null,
    preemptedBy: () => wanted,
  };
  return bench;
}
