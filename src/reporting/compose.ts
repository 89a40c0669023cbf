import { stretchesOf } from "../control/schedule/plan.ts";
import type { ControlState } from "../control/state.ts";
import type { Reading } from "../domain/reading.ts";
import type { EventId, Instant, Millis, VehicleId, Window } from "../domain/units.ts";
import { runPausing, yieldToEventLoop } from "../platform/cooperative.ts";
import { absences, RecordedOutages } from "./cause.ts";
import type { Commanded, FillContext, Subject } from "./evidence.ts";
import type { Upcoming } from "./obligations.ts";
import type { ReportPorts } from "./ports.ts";
import {
  composeReport,
  draftOf,
  fillVehicle,
  type Report,
  spanOf,
  evidenceWindows,
  piecesOf,
  reportedVehicles,
} from "./report.ts";
import type { ReportSettings } from "./settings.ts";
import { counted } from "../platform/text.ts";

type Evident = Pick<
  ReportPorts,
  "monotonic" | "calendar" | "readings" | "seats" | "record" | "wallClock" | "now"
>;

/** A filled report and its summary, for example `3 vehicles, 4.2 kWh`. */
export interface Composed {
  readonly report: Report;
  readonly summary: string;
}

/** Fills one report from what is stored, a few vehicles at a time. */
export async function compose(
  state: ControlState,
  { window, revision: { event } }: Upcoming,
  settings: ReportSettings,
  ports: Evident,
): Promise<Composed> {
  const pause = yieldToEventLoop(ports.monotonic);
  const { chargers, vehicles } = state;
  const context: FillContext = { settings, chargers, vehicles, calendar: ports.calendar };
  const span = spanOf(window.intervals);
  const times = evidenceWindows(window, ports.calendar, settings.maxGap);
  const recorded = await recordedOutages(event.id, span.until, ports, pause);
  const isAhead = window.basis === "forecast" || window.wanted.method === "forecast";
  const targeted = reportedVehicles(event, state);
  const draft = draftOf(window);
  for (const vehicle of targeted) {
    if (draft.isFull()) break;
    const planned = isAhead ? plannedFor(state, vehicle, ports) : [];
    const covered = { span, times, maxGap: settings.maxGap, isPast: window.basis === "history" };
    const subject = await subjectOf(state, vehicle, ports, covered, pause);
    const outages = [...subject.outages, ...recorded.of(vehicle)];
    draft.add(await runPausing(fillVehicle(window, { ...subject, planned, outages }, context), pause));
    await pause();
  }
  const report = composeReport(window, event, draft, targeted.length);
  return { report, summary: summaryOf(report, targeted.length) };
}

/** The time that is reported on. */
interface Covered {
  readonly span: Window;
  /** Windows whose readings are evidence. */
  readonly times: readonly Window[];
  readonly maxGap: Millis;
  /** False: there is no gap to explain. */
  readonly isPast: boolean;
}

async function subjectOf(
  state: ControlState,
  vehicle: VehicleId,
  ports: Evident,
  { span, times, maxGap, isPast }: Covered,
  pause: () => Promise<void>,
): Promise<Omit<Subject, "planned">> {
  const known = state.vehicles.get(vehicle);
  if (known === undefined)
    return { vehicle, readings: [], outages: [{ cause: "vehicle not known here", ...span }] };
  const homes = [known.charger, state.occupancy.where(vehicle)].filter((charger) => charger !== null);
  const readings: Reading[] = [];
  for (const time of times) {
    const chargers = new Set([...homes, ...(await ports.seats(vehicle, time.from, time.until))]);
    for (const { from, until } of piecesOf(time, ports.now())) {
      for (const reading of await ports.readings(chargers, from, until)) readings.push(reading);
      await pause();
    }
  }
  const speaks = homes.some((charger) => state.presence.of(charger).telemetry !== null);
  if (!isPast) return { vehicle, readings, outages: [] };
  const away: Subject["outages"] =
    homes.length === 0 && readings.length === 0
      ? [{ cause: "vehicle absent", ...span }]
      : await runPausing(absences(vehicle, readings, span, maxGap, speaks), pause);
  return { vehicle, readings, outages: away };
}

/** Planned setpoints of a vehicle at its present charger, if nothing changes. */
function plannedFor(state: ControlState, vehicle: VehicleId, { wallClock }: Evident): readonly Commanded[] {
  const known = state.vehicles.get(vehicle);
  const where = state.occupancy.where(vehicle) ?? known?.charger ?? null;
  const charger = where === null ? undefined : state.chargers.get(where);
  if (known === undefined || charger === undefined) return [];
  const dispatches = state.agenda.of(vehicle);
  return stretchesOf(charger, known, dispatches, state.expansion, wallClock, state.holds).map(
    ({ from, until, desired }): Commanded => ({ from, until, value: desired, charger: charger.id }),
  );
}

/** Reads the record on an event up to a moment, page by page. */
async function recordedOutages(
  event: EventId,
  until: Instant,
  ports: Evident,
  pause: () => Promise<void>,
): Promise<RecordedOutages> {
  const outages = new RecordedOutages();
  for (let after = 0; ;) {
    const rows = await ports.record(event, after);
    for (const row of rows) if (row.at < until) outages.take(row);
    const last = rows.at(-1);
    if (last === undefined) return outages;
    after = last.seq;
    await pause();
  }
}

function summaryOf({ resources }: Report, vehicles: number): string {
  const energies = resources.flatMap(({ snapshot }) => snapshot.energy ?? []);
  const energy = energies.length === 0 ? "" : `, ${rounded(energies.reduce((a, b) => a + b))} kWh`;
  return `${counted(vehicles, "vehicle")}${energy}`;
}

const rounded = (value: number): number => Math.round(value * 1000) / 1000;
