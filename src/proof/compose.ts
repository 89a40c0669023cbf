import { type Dispatch, expand, type ExpandContext } from "../control/schedule/expand.ts";
import { targeting } from "../control/schedule/targeting.ts";
import type { AuditKind, RecordRow } from "../domain/audit.ts";
import type { KnownEvent } from "../domain/event.ts";
import type { Reading } from "../domain/reading.ts";
import {
  earlier,
  type EventId,
  type Instant,
  iso,
  later,
  type VehicleId,
  type Window,
} from "../domain/units.ts";
import { inBatches } from "../platform/cooperative.ts";
import type { FillContext } from "../reporting/evidence.ts";
import { type Fact, fact } from "./file.ts";
import {
  askedFacts,
  costFacts,
  flaggedFacts,
  headFacts,
  observeFacts,
  outageFacts,
  Outages,
  type OutagesByCharger,
  type EventRecord,
  type KeptReport,
  prunedFacts,
  reportFacts,
  rowFacts,
} from "./sections.ts";
import {
  type CommandHistoryEntry,
  historyFacts,
  commandHistory,
  endOf,
  measuredFacts,
  type VehicleAllocation,
  allocationFacts,
  vehicleAllocations,
} from "./vehicles.ts";

/** Sources of the proof of one event. */
export interface ProofInput {
  readonly event: EventId;
  readonly site: { readonly id: string; readonly timezone: string };
  readonly now: Instant;
  /** Null: the event is no longer stored, and only the record has it. */
  readonly known: KnownEvent | null;
  readonly record: EventRecord;
  readonly expansion: ExpandContext;
  readonly context: FillContext;
  /** Requests the readings of a vehicle. `evidence` has them after the next null of `proofFacts`. */
  readonly request: (vehicle: VehicleId, window: Window) => void;
  readonly evidence: () => StoredEvidence;
  /** Requests rows of the record. `rows` has them after the next null. */
  readonly requestRows: (seqs: readonly number[]) => void;
  readonly rows: () => readonly RecordRow[];
  readonly reports: readonly KeptReport[];
}

/** Stored readings of one vehicle. */
export interface StoredEvidence {
  /** The chargers that the vehicle was on, around its window and that of comparable days. */
  readonly readings: readonly Reading[];
  /** Number of stored messages that are left out because another program changed them. */
  readonly leftOut: number;
}

/** A null is no fact: there the caller reads what was requested. */
type Facts = Generator<Fact | null>;

/**
 * Proof of one event, fact by fact. Readings are read vehicle by vehicle, and rows of the record in pages, wherever they
 * are shown: those of a whole fleet do not fit into memory.
 */
export function* proofFacts(input: ProofInput): Facts {
  const { record, expansion } = input;
  const contents = yield* contentsOf(input);
  const general = (facts: (rows: readonly RecordRow[]) => readonly Fact[]): Facts =>
    inPages(input, contents.general, facts);
  const { period, ends } = yield* outcomeOf(input, contents);
  yield* heading(input, period);
  yield* general((rows) => askedFacts(rows, expansion.settings.powerUnit));
  yield* summary(contents.vehicles.length, ends);
  for (const vehicle of provenVehicles(input, contents))
    if (vehicle === null) yield null;
    else yield* vehicleFacts(input, vehicle, contents.outages);
  yield* general((rows) => costFacts(input.event, rows));
  yield* general(observeFacts);
  yield* general(siteFacts);
  yield* reportFacts(input.reports);
  yield* general(flaggedFacts);
  if (record.checkpoint !== null) yield* prunedFacts(record.checkpoint);
  yield* inPages(input, record.seqs, rowFacts);
  yield* headFacts(record);
}

/** Rows in one page. */
const PAGE = 1_000;
/** Rows of the vehicles that are read together. A shared row names 64 vehicles. */
const BATCH = 5_000;

function* read(input: ProofInput, seqs: readonly number[]): Generator<null, readonly RecordRow[]> {
  input.requestRows(seqs);
  yield null;
  return input.rows();
}

const pagesOf = (seqs: readonly number[]): readonly (readonly number[])[] => inBatches(seqs, PAGE, () => 1);

function* inPages(
  input: ProofInput,
  seqs: readonly number[],
  facts: (rows: readonly RecordRow[]) => readonly Fact[],
): Facts {
  for (const page of pagesOf(seqs)) yield* facts(yield* read(input, page));
}

/** Places in the record of everything that a proof shows. */
interface Contents {
  /** Rows that are not about a command. */
  readonly general: readonly number[];
  /** Vehicles that the event targets, and those with a command because of it, in order of their ids. */
  readonly vehicles: readonly VehicleRows[];
  readonly dispatches: ReadonlyMap<VehicleId, readonly Dispatch[]>;
  readonly outages: OutagesByCharger;
  /** From the first row of the event itself to the last. Null: it has none. */
  readonly times: Window | null;
}

interface VehicleRows {
  readonly id: VehicleId;
  readonly seqs: readonly number[];
}

function* contentsOf(input: ProofInput): Generator<null, Contents> {
  const { event, known, record, expansion } = input;
  const planned = known === null ? [] : expand(known, expansion);
  const dispatches = Map.groupBy<VehicleId, Dispatch>(planned, ({ vehicle }) => vehicle);
  const targeted = known?.kind === "live" ? targeting(known.revision.event, expansion).vehicles : [];
  const ofVehicle = new Map<VehicleId, number[]>();
  for (const vehicle of [...targeted, ...dispatches.keys()]) ofVehicle.set(vehicle, []);
  const general: number[] = [];
  const outages = new Outages();
  let times: Window | null = null;
  for (const page of pagesOf(record.seqs))
    for (const row of yield* read(input, page)) {
      const { at, kind, seq } = row;
      outages.add(row);
      if (row.event === event) times = spanOf(times, [{ from: at, until: at }]);
      if (row.event === null || !OF_COMMANDS.has(kind)) general.push(seq);
      const vehicles = commandHistory(event, [row], dispatches).map((entry) => entry.row.vehicle);
      for (const vehicle of new Set(vehicles)) {
        if (vehicle === null) continue;
        const seqs = ofVehicle.get(vehicle) ?? [];
        seqs.push(seq);
        ofVehicle.set(vehicle, seqs);
      }
    }
  const vehicles = [...ofVehicle]
    .map(([id, seqs]): VehicleRows => ({ id, seqs }))
    .toSorted((one, other) => (one.id < other.id ? -1 : 1));
  return { general, vehicles, dispatches, outages: outages.byCharger, times };
}

/** Kinds of rows about commands of vehicles. */
const OF_COMMANDS: ReadonlySet<AuditKind> = new Set(["decision", "outcome", "missed"]);

interface ProvenVehicle {
  readonly id: VehicleId;
  readonly history: readonly CommandHistoryEntry[];
  readonly allocations: readonly VehicleAllocation[];
}

/** The vehicles, one after another, each with its rows. */
function* provenVehicles(
  input: ProofInput,
  { vehicles, dispatches }: Contents,
): Generator<ProvenVehicle | null> {
  const { event } = input;
  for (const batch of inBatches(vehicles, BATCH, ({ seqs }) => seqs.length)) {
    const seqs = new Set(batch.flatMap((vehicle) => vehicle.seqs));
    const rows = yield* read(
      input,
      [...seqs].toSorted((a, b) => a - b),
    );
    const histories = Map.groupBy(commandHistory(event, rows, dispatches), ({ row }) => row.vehicle);
    for (const { id } of batch) {
      const history = histories.get(id) ?? [];
      const own = history.map(({ row }) => row);
      yield { id, history, allocations: vehicleAllocations(event, dispatches.get(id) ?? [], own) };
    }
  }
}

/** Period of the event and of the vehicles' windows, and number of vehicles by outcome. */
function* outcomeOf(input: ProofInput, contents: Contents): Generator<null, Outcome> {
  let period = contents.times;
  const ends = new Map<string, number>();
  for (const vehicle of provenVehicles(input, contents)) {
    if (vehicle === null) {
      yield null;
      continue;
    }
    period = spanOf(period, vehicle.allocations);
    const end = endOf(vehicle.history);
    ends.set(end, (ends.get(end) ?? 0) + 1);
  }
  return { period, ends };
}

interface Outcome {
  readonly period: Window | null;
  readonly ends: ReadonlyMap<string, number>;
}

const heading = ({ event, site, now }: ProofInput, period: Window | null): readonly Fact[] => [
  fact("proof", "format", {
    value: 1,
    words:
      "setpointd proof. Moments are UTC. Each line's print is SHA-256 over the print before it and the line",
  }),
  fact("proof", "event", { words: event }),
  fact("proof", "of site", { words: site.id }),
  fact("proof", "time zone", { words: site.timezone }),
  fact("proof", "made", { from: iso(now) }),
  ...(period === null ? [] : [fact("proof", "period", { from: iso(period.from), until: iso(period.until) })]),
];

/** Number of vehicles by outcome. */
const summary = (vehicles: number, ends: Outcome["ends"]): readonly Fact[] => [
  fact("summary", "vehicles", { value: vehicles }),
  ...[...ends]
    .toSorted(([a], [b]) => a.localeCompare(b, "en"))
    .map(([end, value]) => fact("summary", end, { value, unit: "vehicles" })),
];

function* vehicleFacts(
  input: ProofInput,
  { id, history, allocations }: ProvenVehicle,
  outages: OutagesByCharger,
): Generator<Fact | null> {
  const { now, expansion, context } = input;
  const ours = expansion.vehicles.get(id);
  yield fact("vehicle", "name", { vehicle: id, words: ours?.name ?? "not configured any more" });
  yield* allocationFacts(id, allocations);
  yield* historyFacts(history);
  yield fact("vehicle", "end", { vehicle: id, words: endOf(history) });
  const window = spanOf(null, allocations);
  if (window === null) return;
  input.request(id, window);
  yield null;
  const { readings, leftOut } = input.evidence();
  yield* measuredFacts({ vehicle: id, readings, planned: [], outages: [] }, window, now, context);
  if (leftOut > 0)
    yield fact("vehicle", "readings left out", {
      vehicle: id,
      value: leftOut,
      unit: "messages",
      words: "stored readings that another program changed: the figures above are without them",
    });
  const chargers = new Set([ours?.charger ?? null, ...history.map(({ row }) => row.charger)]);
  yield* outageFacts(outages, id, chargers, window, now);
}

/** Rows about the daemon, the chargers and people in that time. They may explain a gap or an end. */
const siteFacts = (rows: readonly RecordRow[]): readonly Fact[] =>
  rows
    .filter(({ event }) => event === null)
    .map(({ kind, charger, at, words, seq }) => fact("site", kind, { charger, from: iso(at), words, seq }));

/** The span and these windows in one span. Null: none. */
const spanOf = (span: Window | null, windows: readonly Window[]): Window | null =>
  windows.reduce<Window | null>(
    (sofar, { from, until }) =>
      sofar === null
        ? { from, until }
        : { from: earlier(sofar.from, from), until: later(sofar.until, until) },
    span,
  );
