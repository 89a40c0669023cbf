import { textOf } from "../../domain/audit.ts";
import type { Change, Scope, StoredScope } from "../../domain/changes.ts";
import { commandId, type CommandRecord, type Decision } from "../../domain/command.ts";
import type { Hold } from "../../domain/hold.ts";
import type { Reason } from "../../domain/reason.ts";
import { after, type ChargerId, type Instant } from "../../domain/units.ts";
import { decide, recordDeferral, releaseStranded, stepOf } from "../decide/evaluate.ts";
import { free } from "../decide/freeing.ts";
import type { Verdict } from "../decide/verdict.ts";
import { endReachedHolds } from "../holds/lifecycle.ts";
import type { Reevaluation } from "../stage.ts";
import type { ControlState } from "../state.ts";

/** A command by its id, with its reason. */
type Explained = readonly [id: string, reason: Reason];

/** Unstored command and holds of a charger since commits fail. Null: the command is unchanged. */
interface UnstoredChanges {
  readonly record: CommandRecord | null;
  readonly why: Explained | null;
  /** By their ids. */
  readonly holds: ReadonlyMap<string, Hold>;
}

/**
 * Releases that are published although they cannot be stored: at the end of a window, by an operator, and at the begin
 * of an observe period. Nothing else is, since a level without its row would be missing from the record.
 * An unreleased charger stays limited, and some models hold a level without end.
 * A hold that reached its end is over as well: its level would be repeated for a day otherwise.
 * The changes are stored as soon as a commit succeeds. Until then this class keeps them in the state.
 */
export class UnrecordedReleases {
  readonly #pending = new Map<ChargerId, UnstoredChanges>();
  readonly #writeUntilStored: (changes: readonly Change[]) => Promise<void>;

  constructor(writeUntilStored: (changes: readonly Change[]) => Promise<void>) {
    this.#writeUntilStored = writeUntilStored;
  }

  /** The stored state of a scope, overlaid with the unstored changes. */
  over(scope: Scope, stored: StoredScope): StoredScope {
    const pending = [...this.#pending].filter(([charger]) => scope.chargers.has(charger));
    const records = pending.flatMap(([, { record }]) => record ?? []);
    const reasons = pending.map(([, { why }]) => why).filter((why) => why !== null);
    const replaced = new Set(records.map(({ command }) => command.charger));
    // The hold of a vehicle may be in the scope without the charger that ended it.
    const holds = [...this.#pending].flatMap(([charger, unstored]) =>
      [...unstored.holds.values()].filter(({ id }) => scope.holds.has(id) || scope.chargers.has(charger)),
    );
    return {
      ...stored,
      commands: [...stored.commands.filter(({ command }) => !replaced.has(command.charger)), ...records],
      reasons: new Map([...stored.reasons, ...reasons]),
      // The last of one id counts.
      holds: [...stored.holds, ...holds],
    };
  }

  /** Frees these chargers for an operator although the commit failed. */
  free(state: ControlState, chargers: readonly ChargerId[], by: string, now: Instant): void {
    for (const charger of chargers) this.#storeLater(state, charger, free(state, [charger], by, now));
  }

  /**
   * After a failed commit: the chargers that may be sent to.
   * Their stored command continues, its lease is renewed while its event holds, or they are released.
   */
  sendable(state: ControlState, reevaluations: readonly Reevaluation[], now: Instant): readonly ChargerId[] {
    const sendable: ChargerId[] = [];
    for (const { charger: id, reassert } of reevaluations) {
      const [charger, last] = [state.chargers.get(id), state.commands.get(id)];
      // After commissioning the command needs a new number, and that needs a commit.
      if (charger === undefined || last === undefined || last.isLent === true) continue;
      const stranded = state.barTo("queueRelease", id) === null ? releaseStranded(state, charger, now) : null;
      if (stranded !== null) {
        this.#storeLater(state, id, stranded.changes);
        sendable.push(id);
        continue;
      }
      if (state.barTo("queue", id) !== null) continue;
      this.#storeLater(state, id, endReachedHolds(state, id, now, false));
      const { verdict, step } = stepOf(state, charger, reassert, now);
      if (step.kind === "decide" && isFinalRelease(step.decision)) {
        recordDeferral(state, verdict, step, now);
        this.#storeLater(state, id, decide(state, verdict, step.decision, now));
        sendable.push(id);
      } else if (step.kind === "again" || wantsLease(state, last, verdict, now)) sendable.push(id);
    }
    return sendable;
  }

  #storeLater(state: ControlState, charger: ChargerId, changes: readonly Change[]): void {
    if (changes.length === 0) return;
    state.sendQueue.endCommitWait(charger);
    const before = this.#pending.get(charger);
    const decided = changes.find((change) => change.kind === "command");
    const holds = changes.flatMap((change) => (change.kind === "hold" ? [change.hold] : []));
    const unstored: UnstoredChanges = {
      record: decided?.record ?? before?.record ?? null,
      why: decided === undefined ? (before?.why ?? null) : explained(state, decided.record),
      holds: new Map([...(before?.holds ?? []), ...holds.map((hold) => [hold.id, hold] as const)]),
    };
    this.#pending.set(charger, unstored);
    void this.#writeUntilStored(changes).then(() => {
      // A later release may wait for the next commit, as one to a database takes a while.
      if (this.#pending.get(charger) === unstored) this.#pending.delete(charger);
    });
  }
}

function explained({ commands }: ControlState, { command }: CommandRecord): Explained | null {
  const reason = commands.reasonOf(command.charger);
  return reason === null ? null : [commandId(command), reason];
}

const isFinalRelease = ({ desired, cause }: Decision): boolean =>
  desired.kind === "release" && (cause === "ended" || cause === "operator");

/**
 * The last command keeps its lease while a newer decision cannot be stored.
 * Otherwise the charger would fall back to its own default. Only while the event or the hold of that command
 * lasts. A pause carries no end of its own to show that.
 */
function wantsLease(
  state: ControlState,
  { command, sentAt }: CommandRecord,
  { winner, overruled, vehicle }: Verdict,
  now: Instant,
): boolean {
  if (sentAt === null || command.desired.kind === "release") return false;
  if (command.until !== null && command.until <= now) return false;
  const holds = winner !== null && [winner, ...overruled].some(({ event }) => event.id === command.event);
  if (command.cause === "event" && !holds) return false;
  if (command.cause === "operator" && !isHeld(state, command.charger, vehicle, now)) return false;
  const refresh = state.chargers.get(command.charger)?.refresh ?? null;
  // Sent in the future: the clock was set back.
  return refresh !== null && (after(sentAt, refresh) <= now || sentAt > now);
}

/** The hold that the last command is of still lasts. */
function isHeld(
  { commands, holds }: ControlState,
  charger: ChargerId,
  vehicle: Verdict["vehicle"],
  now: Instant,
): boolean {
  const hold = textOf(commands.reasonOf(charger)?.hold ?? null, "id");
  return holds.over(charger, vehicle?.id ?? null, now).some(({ id }) => id === hold);
}
