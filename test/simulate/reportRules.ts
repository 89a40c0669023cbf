import type { ReportRecord } from "../../src/domain/report.ts";
import type { ReportRow } from "../../src/operator/listViews.ts";
import type { Breach } from "./invariants.ts";
import type { TrueEvent } from "./oracle.ts";
import { MINUTE, type PlannedReport } from "./plan.ts";
import type { Posted } from "./simTray.ts";

/** Late readings are waited for so long (report.settleDelay). */
const SETTLE = 30_000;
/** The longest pause between two tries, and the try. */
const LONGEST_RETRY = 17 * MINUTE;
/** What is due is made at the next nap of the alarm, or after a commit that failed. */
const LATE = 2 * MINUTE;

type History = ReadonlyMap<string, readonly TrueEvent[]>;

/** Every report that came to the partner since midnight, and what must hold of each. */
export class SeenReports {
  readonly #bodies = new Map<string, string>();
  readonly #moments = new Map<string, { readonly k: number; readonly end: number }[]>();
  readonly #history: History;

  constructor(history: History) {
    this.#history = history;
  }

  /** Holds a report that comes against every rule, and remembers it. `latest`: what the gateway's clock ever showed. */
  breachOf(posted: Posted, latest: number): Breach | null {
    const { name, body, ends } = posted;
    const known = this.#bodies.get(name);
    if (known !== undefined)
      return known === body ? null : { invariant: "a report is the same each time it comes", words: name };
    this.#bodies.set(name, body);
    const [, event = "", descriptor = "", number = ""] = /^(.+)\/(\d+)\/(\d+)$/.exec(name) ?? [];
    const asking = (this.#history.get(event) ?? []).map(({ plan }) => plan.reports[Number(descriptor)]);
    if (asking.every((asked) => asked === undefined))
      return { invariant: "a report is one that was asked for", words: name };
    const end = ends.at(-1) ?? 0;
    if (!asking.every((asked) => asked?.historical)) return null;
    if (latest < end + SETTLE)
      return {
        invariant: "nothing is reported before its end",
        words: `${name} of what ends at ${new Date(end).toISOString()}`,
      };
    return this.#inOrder(`${event}/${descriptor}`, Number(number), end);
  }

  /** A name says which report of a descriptor it is: a later one is of a later time, whatever was lost in between. */
  #inOrder(key: string, k: number, end: number): Breach | null {
    const before = this.#moments.get(key) ?? [];
    this.#moments.set(key, [...before, { k, end }]);
    return before.every((other) => Math.sign(other.k - k) === Math.sign(other.end - end))
      ? null
      : { invariant: "reports are numbered by their time", words: `${key}/${k}` };
  }
}

interface Night {
  /** ms since the epoch. */
  readonly at: number;
  readonly midnight: number;
  readonly history: History;
  /** Events that the partner has now. */
  readonly events: ReadonlyMap<string, TrueEvent>;
  /** Revisions of each event that the gateway took in, ms since the epoch. */
  readonly accepted: ReadonlyMap<string, ReadonlySet<number>>;
  readonly rows: readonly ReportRow[];
  readonly records: readonly ReportRecord[];
  /** Names of the reports that the partner took. */
  readonly taken: ReadonlyMap<string, unknown>;
}

/** L3 at the end of a calm hour: everything that was ever asked for is sent, flagged with the reason, or yet to come. */
export function silenceOf(night: Night): Breach | null {
  const words =
    night.records.map((record) => openRecord(record, night)).find((wrong) => wrong !== null) ??
    night.rows.map((row) => overdue(row, night)).find((wrong) => wrong !== null) ??
    [...night.history]
      .map(([id, revisions]) => unanswered(id, revisions, night))
      .find((wrong) => wrong !== null);
  return words === undefined ? null : { invariant: "L3 no report ends in silence", words };
}

function openRecord(record: ReportRecord, { at, taken }: Night): string | null {
  const { name, state, since, reason } = record;
  switch (state) {
    case "sent":
      return taken.has(name) ? null : `${name} is said to be sent, and was never taken`;
    case "flagged":
      return reason === null ? `${name} is flagged without a reason` : null;
    case "waiting":
      return at - since > LONGEST_RETRY ? `${name} still waits` : null;
  }
}

const overdue = ({ name, state, due, reason }: ReportRow, { at }: Night): string | null => {
  if (state === "planned" && due !== null && Date.parse(due) + LATE < at) return `${name} was due at ${due}`;
  return state === "flagged" && reason === null ? `${name} is flagged without a reason` : null;
};

/** Each descriptor of each revision that the gateway knew of has to be found again, and a whole event has to be told to its end. */
function unanswered(id: string, revisions: readonly TrueEvent[], night: Night): string | null {
  const accepted = night.accepted.get(id) ?? new Set<number>();
  const most = Math.max(0, ...[...accepted].map((revised) => descriptorsAt(revised, revisions)));
  const now = night.events.get(id);
  for (let descriptor = 0; descriptor < most; descriptor += 1) {
    const ours = night.rows.filter((row) => row.event === id && row.descriptor === descriptor);
    const records = night.records.filter((record) => record.event === id && record.descriptor === descriptor);
    if (ours.length + records.length === 0) return `nothing became of ${id}/${descriptor}`;
    const asked = now?.plan.reports[descriptor];
    if (now === undefined || asked === undefined || !isPlain(asked)) continue;
    const end = night.midnight + now.plan.start + now.plan.duration;
    const isTold =
      records.some(({ span }) => span.until >= end) || ours.some(({ state }) => state === "flagged");
    if (end + SETTLE + LATE < night.at && !isTold) return `${id}/${descriptor} was not told to its end`;
  }
  return null;
}

/** Of those that share a modification time the gateway need not have seen more than one. */
const descriptorsAt = (time: number, revisions: readonly TrueEvent[]): number => {
  const counts = revisions.filter(({ revised }) => revised === time).map(({ plan }) => plan.reports.length);
  return counts.length === 0 ? 0 : Math.min(...counts);
};

/** One report on the whole. */
const isPlain = ({ historical, numIntervals, repeat }: PlannedReport): boolean =>
  historical && numIntervals === -1 && repeat === 0;
