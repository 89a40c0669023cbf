import type { CommandRecord } from "../../domain/command.ts";
import type { Verdict } from "./verdict.ts";

/**
 * Phase of a trial. Control commands the charger again once the phase is `preempted` or `over`.
 *
 *   trying ------------- cancel: an operator's release, a client that left, our stop
 *     |    \                v
 *     |     \          restoring     the former setpoint is sent, then the trial ends
 *     |      \           |    \
 *     |       `----------|-----+---> preempted    a different dispatch wins: nothing more is sent
 *     | end              | end            | end
 *     v                  v                v
 *    over <--------------+----------------+
 *
 * A publish of the trial may be in flight in any phase. Control waits for its result, so as not to overtake it.
 */
type Phase =
  | { readonly kind: "trying" }
  | { readonly kind: "restoring" }
  /** `by`: why control needs the charger. */
  | { readonly kind: "preempted"; readonly by: string }
  /** `preemptedBy` null: the trial ended by itself. */
  | { readonly kind: "over"; readonly preemptedBy: string | null };

/** A charger that commissioning tries. Control does not command it until a different dispatch wins. */
export class CommissioningLock {
  /** The command before commissioning. Null: none. */
  readonly before: CommandRecord | null;
  /** The winning dispatch at the begin, serialized. */
  readonly #dispatchAtStart: string;
  #phase: Phase = { kind: "trying" };
  #isPublishing = false;

  /** `verdict`: on the charger at the begin. */
  constructor(verdict: Verdict, before: CommandRecord | null) {
    this.before = before;
    this.#dispatchAtStart = dispatchIn(verdict);
  }

  /** Why control needed the charger. Null: control did not need it. */
  get preemptedBy(): string | null {
    switch (this.#phase.kind) {
      case "trying":
      case "restoring":
        return null;
      case "preempted":
        return this.#phase.by;
      case "over":
        return this.#phase.preemptedBy;
    }
  }

  /** True: no further level is tried. */
  get isCut(): boolean {
    return this.#phase.kind === "restoring" || this.preemptedBy !== null;
  }

  /** True: control must not command the charger yet. */
  get isHeld(): boolean {
    return this.#isPublishing || this.#phase.kind === "trying" || this.#phase.kind === "restoring";
  }

  /** The trial must restore the former setpoint and return the charger. */
  cancel(): void {
    if (this.#phase.kind === "trying") this.#phase = { kind: "restoring" };
  }

  /** Compares the verdict of now with the one at the begin. Another dispatch preempts the trial. */
  reconsider(verdict: Verdict): void {
    if (this.#phase.kind !== "trying" && this.#phase.kind !== "restoring") return;
    if (dispatchIn(verdict) === this.#dispatchAtStart) return;
    const { winner } = verdict;
    const by = winner === null ? "the event on it is over" : `${winner.event.id} wants it`;
    this.#phase = { kind: "preempted", by };
  }

  end(): void {
    this.#phase = { kind: "over", preemptedBy: this.preemptedBy };
  }

  startPublish(): void {
    this.#isPublishing = true;
  }

  endPublish(): void {
    this.#isPublishing = false;
  }
}

/** The asked setpoint, not the limited one: that one changes with the measured voltage. */
const dispatchIn = ({ winner }: Verdict): string =>
  JSON.stringify(winner === null ? null : [winner.event.id, winner.setpoint]);
