import type { AuditRow, ProofFact } from "./apiAnswers.ts";
import type { Shown, SiteEvent } from "./derive.ts";
import { isOnlyObserved } from "./commands.ts";
import { t } from "./texts.ts";

/** A stretch of time on the row of a vehicle. */
export interface Bar {
  /**
   * offset: before its drawn start. on: at the setpoint. sent: no reading has confirmed it. bad: did not follow. held:
   * overridden. absent: at no charger. observed: decided and not sent, as the site only observed.
   */
  readonly kind: "offset" | "on" | "sent" | "bad" | "held" | "observed" | "absent";
  readonly from: number;
  readonly until: number;
}

/** A vehicle in the course of an event. */
export interface EventRow {
  readonly vehicle: string;
  readonly from: number;
  readonly until: number;
  /** Drawn random start, in ms. Null: it was never started. */
  readonly offsetMs: number | null;
  readonly bars: readonly Bar[];
  readonly result: Shown;
}

interface Facts {
  readonly winner?: {
    readonly event?: string;
    readonly from?: string;
    readonly until?: string;
    readonly offsetMs?: number;
  } | null;
  readonly hold?: object | null;
  readonly progress?: string;
  /** A hold took the vehicle off the event. The decision for the level of that hold is not one of the event. */
  readonly effect?: boolean;
}

const factsOf = ({ facts }: AuditRow): Facts => (typeof facts === "object" && facts !== null ? facts : {});

/** The course of an event for each of its vehicles, from the rows of the record. */
export function vehicleRows(
  rows: readonly AuditRow[],
  event: SiteEvent | undefined,
  now: number,
): readonly EventRow[] {
  const inOrder = rows.toSorted((a, b) => a.seq - b.seq);
  const first = inOrder.find(({ kind }) => kind === "decision");
  const start = Date.parse(event?.start ?? first?.at ?? "");
  if (Number.isNaN(start)) return [];
  const end =
    event?.end === undefined ? Math.max(...inOrder.map(({ at }) => Date.parse(at))) : Date.parse(event.end);
  const last = end + (event?.randomizeStartMs ?? 0);
  const named = inOrder.flatMap(({ vehicle }) => (vehicle === null ? [] : [vehicle]));
  const ids = [...new Set([...(event?.vehicles ?? []), ...named])];
  const ofVehicle = Map.groupBy(inOrder, ({ vehicle }) => vehicle);
  return ids.map((vehicle) =>
    vehicleRow(vehicle, ofVehicle.get(vehicle) ?? [], event?.id ?? first?.event ?? "", start, last, now),
  );
}

/** The first `most` rows. Of more, those that need a look come first, and those that never started last. */
export function firstRows(rows: readonly EventRow[], most: number): readonly EventRow[] {
  if (rows.length <= most) return rows;
  const weight: Readonly<Partial<Record<Shown["tone"], number>>> = { bad: 0, warn: 1, mute: 3 };
  return rows.toSorted((a, b) => (weight[a.result.tone] ?? 2) - (weight[b.result.tone] ?? 2)).slice(0, most);
}

type OpenBar = Pick<Bar, "kind" | "from">;

function vehicleRow(
  vehicle: string,
  rows: readonly AuditRow[],
  event: string,
  start: number,
  end: number,
  now: number,
): EventRow {
  const bars: Bar[] = [];
  let open: OpenBar | null = null;
  let offsetMs: number | null = null;
  let outcome: Shown | null = null;
  const turn = (kind: Bar["kind"] | null, at: number): void => {
    if (open !== null && open.kind !== kind && at > open.from) bars.push({ ...open, until: at });
    if (open === null || open.kind !== kind) open = kind === null ? null : { kind, from: at };
  };
  for (const row of rows) {
    const at = Date.parse(row.at);
    const { winner, hold, progress, effect } = factsOf(row);
    if (row.kind === "decision") {
      const wins = winner?.event === event;
      if (wins) offsetMs ??= winner?.offsetMs ?? null;
      const isObserved = wins && isOnlyObserved(row);
      const sent = open?.kind === "on" ? "on" : "sent";
      turn(isObserved ? "observed" : wins ? sent : hold != null ? "held" : null, at);
      if (isObserved) outcome = RESULT.observed;
      else outcome = wins ? RESULT.sent : hold != null ? RESULT.held : (outcome ?? RESULT.sent);
    } else if (row.kind === "outcome") {
      if (progress === "notFollowed" || progress === "refused") {
        turn("bad", at);
        outcome = RESULT.bad;
      } else if (progress === "followed" && open !== null) {
        const { kind, from }: OpenBar = open;
        if (kind === "bad") turn("on", at);
        // A charger needs some seconds for its first reading at the level.
        if (kind === "sent") open = { kind: "on", from };
        if (kind !== "held") outcome = RESULT.followed;
      }
    } else if (row.kind === "operator" && effect === true) {
      turn("held", at);
      outcome = RESULT.held;
    } else if (row.kind === "missed") {
      outcome = RESULT.missed;
    }
  }
  turn(null, Math.min(Math.max(now, start), end));
  if (offsetMs !== null && offsetMs > 0)
    bars.unshift({ kind: "offset", from: start, until: start + offsetMs });
  if (bars.length === 0 && now > start) bars.push({ kind: "absent", from: start, until: Math.min(now, end) });
  return { vehicle, from: start, until: end, offsetMs, bars, result: outcome ?? RESULT.none };
}

const RESULT = {
  followed: { word: t.event.results.followed, shape: "dot", tone: "good" },
  sent: { word: t.event.results.sent, shape: "ring", tone: "info" },
  bad: { word: t.event.results.bad, shape: "triangle", tone: "bad" },
  held: { word: t.event.results.held, shape: "hand", tone: "info" },
  missed: { word: t.event.results.missed, shape: "ring", tone: "warn" },
  observed: { word: t.event.results.observed, shape: "ring", tone: "info" },
  none: { word: t.event.results.none, shape: "ring", tone: "mute" },
} as const satisfies Readonly<Record<string, Shown>>;

type Field = keyof typeof t.event.fields;

/** A revision of an event as it arrived. */
interface Revision {
  readonly seq: number;
  readonly at: string;
  readonly how: string;
  readonly text: string;
  /** Differences from the revision before. Empty: the first. */
  readonly changes: readonly {
    readonly what: Field;
    readonly before: string | number | null;
    readonly after: string | number | null;
  }[];
}

interface RevisionFacts {
  readonly outcome?: string;
  readonly source?: string;
  readonly start?: string;
  readonly durationMs?: number;
  readonly randomizeStartMs?: number;
  readonly priority?: number | null;
  readonly ask?: { readonly kind: string; readonly level?: number };
  readonly targets?: { readonly vehicles?: number };
}

type Fields = Readonly<Record<Field, string | number | null>>;

const UNIT: Readonly<Record<string, string>> = { current: "A", power: "kW" };

function fieldsOf({ start, durationMs, randomizeStartMs, priority, ask, targets }: RevisionFacts): Fields {
  const end = start === undefined ? null : new Date(Date.parse(start) + (durationMs ?? 0)).toISOString();
  return {
    ask:
      ask === undefined
        ? null
        : [ask.level, UNIT[ask.kind] ?? ask.kind].filter((part) => part !== undefined).join(" "),
    start: start ?? null,
    end,
    randomizeStartMs: randomizeStartMs ?? null,
    priority: priority ?? null,
    vehicles: targets?.vehicles ?? null,
  };
}

const FIELDS = ["ask", "start", "end", "randomizeStartMs", "priority", "vehicles"] as const;

/** The revisions of an event, the newest first. */
export function revisionsIn(rows: readonly AuditRow[]): readonly Revision[] {
  let before: Fields | null = null;
  const all: Revision[] = [];
  for (const row of rows.filter(({ kind }) => kind === "event").toSorted((a, b) => a.seq - b.seq)) {
    const facts = (typeof row.facts === "object" && row.facts !== null ? row.facts : {}) as RevisionFacts;
    const fields = facts.start === undefined ? null : fieldsOf(facts);
    const earlier: Fields | null = before;
    const changes =
      fields === null || earlier === null
        ? []
        : FIELDS.filter((what) => fields[what] !== earlier[what]).map((what) => ({
            what,
            before: earlier[what],
            after: fields[what],
          }));
    all.push({
      seq: row.seq,
      at: row.at,
      how: [facts.outcome, facts.source].filter((part) => part !== undefined).join(", "),
      text: row.words,
      changes,
    });
    before = fields ?? before;
  }
  return all.toReversed();
}

/** Energy of an event, in Wh. Null: not known of any vehicle. */
interface EnergyTotals {
  readonly deliveredWh: number | null;
  readonly baselineWh: number | null;
  /** Vehicles with a measured energy, and those that also have a baseline. */
  readonly measured: number;
  readonly compared: number;
}

/** Sums the facts of a proof. Where the meter alone shows nothing, the estimate counts. */
export function energyTotals(facts: readonly ProofFact[]): EnergyTotals {
  const delivered = new Map<string, number>();
  const baselines = new Map<string, number>();
  for (const { section, what, vehicle, from, value } of facts) {
    if (section !== "vehicle" || value === undefined) continue;
    const key = `${vehicle} ${from}`;
    if (what === "baseline") baselines.set(key, value * 1000);
    if (what === "estimated energy" || (what === "energy" && !delivered.has(key)))
      delivered.set(key, value * 1000);
  }
  return {
    deliveredWh: sum(delivered),
    baselineWh: sum(baselines),
    measured: new Set([...delivered.keys()].map(vehicleOf)).size,
    compared: new Set([...baselines.keys()].map(vehicleOf)).size,
  };
}

const vehicleOf = (key: string): string => key.slice(0, key.lastIndexOf(" "));

/** Null: nothing to add up. */
const sum = (all: ReadonlyMap<string, number>): number | null =>
  all.size === 0 ? null : [...all.values()].reduce((total, wh) => total + wh, 0);
