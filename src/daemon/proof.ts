import type { Config } from "../config/schema.ts";
import { expand } from "../control/schedule/expand.ts";
import { type KnownEvent, overSince } from "../domain/event.ts";
import type { Reading } from "../domain/reading.ts";
import { eventId, type Instant, instant, type VehicleId, type Window } from "../domain/units.ts";
import type { Store } from "../domain/store.ts";
import { runToEnd, type ResumableTask, runCooperatively } from "../platform/cooperative.ts";
import { siteCalendar } from "../platform/text.ts";
import { type ProofInput, proofFacts } from "../proof/compose.ts";
import { sealed, type Format, spelled } from "../proof/file.ts";
import { comparableDays, type FillContext } from "../reporting/evidence.ts";
import { withMargins } from "../reporting/report.ts";

/** Sources of a proof, for the daemon and for a verb on the stored state. */
export interface ProofSources {
  readonly config: Config;
  readonly store: Store;
  readonly siteKey: Buffer;
  readonly now: () => Instant;
  /** The stored event. Null: not stored any more. */
  readonly known: KnownEvent | null;
}

/** Text of a proof, or the reason why there is none. */
export type Proven =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly reason: string };

/** Composes without a pause, for a verb. */
export const proofNow = (event: string, format: Format, sources: ProofSources): Proven =>
  runToEnd(proving(event, format, sources));

/** Composes in steps, for the daemon, whose event loop must run in between. */
export const proofGently = (
  event: string,
  format: Format,
  sources: ProofSources & { readonly monotonic: () => number },
): Promise<Proven> => runCooperatively(proving(event, format, sources), sources.monotonic);

const refused = (reason: string): Proven => ({ ok: false, reason });

/** The record as it is now, then the readings vehicle by vehicle, then all of it line by line. */
function* proving(id: string, format: Format, sources: ProofSources): ResumableTask<Proven> {
  const { config, store, siteKey, now, known } = sources;
  const event = eventId(id);
  const vehicles = new Map(config.vehicles.map((vehicle) => [vehicle.id, vehicle]));
  const expansion = { siteKey, vehicles, settings: config.control };
  const windows = Map.groupBy(known === null ? [] : expand(known, expansion), ({ vehicle }) => vehicle);
  const record = yield* store.eventRows(event, known === null ? instant(0) : overSince(known), windows);
  if (!record.ok)
    return refused(
      `the record is broken at row ${record.seq}, so nothing can be proven from it: audit verify tells more`,
    );
  const { rows, checkpoint } = record;
  if (rows.length === 0 && known === null) {
    const pruned = checkpoint === null ? "" : "; the oldest rows of the record are no longer kept";
    return refused(`nothing is known of an event ${event}${pruned}`);
  }
  const chargers = new Map(config.chargers.map((charger) => [charger.id, charger]));
  const context: FillContext = {
    settings: config.report,
    chargers,
    vehicles,
    calendar: siteCalendar(config.site.timezone),
  };
  const leftOut = new Map<VehicleId, number>();
  const input: ProofInput = {
    event,
    site: config.site,
    now: now(),
    known,
    record: { rows, checkpoint, head: store.head() },
    expansion,
    context,
    readings: (vehicle, window) =>
      readingsOf(vehicle, window, sources, context, () =>
        leftOut.set(vehicle, (leftOut.get(vehicle) ?? 0) + 1),
      ),
    leftOut: (vehicle) => leftOut.get(vehicle) ?? 0,
    reports: store.reports({ event, limit: MOST_REPORTS }).map((record) => ({
      record,
      body: store.report(record.name)?.body ?? null,
    })),
  };
  const lines: string[] = [];
  for (const line of spelled(sealed(proofFacts(input), siteKey, store.proofKey), format)) {
    lines.push(line);
    yield;
  }
  return { ok: true, text: lines.join("\n") };
}

/** Cap on the reports of one event. */
const MOST_REPORTS = 10_000;

/** Readings of the chargers where the vehicle was, and of its own charger. */
function readingsOf(
  vehicle: VehicleId,
  window: Window,
  { store }: ProofSources,
  { calendar, settings, vehicles }: FillContext,
  onForeign: () => void,
): readonly Reading[] {
  const home = vehicles.get(vehicle)?.charger ?? null;
  return withMargins([window, ...comparableDays(window, calendar)], settings.maxGap).flatMap(
    ({ from, until }) => {
      const seats = store.seats(vehicle, from, until);
      return store.readings(new Set(home === null ? seats : [...seats, home]), from, until, onForeign);
    },
  );
}
