import { type AuditEntry, factOf, numberOf, type RecordRow, textOf } from "../audit.ts";
import { type ChargerId, earlier, type Instant, instant, iso, later, type Window } from "../units.ts";
import { type Fact, fact } from "./fact.ts";

/** When the partner, a broker, a charger, the clock or setpointd itself was away or wrong. */
export interface Outage extends Window {
  /** Null: it befell the whole site. */
  readonly charger: ChargerId | null;
  readonly words: string;
  readonly seq: number;
}

/**
 * The outages that these rows, in order, tell of; one that is not over goes on for ever. A start of setpointd ends what
 * was open: from then on the record says that somebody is away only where the new run found that out itself.
 */
export function outagesIn(rows: readonly RecordRow[]): readonly Outage[] {
  const open = new Map<string, Outage>();
  const over: Outage[] = [];
  for (const row of rows) {
    const { at, charger, seq, facts, words: told } = row;
    if (isStart(row)) {
      for (const outage of open.values()) over.push({ ...outage, until: at });
      open.clear();
    }
    const outage = textOf(facts, "outage");
    if (outage === null) continue;
    const who = `${charger} ${outage}`;
    const words = `${outage}: ${told}`;
    const begun = open.get(who);
    const since = textOf(facts, "since");
    const from = begun?.from ?? (since === null ? at : instant(Date.parse(since)));
    if (factOf(facts, "over") !== true) {
      open.set(who, begun ?? { charger, words, seq, from, until: instant(Infinity) });
      continue;
    }
    open.delete(who);
    over.push({ charger, words, seq, from, until: at });
  }
  return [...over, ...open.values()].toSorted((a, b) => a.from - b.from);
}

/** Only the row of a start names the epoch of its run. */
const isStart = ({ kind, facts }: AuditEntry): boolean =>
  kind === "daemon" && numberOf(facts, "epoch") !== null;

/** Those of the site and of these chargers that reach into a vehicle's window, up to now; beside its figures they explain them. */
export const outageFacts = (
  outages: readonly Outage[],
  vehicle: string,
  chargers: ReadonlySet<string | null>,
  { from, until }: Window,
  now: Instant,
): readonly Fact[] =>
  outages
    .filter((outage) => outage.charger === null || chargers.has(outage.charger))
    .filter((outage) => outage.from < earlier(until, now) && outage.until >= from)
    .map(({ charger, words, seq, ...outage }) => {
      const during = { from: later(outage.from, from), until: earlier(outage.until, earlier(until, now)) };
      return fact("vehicle", "outage", {
        vehicle,
        charger,
        from: iso(during.from),
        until: iso(during.until),
        value: (during.until - during.from) / 1000,
        unit: "s",
        words,
        seq,
      });
    });
