import type { StartMark } from "../../domain/telemetry.ts";
import { after, type ChargerId, earlier, type Instant, minutes, seconds } from "../../domain/units.ts";

/*
 * The life of a reboot that a person asked for:
 *
 *   asked --the broker has it--> sent --the charger answers--> accepted
 *     |                            |  \                          |   |
 *     v                            v   +----- offline -----------+   +---> refused (also from sent)
 *   failed: no broker has it      ...          |
 *                                              v
 *                                            away ------ online, or a start that it reports ------> back
 *
 *   After BACK_WITHIN: away -> missing, which a later return still ends as back.
 *   Otherwise -> unnoticed: it was never away. The reboot was too quick to be noticed, or there was none.
 */

export type RebootProgress =
  | "asked"
  | "sent"
  | "accepted"
  | "away"
  | "back"
  | "refused"
  | "failed"
  | "missing"
  | "unnoticed";

export interface Reboot {
  /** Id that no command has: the charger may answer with it. */
  readonly id: string;
  readonly charger: ChargerId;
  readonly by: string;
  readonly reason: string;
  readonly at: Instant;
  readonly progress: RebootProgress;
  /** Time of the last change of `progress`. */
  readonly changedAt: Instant;
  /** Text of the charger, or of the broker. Null: none. */
  readonly because: string | null;
}

/**
 * Restarts of a charger since the start of setpointd. `starts`: the charger reports its starts itself, and these are
 * counted. `returns`: it does not, so each return to online is counted; a lost connection counts as well.
 */
export interface Restarts {
  readonly counted: "starts" | "returns";
  readonly count: number;
  /** Null: none. */
  readonly lastAt: Instant | null;
}

/** Time for a reboot. Chargers with a modem, and large ones, take some minutes. */
export const BACK_WITHIN = minutes(5);

/** A time of the last start that moves by less is an inexact clock, and no start. */
const INEXACT = seconds(3);

const NONE: Restarts = { counted: "returns", count: 0, lastAt: null };

/** Reboots that people asked for, the last one of each charger, and what is counted of all restarts. */
export class Reboots {
  readonly #last = new Map<ChargerId, Reboot>();
  readonly #open = new Map<ChargerId, Reboot>();
  readonly #restarts = new Map<ChargerId, Restarts>();

  /** Null: none since the start. */
  of(charger: ChargerId): Reboot | null {
    return this.#last.get(charger) ?? null;
  }

  record(reboot: Reboot): void {
    this.#last.set(reboot.charger, reboot);
    if (isOpen(reboot)) this.#open.set(reboot.charger, reboot);
    else this.#open.delete(reboot.charger);
  }

  restartsOf(charger: ChargerId): Restarts {
    return this.#restarts.get(charger) ?? NONE;
  }

  /** The first report of its own starts ends the count of returns: they would be counted twice. */
  count(charger: ChargerId, counted: Restarts["counted"], at: Instant | null): void {
    const before = this.restartsOf(charger);
    if (before.counted === "starts" && counted === "returns") return;
    const known = before.counted === counted ? before : { ...NONE, counted };
    this.#restarts.set(charger, at === null ? known : { counted, count: known.count + 1, lastAt: at });
  }

  /** Reboots whose time is over. */
  overdue(now: Instant): readonly Reboot[] {
    return [...this.#open.values()].filter(({ at }) => now >= after(at, BACK_WITHIN));
  }

  /** The next moment at which time ends a reboot. Null: none is open. */
  next(): Instant | null {
    let first: Instant | null = null;
    // Called after each publish, so it creates no list.
    for (const { at } of this.#open.values()) first = first === null ? at : earlier(first, at);
    return first === null ? null : after(first, BACK_WITHIN);
  }

  /** Times after now become now. */
  onClockMovedBack(now: Instant): void {
    for (const reboot of this.#open.values()) this.record({ ...reboot, at: earlier(reboot.at, now) });
  }
}

/** True: its result is not known yet, and its time is not over. */
export const isOpen = ({ progress }: Reboot): boolean =>
  progress === "asked" || progress === "sent" || progress === "accepted" || progress === "away";

/** The reboot and its result as a sentence. */
export function rebootSentence({ charger, by, progress, at, changedAt, because }: Reboot): string {
  const why = because ?? "it gave no reason";
  const elapsed = `${Math.max(0, Math.round((changedAt - at) / 1000))} s`;
  switch (progress) {
    case "asked":
    case "sent":
      return `the reboot of ${charger} by ${by} is sent`;
    case "accepted":
      return `${charger} accepted the reboot by ${by}`;
    case "away":
      return `${charger} is offline ${elapsed} after the reboot by ${by}`;
    case "back":
      return `${charger} is back ${elapsed} after the reboot by ${by}`;
    case "refused":
      return `${charger} refused the reboot by ${by}: ${why}`;
    case "failed":
      return `the reboot of ${charger} by ${by} was not sent: ${why}`;
    case "missing":
      return `${charger} was not heard again within ${elapsed} after the reboot by ${by}`;
    case "unnoticed":
      return `${charger} was never away within ${elapsed} after the reboot by ${by}: it restarted too quickly to be noticed, or not at all`;
  }
}

/** True: the charger has started between these two marks. */
export function hasStarted(before: StartMark | undefined, next: StartMark | undefined): boolean {
  if (before === undefined || next === undefined) return false;
  if (before.kind === "time" && next.kind === "time") return next.at > after(before.at, INEXACT);
  return before.kind === "count" && next.kind === "count" && before.count !== next.count;
}
