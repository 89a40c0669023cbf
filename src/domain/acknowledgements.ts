import { auditEntry, type AuditEntry, factOf, type Json, numberOf, textOf } from "./audit.ts";
import { type Command, commandId } from "./command.ts";
import { chargerId, instant, type Instant, iso, vehicleId } from "./units.ts";

/**
 * Acknowledgements of one commit may share a row of the record: a fan-out writes hundreds of them at once. Such
 * a row names its commands in `facts`. Readers get one entry per command.
 */

/** Commands of one row. */
const MOST_TOGETHER = 64;
/** Facts with `v: 2` and `commands` are a shared row. */
const SHARED = 2;

/** The broker acknowledged the first publish of a command. `sentAt`: when that publish began. */
export const acknowledgement = (command: Command, sentAt: Instant, at: Instant): AuditEntry =>
  entryOf(command, commandId(command), at, at - command.decidedAt, sentAt);

const message = (charger: string, command: string, ms: number): string =>
  `${charger} ${command} acknowledged by the broker after ${ms} ms`;

const entryOf = (
  { charger, vehicle, event }: Pick<Command, "charger" | "vehicle" | "event">,
  command: string,
  at: Instant,
  ms: number,
  sentAt: Instant,
): AuditEntry =>
  auditEntry("outcome", at, message(charger, command, ms), {
    charger,
    vehicle,
    event,
    command,
    facts: { progress: "acknowledged", ms, sentAt: iso(sentAt) },
  });

/** A command in a shared row: charger, vehicle, seq, ms, and how long after the row's time it was acknowledged and sent. */
type Item = readonly [
  charger: string,
  vehicle: string | null,
  seq: number,
  ms: number,
  at: number,
  sent: number,
];

/** Acknowledgements in a row, in order, that could be stored as one. */
export class Together {
  readonly entries: AuditEntry[] = [];
  #epoch: string | null = null;

  /** Adds an entry. False: it needs a row of its own, or the next one. */
  add(entry: AuditEntry): boolean {
    const first = this.entries[0];
    const epoch = epochOf(entry);
    if (first !== undefined && (epoch === null || epoch !== this.#epoch)) return false;
    if (first !== undefined && (first.event !== entry.event || this.entries.length >= MOST_TOGETHER))
      return false;
    this.#epoch = epoch;
    this.entries.push(entry);
    return true;
  }

  /** The entry to store: the only one, or one for all. Null: there is none. */
  get row(): AuditEntry | null {
    const [first] = this.entries;
    if (first === undefined || this.entries.length === 1) return first ?? null;
    const commands = this.entries.map((entry) => itemOf(entry, first.at));
    return auditEntry("outcome", first.at, `${commands.length} commands acknowledged by the broker`, {
      event: first.event,
      facts: { v: SHARED, progress: "acknowledged", epoch: Number(this.#epoch), commands },
    });
  }
}

const itemOf = ({ charger, vehicle, command, at, facts }: AuditEntry, start: Instant): Json => [
  charger,
  vehicle,
  Number(String(command).split("-")[1]),
  numberOf(facts, "ms"),
  at - start,
  Date.parse(String(textOf(facts, "sentAt"))) - start,
];

/** The epoch of the command. Null: not an acknowledgement as `acknowledgement` makes it. */
function epochOf({ kind, charger, command, words, facts }: AuditEntry): string | null {
  if (kind !== "outcome" || charger === null || command === null) return null;
  const [ms, sentAt] = [numberOf(facts, "ms"), textOf(facts, "sentAt")];
  if (ms === null || sentAt === null || words !== message(charger, command, ms)) return null;
  const isPlain = factOf(facts, "progress") === "acknowledged" && Object.keys(Object(facts)).length === 3;
  const sent = Date.parse(sentAt);
  if (!isPlain || Number.isNaN(sent) || iso(instant(sent)) !== sentAt) return null;
  return /^(\d{1,15})-\d{1,15}$/.exec(command)?.[1] ?? null;
}

/** Chargers that a shared row names. Empty for other rows. */
export const chargersTogether = (entry: AuditEntry): readonly string[] =>
  itemsIn(entry).map(([charger]) => charger);

/** The entries that share this row, or the row itself. */
export function entriesIn<Row extends AuditEntry>(row: Row): readonly Row[] {
  const items = itemsIn(row);
  if (items.length === 0) return [row];
  const epoch = numberOf(row.facts, "epoch");
  return items.map(([charger, vehicle, seq, ms, at, sent]) => ({
    ...row,
    ...entryOf(
      {
        charger: chargerId(charger),
        vehicle: vehicle === null ? null : vehicleId(vehicle),
        event: row.event,
      },
      `${epoch}-${seq}`,
      instant(row.at + at),
      ms,
      instant(row.at + sent),
    ),
  }));
}

/** The chain covers the facts, so their form is ours. */
function itemsIn({ kind, charger, facts }: AuditEntry): readonly Item[] {
  if (kind !== "outcome" || charger !== null || factOf(facts, "v") !== SHARED) return [];
  const commands = factOf(facts, "commands");
  return Array.isArray(commands) ? (commands as readonly Item[]) : [];
}
