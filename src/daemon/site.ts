import { getHeapStatistics } from "node:v8";

import type { Logger } from "pino";

import type { Config } from "../config/schema.ts";
import { recallWrites } from "../control/decide/pace.ts";
import { endOutagesOfLastRun } from "../control/observe/recordSilence.ts";
import { restoringState } from "../control/recovery.ts";
import { ControlState } from "../control/state.ts";
import { type AuditRow, auditRow, type Json } from "../domain/audit.ts";
import type { Change, StoredState } from "../domain/changes.ts";
import { isToBeFreed } from "../domain/command.ts";
import type { EventArchive } from "../domain/event.ts";
import type { Leadership } from "../domain/leadership.ts";
import type { OpenedState, Store } from "../domain/store.ts";
import { type EventId, type Instant, iso, type Millis } from "../domain/units.ts";
import { type WallClock, wallClock } from "../platform/clock.ts";
import { type ResumableTask, type RoomPart, runToEnd, SharedRoom } from "../platform/cooperative.ts";
import { type ReportSchedule, reportSchedule } from "../reporting/obligations.ts";
import { restoreSchedule } from "../reporting/reportSchedule.ts";
import { RetentionAlarms } from "../retention/rules.ts";
import { isAwaited, isPassing } from "../store/postgres/database.ts";
import type { Edges, Machine, SiteClock } from "./edges.ts";
import { outages } from "./partnerWatch.ts";

/** The part of the configuration that control, reporting and retention go by. */
export type SiteConfig = Pick<
  Config,
  "site" | "clock" | "control" | "chargers" | "vehicles" | "report" | "retention"
> & { readonly vtn: Pick<Config["vtn"], "pollEvery" | "staleAfter"> };

/** The stored state of a site, restored, with the clock that it goes by. */
export interface Site {
  readonly config: SiteConfig;
  readonly store: Store;
  readonly state: ControlState;
  readonly schedule: ReportSchedule;
  readonly clock: SiteClock;
  readonly now: () => Instant;
  /** Clock of the machine, believed or not. */
  readonly machineTime: () => Instant;
  /** Monotonic clock. */
  readonly monotonic: () => Millis;
  readonly random: () => number;
  /** A moment as people on site read it. */
  readonly wallClock: WallClock;
  readonly epoch: number;
  /** Null: no other process can lead the site. */
  readonly leadership: Leadership | null;
  /** For flows that must not end where the database is away. */
  readonly patiently: ReturnType<typeof patientReads>;
  readonly readAtStart: ReturnType<typeof readsAtStart>;
  readonly startedAt: Instant;
  readonly outages: ReturnType<typeof outages>;
  readonly retentionAlarms: RetentionAlarms;
  /** Events that another program edited in the store: their stored form may be stale. */
  readonly edited: readonly EventId[];
  /** Adds a row about the daemon itself to the record. */
  readonly note: (message: string, details?: Json) => void;
  /** Adds a row about the act of a person to the record. */
  readonly recordAct: (message: string, details: Json) => void;
  readonly log: Logger;
}

/**
 * Restores the state and records the start. Millions of dispatches take seconds: the lease is renewed between two steps,
 * and other sites of a fleet go on. `onClockDoubted`: the machine's clock has fallen behind the record.
 */
export function* openingSite(
  config: SiteConfig,
  opened: OpenedState,
  {
    now: machineTime,
    random,
    log,
    clock: clockFor,
    monotonic,
  }: Omit<Machine, "randomBytes"> & Pick<Edges, "clock">,
  {
    onCommitted,
    onClockDoubted,
    room,
  }: {
    readonly room: RoomPart;
    readonly onCommitted: (rows: readonly AuditRow[], tookMs: number) => void;
    readonly onClockDoubted: () => void;
  },
): ResumableTask<Site> {
  const { store, storedState, epoch, lastRun } = opened;
  const clock = clockFor(storedState.recordedAt, onClockDoubted);
  const { now } = clock;
  const note = (message: string, details: Json = null): void =>
    store.write([auditRow("daemon", now(), message, { facts: details })]);
  const localTime = wallClock(config.site.timezone, now);
  store.onCommitted = onCommitted;
  const { state, restoring } = controlOf(config, opened, now, localTime, room);
  const changes = yield* restoring;
  const schedule = storedSchedule(config, storedState);
  store.write(changes);
  recallWrites(state, lastRun.writes, now());
  // Before the row of the start, which would end the same outages once more.
  store.write(endOutagesOfLastRun(state, lastRun.openOutages(), monotonic(), now()));
  recordStart(config, opened, state, { now: now(), note, log });
  return {
    config,
    store,
    state,
    schedule,
    clock,
    now,
    machineTime,
    monotonic,
    random,
    wallClock: localTime,
    epoch,
    leadership: opened.leadership,
    patiently: patientReads(opened.leadership),
    readAtStart: readsAtStart(opened.leadership),
    startedAt: now(),
    outages: outages((changes) => store.write(changes), now, localTime),
    retentionAlarms: new RetentionAlarms(),
    edited: storedState.edited.map(({ id }) => id),
    note,
    recordAct: (message, details) => store.write([auditRow("operator", now(), message, { facts: details })]),
    log,
  };
}

/** Records the start, and names chargers that stay limited although they left the configuration. */
function recordStart(
  { site, control }: SiteConfig,
  { storedState, epoch, isRestored, leadership }: OpenedState,
  { chargers }: ControlState,
  { now, note, log }: { readonly now: Instant } & Pick<Site, "note" | "log">,
): void {
  const { aliveAt } = storedState;
  note(`setpointd started for site ${site.id}, mode ${control.mode}, epoch ${epoch}`, {
    epoch,
    ...(leadership === null ? {} : { process: leadership.view(now).process }),
    ...(aliveAt === null ? {} : { outage: "setpointd", since: iso(aliveAt), over: true }),
  });
  if (isRestored)
    note(
      "this state was put back from a copy: later commands to the chargers are not known, so each charger gets its level once more",
    );
  for (const record of storedState.commands) {
    const { charger } = record.command;
    if (!chargers.has(charger) && isToBeFreed(record))
      log.warn(
        { charger },
        "a charger left the configuration while it was limited: free it by hand, unless it is native and its lease is over",
      );
  }
}

/** Memory of one vehicle's share of an event, with its place in the list of targets. */
const BYTES_OF_DISPATCH = 140;
/** Heap for all else: the program, a list that is being read, and the young generation, which the limit includes. */
const BYTES_OF_PROGRAM = 100 * 2 ** 20;

/** Dispatches that fit in memory: a third of the heap beside the program. A tiny heap still takes some. */
export const mostDispatchesIn = (heap: number): number =>
  Math.floor(Math.max(heap - BYTES_OF_PROGRAM, heap / 8) / 3 / BYTES_OF_DISPATCH);

/** Room for dispatches in this process. */
export const roomForDispatches = (): SharedRoom =>
  new SharedRoom(mostDispatchesIn(getHeapStatistics().heap_size_limit));

/** Control, and the task that restores what is stored. Its result: events that could not be restored, with the reason. */
function controlOf(
  { chargers, vehicles, control: settings }: Pick<Config, "chargers" | "vehicles" | "control">,
  { store, storedState, siteKey, epoch, assertAll, leadership }: OpenedState,
  now: () => Instant,
  localTime: WallClock,
  room: RoomPart,
): { readonly state: ControlState; readonly restoring: ResumableTask<readonly Change[]> } {
  const state = new ControlState({
    chargers,
    vehicles,
    settings,
    siteKey,
    epoch,
    archive: patientArchive(store.archive, patientReads(leadership)),
    wallClock: localTime,
    assertAll,
    room,
    leads: () => leadership === null || leadership.state === "leading",
  });
  return { state, restoring: restoringState(state, storedState, now()) };
}

/** Control of a site while no daemon runs. Events that cannot be restored are left to the next start. */
export function offlineControl(
  config: Config,
  opened: OpenedState,
  { now }: Pick<Machine, "now">,
): ControlState {
  const localTime = wallClock(config.site.timezone, now);
  const { state, restoring } = controlOf(config, opened, now, localTime, roomForDispatches().part());
  runToEnd(restoring);
  return state;
}

/** Reports that are owed to the partner, as they are stored. */
export function storedSchedule({ report }: Pick<Config, "report">, stored: StoredState): ReportSchedule {
  const schedule = reportSchedule();
  restoreSchedule(schedule, stored, report.enabled);
  return schedule;
}

/** Interval of the tries to read from a database that is away, ms. */
const READ_AGAIN_MS = 250;

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

type Lead = Pick<Leadership, "state"> | null;
type Patiently = <T>(read: () => Promise<T>) => Promise<T>;

/** The lease was lost while the site was starting. */
export class LeadLost extends Error {}

/** Reads that wait for a database that is away. Without a database an error is that of the own disk. */
function patient(lead: Lead, waitsFor: typeof isPassing, onLost: () => Promise<never>): Patiently {
  if (lead === null) return (read) => read();
  return async (read) => {
    for (;;) {
      try {
        return await read();
      } catch (error) {
        if (lead.state === "lost") return await onLost();
        if (!waitsFor(error)) throw error;
        await sleep(READ_AGAIN_MS);
      }
    }
  };
}

/** For the flows of a site, whose errors end the process. After the loss of the lease they get no answer: they are ended. */
export const patientReads = (lead: Lead): Patiently =>
  patient(lead, isAwaited, () => new Promise<never>(() => {}));

/** For the start of a site. The loss of the lease ends it. */
export const readsAtStart = (lead: Lead): Patiently =>
  patient(lead, isPassing, () =>
    Promise.reject(new LeadLost("another process took the site during the start")),
  );

/** The stored events, for control. */
export const patientArchive = (archive: EventArchive, patiently: Patiently): EventArchive => ({
  whole: (ids) => patiently(() => archive.whole(ids)),
  summaries: (ids) => patiently(() => archive.summaries(ids)),
  wholeNow: (ids) => archive.whole(ids),
});
