import type { Config } from "../config/schema.ts";
import { expand } from "../control/schedule/expand.ts";
import { chainHash, type RecordRow } from "../domain/audit.ts";
import { type KnownEvent, overSince } from "../domain/event.ts";
import type { Reading } from "../domain/reading.ts";
import { eventId, hours, type Instant, instant, type VehicleId, type Window } from "../domain/units.ts";
import type { Store } from "../domain/store.ts";
import type { Proof } from "../operator/answer.ts";
import { inBatches, yieldToEventLoop } from "../platform/cooperative.ts";
import { siteCalendar } from "../platform/clock.ts";
import { type ProofInput, proofFacts, type StoredEvidence } from "../proof/compose.ts";
import { sealed, type Format, serialized } from "../proof/file.ts";
import type { KeptReport } from "../proof/sections.ts";
import { comparableDays, type FillContext } from "../reporting/evidence.ts";
import { piecesOf, withMargins } from "../reporting/report.ts";

/** Sources of a proof, for the daemon and for a verb on the stored state. */
export interface ProofSources {
  readonly config: Config;
  readonly store: Store;
  readonly siteKey: Buffer;
  readonly now: () => Instant;
  /** Monotonic clock, ms. */
  readonly monotonic: () => number;
  /** The stored event. Null: not stored any more. */
  readonly known: KnownEvent | null;
}

const refused = (reason: string): Proof => ({ ok: false, reason });

/**
 * The record as it is now, then the readings vehicle by vehicle, all of it line by line as it is read. Other work runs
 * in between: the proof of a fleet takes minutes.
 */
export async function prove(id: string, format: Format, sources: ProofSources): Promise<Proof> {
  const { config, store, siteKey, now, monotonic, known } = sources;
  const pause = yieldToEventLoop(monotonic);
  const event = eventId(id);
  const vehicles = new Map(config.vehicles.map((vehicle) => [vehicle.id, vehicle]));
  const expansion = { siteKey, vehicles, settings: config.control };
  const windows = Map.groupBy(known === null ? [] : expand(known, expansion), ({ vehicle }) => vehicle);
  const record = await store.eventRows(event, known === null ? instant(0) : overSince(known), windows);
  if (!record.ok)
    return refused(
      `the record is broken at row ${record.seq}, so nothing can be proven from it: audit verify tells more`,
    );
  const { seqs, checkpoint } = record;
  const head = store.head();
  if (seqs.length === 0 && known === null) {
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
  const reports: KeptReport[] = [];
  for (const report of await store.reports({ event, limit: MOST_REPORTS })) {
    reports.push({ record: report, body: (await store.report(report.name))?.body ?? null });
    await pause();
  }
  const requested: { vehicle: VehicleId; window: Window }[] = [];
  let evidence: StoredEvidence = { readings: [], leftOut: 0 };
  const wanted: (readonly number[])[] = [];
  let rows: readonly RecordRow[] = [];
  const input: ProofInput = {
    event,
    site: config.site,
    now: now(),
    known,
    record: { seqs, checkpoint, head },
    expansion,
    context,
    request: (vehicle, window) => requested.push({ vehicle, window }),
    evidence: () => evidence,
    requestRows: (some) => wanted.push(some),
    rows: () => rows,
    reports,
  };
  async function* pieces(): AsyncGenerator<string> {
    let piece = "";
    for (const line of serialized(sealed(proofFacts(input), siteKey, store.proofKey), format)) {
      if (line === null) {
        for (const { vehicle, window } of requested.splice(0))
          evidence = await readEvidence(vehicle, window, sources, context, pause);
        for (const some of wanted.splice(0)) rows = await readRows(some, store, pause);
      }
      // The last line is empty.
      else if (line !== "") piece += `${line}\n`;
      if (piece.length >= PIECE) {
        yield piece;
        piece = "";
      }
      await pause();
    }
    if (piece !== "") yield piece;
  }
  return { ok: true, pieces: pieces() };
}

/** Characters after which lines are passed on. */
const PIECE = 16_384;

/** Cap on the reports of one event. */
const MOST_REPORTS = 10_000;

/** Rows of the record that were whole when the proof began. Rejects once they are not: what is made of them is no proof. */
async function readRows(
  seqs: readonly number[],
  store: Store,
  pause: () => Promise<void>,
): Promise<readonly RecordRow[]> {
  const rows: RecordRow[] = [];
  for (const some of inBatches(seqs, ROWS, () => 1)) {
    for (const row of await store.recordRows(some)) rows.push(row);
    await pause();
  }
  const isWhole = rows.every(({ previous, text, hash }) => chainHash(previous, text) === hash);
  if (rows.length < seqs.length || !isWhole)
    throw new Error("rows of the record were pruned or changed while the proof was made");
  return rows;
}

/** Rows that are read without a pause. */
const ROWS = 500;

/** Readings of the chargers where the vehicle was, and of its own charger. */
async function readEvidence(
  vehicle: VehicleId,
  window: Window,
  { store, now }: ProofSources,
  { calendar, settings, vehicles }: FillContext,
  pause: () => Promise<void>,
): Promise<StoredEvidence> {
  const home = vehicles.get(vehicle)?.charger ?? null;
  const times = withMargins([window, ...comparableDays(window, calendar)], settings.maxGap);
  const seats = await store.seatsIn(vehicle, times);
  const asked = times.flatMap((time, index) => {
    const there = seats[index] ?? [];
    const chargers = [...new Set(home === null ? there : [...there, home])];
    return [...piecesOf(time, now())].map((piece) => ({ ...piece, chargers }));
  });
  const readings: Reading[] = [];
  let leftOut = 0;
  const onForeign = (): void => {
    leftOut += 1;
  };
  for (const some of inBatches(asked, TOGETHER, ({ from, until }) => until - from))
    for (const reading of await store.readingsIn(some, pause, onForeign)) readings.push(reading);
  return { readings, leftOut };
}

/** Time whose readings are read together. A charger stores about 24,000 messages in it. */
const TOGETHER = hours(72);
