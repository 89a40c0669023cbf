import type { Change, Scope, StoredScope } from "../../domain/changes.ts";
import { commandId, type CommandRecord, type Hold, type Decision } from "../../domain/command.ts";
import type { Reason } from "../../domain/reason.ts";
import { after, type ChargerId, type Instant } from "../../domain/units.ts";
import { decide, free, stepOf } from "../decide/evaluate.ts";
import { noteHeld } from "../decide/holdBack.ts";
import type { Verdict } from "../decide/verdict.ts";
import type { Reevaluation } from "../ports.ts";
import type { ControlState } from "../state.ts";

/** What a charger was told, and freed from, since commits fail. */
interface Owed {
  readonly changes: readonly Change[];
  readonly record: CommandRecord | null;
  readonly hold: Hold | null;
  readonly why: Reason | null;
}

/**
 * Releases that go out although the disk refuses: at the end of a window, and by an operator. Nothing else does, since
 * a level without its row would not be accounted for; but a charger that is not released stands, and some makes hold a
 * level without end. The changes are stored as soon as a commit succeeds; until then this keeps them in the picture.
 */
export class UnrecordedReleases {
  readonly #owed = new Map<ChargerId, Owed>();
  readonly #writeUntilStored: (changes: readonly Change[]) => Promise<void>;

  constructor(writeUntilStored: (changes: readonly Change[]) => Promise<void>) {
    this.#writeUntilStored = writeUntilStored;
  }

  /** The stored state of a scope, with what is still to be stored in its place. */
  over({ chargers }: Scope, stored: StoredScope): StoredScope {
    const owed = [...this.#owed].filter(([charger]) => chargers.has(charger));
    if (owed.length === 0) return stored;
    const records = owed.flatMap(([, { record }]) => record ?? []);
    const reasons = owed.flatMap(([, { record, why }]) =>
      record === null || why === null ? [] : [[commandId(record.command), why] as const],
    );
    const replaced = new Set(records.map(({ command }) => command.charger));
    return {
      ...stored,
      commands: [...stored.commands.filter(({ command }) => !replaced.has(command.charger)), ...records],
      reasons: new Map([...stored.reasons, ...reasons]),
      holds: [...stored.holds, ...owed.flatMap(([, { hold }]) => hold ?? [])],
    };
  }

  /** An operator freed these chargers, and that could not be stored: they are freed all the same. */
  free(depot: ControlState, chargers: readonly ChargerId[], now: Instant): void {
    for (const charger of chargers) this.#owe(depot, charger, free(depot, [charger], now));
  }

  /**
   * After a failed commit, with the picture as it is stored: the chargers that may be sent to all the same. Their
   * command is stored and goes on, or it is renewed while its event still holds, or they are released.
   */
  sendable(depot: ControlState, touches: readonly Reevaluation[], now: Instant): readonly ChargerId[] {
    const sendable: ChargerId[] = [];
    for (const { charger: id, reassert } of touches) {
      const [charger, last] = [depot.chargers.get(id), depot.commands.get(id)];
      if (charger === undefined || last === undefined || depot.barTo("queue", id) !== null) continue;
      // After commissioning the command needs a new number, and that needs a commit.
      if (last.isLent === true) continue;
      const { verdict, step } = stepOf(depot, charger, reassert, now);
      if (step.kind === "decide" && isLettingGo(step.decision)) {
        noteHeld(depot, verdict, step, now);
        this.#owe(depot, id, decide(depot, verdict, step.decision, now));
        sendable.push(id);
      } else if (step.kind === "again" || wantsLease(depot, last, verdict, now)) sendable.push(id);
    }
    return sendable;
  }

  #owe(depot: ControlState, charger: ChargerId, changes: readonly Change[]): void {
    if (changes.length === 0) return;
    depot.awaitingCommit.delete(charger);
    const before = this.#owed.get(charger);
    const decided = changes.find((change) => change.kind === "command");
    const owed: Owed = {
      changes,
      record: decided?.record ?? before?.record ?? null,
      hold: changes.find((change) => change.kind === "hold")?.hold ?? before?.hold ?? null,
      why: decided === undefined ? (before?.why ?? null) : (depot.why.get(charger) ?? null),
    };
    this.#owed.set(charger, owed);
    void this.#writeUntilStored(changes).then(() => {
      if (this.#owed.get(charger) === owed) this.#owed.delete(charger);
    });
  }
}

const isLettingGo = ({ desired, cause }: Decision): boolean =>
  desired.kind === "release" && (cause === "ended" || cause === "operator");

/**
 * While a newer decision cannot be stored, the standing command keeps its lease: the charger must not fall back to its
 * own default. Only while its event still holds there: one that is over must not be repeated.
 */
function wantsLease(
  depot: ControlState,
  { command, sentAt }: CommandRecord,
  { winner, overruled }: Verdict,
  now: Instant,
): boolean {
  if (sentAt === null || command.desired.kind === "release") return false;
  if (command.until !== null && command.until <= now) return false;
  const holds = winner !== null && [winner, ...overruled].some(({ event }) => event.id === command.event);
  if (command.cause === "event" && !holds) return false;
  const refresh = depot.chargers.get(command.charger)?.refresh ?? null;
  return refresh !== null && after(sentAt, refresh) <= now;
}
