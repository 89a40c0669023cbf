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

/** All that a proof of one event is made from. */
export interface ProofInput {
  readonly event: EventId;
  readonly site: { readonly id: string; readonly timezone: string };
  readonly now: Instant;
  /** Null: only the record knows the event any more. */
  readonly known: KnownEvent | null;
  readonly record: EventRecord;
  readonly expansion: ExpandContext;
  readonly context: FillContext;
  /** What the chargers that a vehicle was on said, around this window and the same one of comparable days. */
  readonly readings: (vehicle: VehicleId, window: Window) => readonly Reading[];
  /** Stored messages that these readings lack, as another program changed them; asked for after the readings. */
  readonly leftOut: (vehicle: VehicleId) => number;
  readonly reports: readonly KeptReport[];
}

/** The proof of one event, fact by fact: a vehicle's readings are asked for when its turn comes. */
export function* proofFacts(input: ProofInput): Generator<Fact> {
  const { record, expansion } = input;
  const vehicles = vehiclesOf(input);
  yield* heading(input, vehicles);
  yield* askedFacts(record.rows, expansion.settings.powerUnit);
  yield* summary(vehicles);
  const outages = outagesIn(record.rows);
  for (const vehicle of vehicles) yield* vehicleFacts(input, vehicle, outages);
  yield* siteFacts(record.rows);
  yield* reportFacts(input.reports, record.rows);
  yield* recordFacts(record);
}

interface ProvenVehicle {
  readonly id: VehicleId;
  readonly deeds: readonly CommandHistoryEntry[];
  readonly shares: readonly VehicleAllocation[];
}

/** Those that the event is aimed at, and those that ever did something because of it, by id. */
function vehiclesOf({ event, known, record, expansion }: ProofInput): readonly ProvenVehicle[] {
  const dispatches = known === null ? [] : expand(known, expansion);
  const byVehicle = Map.groupBy<VehicleId, Dispatch>(dispatches, ({ vehicle }) => vehicle);
  const deeds = Map.groupBy<VehicleId | null, CommandHistoryEntry>(
    commandHistory(event, record.rows, byVehicle),
    ({ row }) => row.vehicle,
  );
  const targeted = known?.kind === "live" ? targeting(known.revision.event, expansion).vehicles : [];
  return [...new Set([...targeted, ...byVehicle.keys(), ...deeds.keys()])]
    .filter((id) => id !== null)
    .toSorted()
    .map((id) => {
      const own = deeds.get(id) ?? [];
      const rows = own.map(({ row }) => row);
      return { id, deeds: own, shares: vehicleAllocations(event, byVehicle.get(id) ?? [], rows) };
    });
}

function heading(
  { event, site, now, record }: ProofInput,
  vehicles: readonly ProvenVehicle[],
): readonly Fact[] {
  const period = spanOf([
    ...record.rows.filter((row) => row.event === event).map(({ at }) => ({ from: at, until: at })),
    ...vehicles.flatMap(({ shares }) => shares),
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

/** How many vehicles ended how. */
function* summary(vehicles: readonly ProvenVehicle[]): Generator<Fact> {
  yield fact("summary", "vehicles", { value: vehicles.length });
  const ends = Map.groupBy(vehicles, ({ deeds }) => endOf(deeds));
  for (const [end, those] of [...ends].toSorted(([a], [b]) => a.localeCompare(b, "en")))
    yield fact("summary", end, { value: those.length, unit: "vehicles" });
}

function* vehicleFacts(
  input: ProofInput,
  { id, deeds, shares }: ProvenVehicle,
  outages: readonly Outage[],
): Generator<Fact> {
  const { now, expansion, context, readings } = input;
  const ours = expansion.vehicles.get(id);
  yield fact("vehicle", "name", { vehicle: id, words: ours?.name ?? "not configured any more" });
  yield* allocationFacts(id, shares);
  yield* historyFacts(deeds);
  yield fact("vehicle", "end", { vehicle: id, words: endOf(deeds) });
  const window = spanOf(shares);
  if (window === null) return;
  const subject = { vehicle: id, readings: readings(id, window), planned: [], outages: [] };
  yield* measuredFacts(subject, window, now, context);
  const leftOut = input.leftOut(id);
  if (leftOut > 0)
    yield fact("vehicle", "readings left out", {
      vehicle: id,
      value: leftOut,
      unit: "messages",
      words: "stored readings that another program changed: the figures above are without them",
    });
  const chargers = new Set([ours?.charger ?? null, ...deeds.map(({ row }) => row.charger)]);
  yield* outageFacts(outages, id, chargers, window, now);
}

/** What befell the daemon and the chargers meanwhile, and what people did: it may explain a gap, or an end. */
const siteFacts = (rows: readonly RecordRow[]): readonly Fact[] =>
  rows
    .filter(({ event }) => event === null)
    .map(({ kind, charger, at, words, seq }) => fact("site", kind, { charger, from: iso(at), words, seq }));

/** From the first to the last moment of several windows; null: there are none. */
const spanOf = (windows: readonly Window[]): Window | null =>
  windows.reduce<Window | null>(
    (span, { from, until }) =>
      span === null ? { from, until } : { from: earlier(span.from, from), until: later(span.until, until) },
    null,
  );
