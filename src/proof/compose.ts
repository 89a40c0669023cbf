import { type Dispatch, expand, type ExpandContext } from "../control/schedule/expand.ts";
import { targeting } from "../control/schedule/targeting.ts";
import type { RecordRow } from "../domain/audit.ts";
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
import type { FillContext } from "../reporting/evidence.ts";
import { type Fact, fact } from "./file.ts";
import {
  askedFacts,
  costFacts,
  observeFacts,
  type Outage,
  outageFacts,
  outagesIn,
  type EventRecord,
  recordFacts,
  type KeptReport,
  reportFacts,
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
  readonly reports: readonly KeptReport[];
}

/** Stored readings of one vehicle. */
export interface StoredEvidence {
  /** The chargers that the vehicle was on, around its window and that of comparable days. */
  readonly readings: readonly Reading[];
  /** Number of stored messages that are left out because another program changed them. */
  readonly leftOut: number;
}

/**
 * Proof of one event, fact by fact. A null is no fact: there the caller reads what was requested. Readings are read
 * vehicle by vehicle, as those of a whole fleet do not fit into memory.
 */
export function* proofFacts(input: ProofInput): Generator<Fact | null> {
  const { record, expansion } = input;
  const vehicles = vehiclesOf(input);
  yield* heading(input, vehicles);
  yield* askedFacts(record.rows, expansion.settings.powerUnit);
  yield* summary(vehicles);
  const outages = outagesIn(record.rows);
  for (const vehicle of vehicles) yield* vehicleFacts(input, vehicle, outages);
  yield* costFacts(input.event, record.rows);
  yield* observeFacts(record.rows);
  yield* siteFacts(record.rows);
  yield* reportFacts(input.reports, record.rows);
  yield* recordFacts(record);
}

interface ProvenVehicle {
  readonly id: VehicleId;
  readonly history: readonly CommandHistoryEntry[];
  readonly allocations: readonly VehicleAllocation[];
}

/** Vehicles that the event targets, and those with a command because of it, in order of their ids. */
function vehiclesOf({ event, known, record, expansion }: ProofInput): readonly ProvenVehicle[] {
  const dispatches = known === null ? [] : expand(known, expansion);
  const byVehicle = Map.groupBy<VehicleId, Dispatch>(dispatches, ({ vehicle }) => vehicle);
  const histories = Map.groupBy<VehicleId | null, CommandHistoryEntry>(
    commandHistory(event, record.rows, byVehicle),
    ({ row }) => row.vehicle,
  );
  const targeted = known?.kind === "live" ? targeting(known.revision.event, expansion).vehicles : [];
  return [...new Set([...targeted, ...byVehicle.keys(), ...histories.keys()])]
    .filter((id) => id !== null)
    .toSorted()
    .map((id) => {
      const history = histories.get(id) ?? [];
      const rows = history.map(({ row }) => row);
      return { id, history, allocations: vehicleAllocations(event, byVehicle.get(id) ?? [], rows) };
    });
}

function heading(
  { event, site, now, record }: ProofInput,
  vehicles: readonly ProvenVehicle[],
): readonly Fact[] {
  const period = spanOf([
    ...record.rows.filter((row) => row.event === event).map(({ at }) => ({ from: at, until: at })),
    ...vehicles.flatMap(({ allocations }) => allocations),
  ]);
  return [
    fact("proof", "format", {
      value: 1,
      words:
        "setpointd proof. Moments are UTC. Each line's print is SHA-256 over the print before it and the line",
    }),
    fact("proof", "event", { words: event }),
    fact("proof", "of site", { words: site.id }),
    fact("proof", "time zone", { words: site.timezone }),
    fact("proof", "made", { from: iso(now) }),
    ...(period === null
      ? []
      : [fact("proof", "period", { from: iso(period.from), until: iso(period.until) })]),
  ];
}

/** Number of vehicles by outcome. */
function* summary(vehicles: readonly ProvenVehicle[]): Generator<Fact> {
  yield fact("summary", "vehicles", { value: vehicles.length });
  const ends = Map.groupBy(vehicles, ({ history }) => endOf(history));
  for (const [end, those] of [...ends].toSorted(([a], [b]) => a.localeCompare(b, "en")))
    yield fact("summary", end, { value: those.length, unit: "vehicles" });
}

function* vehicleFacts(
  input: ProofInput,
  { id, history, allocations }: ProvenVehicle,
  outages: readonly Outage[],
): Generator<Fact | null> {
  const { now, expansion, context } = input;
  const ours = expansion.vehicles.get(id);
  yield fact("vehicle", "name", { vehicle: id, words: ours?.name ?? "not configured any more" });
  yield* allocationFacts(id, allocations);
  yield* historyFacts(history);
  yield fact("vehicle", "end", { vehicle: id, words: endOf(history) });
  const window = spanOf(allocations);
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

/** Span of several windows. Null: no window. */
const spanOf = (windows: readonly Window[]): Window | null =>
  windows.reduce<Window | null>(
    (span, { from, until }) =>
      span === null ? { from, until } : { from: earlier(span.from, from), until: later(span.until, until) },
    null,
  );
