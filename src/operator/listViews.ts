import { setImmediate } from "node:timers/promises";

import type { ControlState } from "../control/state.ts";
import type { Json } from "../domain/audit.ts";
import type { Charger } from "../domain/charger.ts";
import { type PriceQuery, serializePrices, type SerializedPrice, type PriceStand } from "../domain/prices.ts";
import type { Reading } from "../domain/reading.ts";
import { obligationKey, type ReportRecord } from "../domain/report.ts";
import { viewOf } from "../domain/setpoint.ts";
import type { Store } from "../domain/store.ts";
import { type Instant, instant, iso, isoOrNull } from "../domain/units.ts";
import type { PriceBoard } from "../prices/board.ts";
import type { ReportSchedule } from "../reporting/obligations.ts";
import { reportName } from "../reporting/plan.ts";
import { spanOf } from "../reporting/report.ts";
import { type Answer, invalid, momentIn } from "./answer.ts";

/** Price series as `/api/v1/prices`, the control socket and `setpointd prices --json` show it. */
export interface PriceSeriesView extends PriceQuery {
  /** The region, and for a forecast `/forecast` behind it. */
  readonly id: string;
  /** ISO. Null: never. */
  readonly fetchedAt: string | null;
  /** Outcome of the last request since the start. Null: none yet. */
  readonly outcome: string | null;
  readonly reason: string | null;
  /** Oddities in the answer that the prices are from. */
  readonly doubts: readonly string[];
  readonly prices: readonly SerializedPrice[];
  /** Beginning of that answer. */
  readonly raw: string | null;
  readonly [member: string]: Json;
}

/** All configured series, each with the outcome of its last request. */
export const pricesView = (board: PriceBoard): readonly PriceSeriesView[] =>
  [...board.stands.values()].map(({ region, kind, series, outcome, reason }: PriceStand) => ({
    id: kind === "actual" ? region : `${region}/${kind}`,
    region,
    kind,
    fetchedAt: series === null ? null : iso(series.fetchedAt),
    outcome,
    reason,
    doubts: series?.doubts ?? [],
    prices: series === null ? [] : serializePrices(series.prices),
    raw: series?.raw ?? null,
  }));

/** Seconds until the end of the known spot prices, by region. */
export const priceHorizons = (board: PriceBoard, now: Instant): Readonly<Record<string, number>> =>
  Object.fromEntries(
    [...board.stands.values()].flatMap(({ region, kind, series }) => {
      const last = kind === "actual" ? series?.prices.at(-1) : undefined;
      return last === undefined ? [] : [[region, (last.end - now) / 1000]];
    }),
  );

/** Report as `/api/v1/reports`, the control socket and `setpointd reports --json` show it; times are ISO. */
export interface ReportRow {
  /** `<eventID>/<descriptor#>/<k>`. Without the last part where a descriptor ended without a report. */
  readonly name: string;
  readonly event: string;
  readonly descriptor: number;
  /** Requested payload type. Null: no longer known. */
  readonly payloadType: string | null;
  /** `planned`: not due yet. `flagged`: not delivered, for `reason`. */
  readonly state: "planned" | "waiting" | "sent" | "flagged";
  readonly from: string | null;
  readonly until: string | null;
  /** Time of composition. Null: it is composed, or never will be. */
  readonly due: string | null;
  readonly summary: string | null;
  readonly flags: readonly string[];
  readonly composedAt: string | null;
  readonly sentAt: string | null;
  readonly nextTry: string | null;
  readonly attempts: number;
  readonly status: number | null;
  readonly reason: string | null;
  readonly receipt: string | null;
  readonly [member: string]: Json;
}

const NOTHING_YET = {
  from: null,
  until: null,
  due: null,
  summary: null,
  flags: [],
  composedAt: null,
  sentAt: null,
  nextTry: null,
  attempts: 0,
  status: null,
  reason: null,
  receipt: null,
} as const;

/** Next report of each descriptor, then descriptors that ended without one, then composed reports, newest first. */
export const reportsView = (
  schedule: ReportSchedule,
  records: readonly ReportRecord[],
): readonly ReportRow[] => [...plannedRows(schedule), ...flaggedRows(schedule), ...records.map(reportRow)];

/** Reason why there is no body to show or send, as one sentence. `moment` formats a time in the site's zone. */
export function bodiless(
  { name, state, due, reason, composedAt }: ReportRow,
  moment: (iso: string) => string,
): string {
  if (composedAt !== null) return `the body of report ${name} is no longer stored`;
  if (state === "planned" && due !== null)
    return `report ${name} is planned: it is composed at ${moment(due)}; there is no body yet`;
  return `${name} has no report: ${reason ?? "the reason is not known"}`;
}

/** Row of a composed report. */
export function reportRow(record: ReportRecord): ReportRow {
  const { span, composedAt, sentAt, nextTry, k: _, since: __, ...rest } = record;
  return {
    ...rest,
    from: iso(span.from),
    until: iso(span.until),
    due: null,
    composedAt: iso(composedAt),
    sentAt: isoOrNull(sentAt),
    nextTry: isoOrNull(nextTry),
  };
}

const plannedRows = ({ upcoming }: ReportSchedule): readonly ReportRow[] =>
  [...upcoming.values()]
    .toSorted((a, b) => b.window.due - a.window.due)
    .map(({ window }) => {
      const { from, until } = spanOf(window.intervals);
      return {
        ...NOTHING_YET,
        name: reportName(window),
        event: window.event,
        descriptor: window.descriptor,
        state: "planned",
        payloadType: window.wanted.payloadType,
        from: iso(from),
        until: iso(until),
        due: iso(window.due),
        flags: window.flags,
      };
    });

const flaggedRows = ({ obligations }: ReportSchedule): readonly ReportRow[] =>
  [...obligations.values()]
    .filter(({ state }) => state === "flagged")
    .toSorted((a, b) => b.receivedAt - a.receivedAt)
    .map((obligation) => ({
      ...NOTHING_YET,
      name: obligationKey(obligation),
      event: obligation.event,
      descriptor: obligation.descriptor,
      state: "flagged",
      payloadType: null,
      reason: obligation.reason,
    }));

/** Request for the readings of a charger or a vehicle. */
export interface ReadingsQuery {
  readonly charger?: string;
  readonly vehicle?: string;
  /** ISO. Absent: a day before `until`. */
  readonly from?: string;
  /** ISO. Absent: now. */
  readonly until?: string;
}

const DAY = 86_400_000;
/** Longest span of one request, in ms. */
const LONGEST = 3 * DAY;
/** Points of each kind. More cannot be distinguished in a chart. */
const MOST_POINTS = 1440;

const KINDS = ["current", "power", "soc", "limit"] as const;

/** Readings for a chart: each kind as [ms since 1970, value], and the setpoints with their level. */
export async function readingsView(
  state: ControlState,
  store: Pick<Store, "readings" | "seats">,
  query: ReadingsQuery,
  now: Instant,
): Promise<Answer<Json>> {
  const span = readingSpan(query, now);
  if ("ok" in span) return span;
  const { from, until } = span;
  const charger = [...state.chargers.keys()].find((id) => id === query.charger);
  const vehicle = [...state.vehicles.keys()].find((id) => id === query.vehicle);
  if ((charger === undefined) === (vehicle === undefined))
    return invalid({
      path: query.vehicle === undefined ? "charger" : "vehicle",
      found: query.vehicle ?? query.charger ?? null,
      expected: "either the id of a charger or the id of a vehicle",
    });
  const chargers =
    vehicle === undefined
      ? [charger].filter((id) => id !== undefined)
      : await store.seats(vehicle, from, until);
  const all = (await store.readings(chargers, from, until))
    .filter((reading) => reading.quality !== "implausible")
    .filter((reading) => vehicle === undefined || reading.vehicle === vehicle)
    .toSorted((a, b) => a.at - b.at);
  const width = (until - from) / MOST_POINTS;
  return {
    ok: true,
    value: {
      charger: charger ?? null,
      vehicle: vehicle ?? null,
      from: iso(from),
      until: iso(until),
      ...Object.fromEntries(KINDS.map((kind) => [kind, points(all, kind, width)])),
      setpoints: all.flatMap((reading) =>
        reading.kind === "setpoint"
          ? [{ at: iso(reading.at), level: viewOf(reading.value), event: reading.event }]
          : [],
      ),
    },
  };
}

function readingSpan(query: ReadingsQuery, now: Instant): Answer<Json> | { from: Instant; until: Instant } {
  const wrong = (path: "from" | "until"): Answer<Json> =>
    invalid({ path, found: query[path] ?? null, expected: "a moment, e.g. 2026-11-21T05:30:00Z" });
  const until = query.until === undefined ? now : momentIn(query.until);
  if (until === null) return wrong("until");
  const from = query.from === undefined ? instant(until - DAY) : momentIn(query.from);
  if (from === null) return wrong("from");
  if (from < until && until - from <= LONGEST) return { from, until };
  return invalid({
    path: "from",
    found: iso(from),
    expected: `before until, and at most ${LONGEST / DAY} days before it`,
  });
}

/** The largest value of each stretch of `width` ms, so that no peak is lost. */
function points(all: readonly Reading[], kind: (typeof KINDS)[number], width: number): Json {
  const kept: [number, number][] = [];
  for (const reading of all) {
    if (reading.kind !== kind) continue;
    const last = kept.at(-1);
    if (last === undefined || reading.at - last[0] >= width) kept.push([reading.at, reading.value]);
    else last[1] = Math.max(last[1], reading.value);
  }
  return kept;
}

const SAMPLES = 120;
/** Ms after which a reading no longer counts: chargers that are online have theirs repeated more often. */
const OLD = 10 * 60_000;

/** Power of the site: measured, and the most that the setpoints of then allowed. Null: nothing is on record. */
export async function sitePowerView(
  { chargers }: Pick<ControlState, "chargers">,
  store: Pick<Store, "readings">,
  query: Pick<ReadingsQuery, "from" | "until">,
  now: Instant,
): Promise<Answer<Json>> {
  const span = readingSpan(query, now);
  if ("ok" in span) return span;
  const [{ from, until }, step] = [span, (span.until - span.from) / SAMPLES];
  const samples = Array.from({ length: SAMPLES + 1 }, (_, index): PowerSample => {
    return { at: instant(Math.round(from + index * step)), measuredW: null, atMostW: null };
  });
  for (const charger of chargers.values()) {
    // The disk is read without a break, and a request must not delay the chargers.
    await setImmediate();
    addPower(charger, await store.readings([charger.id], instant(from - OLD), until), samples);
  }
  const shown = samples.map((each) => ({ ...each, at: iso(each.at) }));
  return { ok: true, value: { from: iso(from), until: iso(until), samples: shown } };
}

interface PowerSample {
  readonly at: Instant;
  measuredW: number | null;
  atMostW: number | null;
}

function addPower(charger: Charger, readings: readonly Reading[], samples: readonly PowerSample[]): void {
  const perAmpere = charger.phases * charger.voltage;
  const most = charger.maxPower ?? (charger.maxCurrent ?? 0) * perAmpere;
  const kind = readings.some((reading) => reading.kind === "power") ? "power" : "current";
  const inOrder = readings.filter(({ quality }) => quality !== "implausible").toSorted((a, b) => a.at - b.at);
  for (const sample of samples) {
    const drawn = inOrder.findLast((reading) => reading.kind === kind && reading.at <= sample.at);
    if (drawn?.kind !== kind || sample.at - drawn.at > OLD) continue;
    const setpoint = inOrder.findLast(({ kind: found, at }) => found === "setpoint" && at <= sample.at);
    const level = setpoint?.kind === "setpoint" ? viewOf(setpoint.value) : {};
    const allowed = level.pause ? 0 : (level.powerW ?? (level.currentA ?? Infinity) * perAmpere);
    const watts = kind === "power" ? drawn.value : drawn.value * perAmpere;
    sample.measuredW = (sample.measuredW ?? 0) + watts;
    sample.atMostW = (sample.atMostW ?? 0) + Math.min(most, allowed);
  }
}
