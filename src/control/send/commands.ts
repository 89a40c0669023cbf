import { type Command, commandId, type CommandRecord } from "../../domain/command.ts";
import type { Reason } from "../../domain/reason.ts";
import type { ChargerId, Instant } from "../../domain/units.ts";

export interface PublishFailure {
  readonly since: Instant;
  readonly reason: string;
}

/** Last command of each charger, why it was decided, and what became of its publishes. */
export class Commands {
  readonly #records = new Map<ChargerId, CommandRecord>();
  readonly #reasons = new Map<ChargerId, Reason>();
  readonly #failures = new Map<ChargerId, PublishFailure>();
  readonly #refusedNumbers = new Map<ChargerId, string>();

  get size(): number {
    return this.#records.size;
  }

  get(charger: ChargerId): CommandRecord | undefined {
    return this.#records.get(charger);
  }

  has(charger: ChargerId): boolean {
    return this.#records.has(charger);
  }

  values(): MapIterator<CommandRecord> {
    return this.#records.values();
  }

  [Symbol.iterator](): MapIterator<[ChargerId, CommandRecord]> {
    return this.#records.entries();
  }

  /** Null: not known. */
  reasonOf(charger: ChargerId): Reason | null {
    return this.#reasons.get(charger) ?? null;
  }

  /** The last command of its charger, or what is now known about it. */
  record(record: CommandRecord): void {
    this.#records.set(record.command.charger, record);
  }

  explain(charger: ChargerId, reason: Reason): void {
    this.#reasons.set(charger, reason);
  }

  forget(charger: ChargerId): void {
    this.#records.delete(charger);
    this.#reasons.delete(charger);
  }

  /** Before the stored commands are loaded. */
  clear(): void {
    this.#records.clear();
    this.#reasons.clear();
    this.#refusedNumbers.clear();
  }

  /** Since when publishes to this charger fail, and why the last one did. Undefined: the last one succeeded. */
  publishFailureOf(charger: ChargerId): PublishFailure | undefined {
    return this.#failures.get(charger);
  }

  publishFailed(charger: ChargerId, reason: string, now: Instant): void {
    const since = this.#failures.get(charger)?.since ?? now;
    this.#failures.set(charger, { since, reason });
  }

  publishSucceeded(charger: ChargerId): void {
    this.#failures.delete(charger);
  }

  /**
   * The charger refuses this command, which an earlier start decided, as it accepted a higher number. A failed commit
   * does not undo that: the stored command would be sent and refused in turns.
   */
  numberRefused(command: Command): void {
    this.#refusedNumbers.set(command.charger, commandId(command));
  }

  isNumberRefused(command: Command): boolean {
    return this.#refusedNumbers.get(command.charger) === commandId(command);
  }
}
