import type { Logger } from "pino";

import type { Alarm } from "../../domain/alarm.ts";
import type { AuditEntry, AuditRow, RecordRow } from "../../domain/audit.ts";
import {
  type Change,
  type Scope,
  scopeOf,
  type StoredScope,
  type StoredState,
} from "../../domain/changes.ts";
import type { PriceSeries } from "../../domain/prices.ts";
import type { Reading } from "../../domain/reading.ts";
import type { ReportRecord } from "../../domain/report.ts";
import type {
  OldRows,
  OldRowsQuery,
  AuditQuery,
  EventRows,
  OnForeign,
  Quarantined,
  ReportQuery,
  StoredDepartures,
  Verified,
} from "../../domain/store.ts";
import type { ChargerId, EventId, Instant, VehicleId, Windows } from "../../domain/units.ts";
import { runToEnd, type ResumableTask } from "../../platform/cooperative.ts";
import { isFault } from "../fault.ts";
import {
  queryAudit,
  queryOldReports,
  queryOldRows,
  queryAlarms,
  queryDepartures,
  queryPrices,
  queryQuarantine,
  queryWrites,
} from "./auditRows.ts";
import type { Disk } from "./disk.ts";
import { archiveOf, queryEventRows, queryHashes, queryOpenOutages, queryRecordRows } from "./eventRecord.ts";
import { knownSince, loadOwed, loadScope, restoredIn } from "./loadState.ts";
import type { ReadingBuffer } from "./readingBuffer.ts";
import { queryReport, queryReports } from "./reports.ts";
import { verifyingState } from "./verify.ts";

/**
 * Reads of committed data, without waiting: SQLite reads in this thread. Each method throws if the disk cannot be read.
 * `Store` has what they return.
 */
export class SqliteReads {
  readonly events: ReturnType<typeof archiveOf>;
  readonly #disk: Disk;
  readonly #siteKey: Buffer;
  readonly #readings: ReadingBuffer;

  constructor(disk: Disk, siteKey: Buffer, readings: ReadingBuffer, log: Logger) {
    this.events = archiveOf(disk, siteKey, log);
    this.#disk = disk;
    this.#siteKey = siteKey;
    this.#readings = readings;
  }

  get #database() {
    return this.#disk.connection.database;
  }

  stored(scope: Scope): StoredScope {
    const stored = loadScope(this.#database, { siteKey: this.#siteKey, isSigned: true }, scope);
    if (isFault(stored)) throw new Error(stored.reason);
    return { ...stored, commands: knownSince(stored.commands, restoredIn(this.#disk.connection)) };
  }

  /** The stored state of the scope of these changes. Null: it cannot be read. */
  storedOf(changes: readonly Change[]): StoredScope | null {
    try {
      return this.stored(scopeOf(changes));
    } catch {
      return null;
    }
  }

  owed(): Pick<StoredState, "duties" | "outbox"> {
    const owed = loadOwed(this.#database, { siteKey: this.#siteKey, isSigned: true });
    if (isFault(owed)) throw new Error(owed.reason);
    return owed;
  }

  get isReadable(): boolean {
    try {
      this.audit({ limit: 1 });
      return true;
    } catch {
      return false;
    }
  }

  audit(query: AuditQuery): readonly AuditRow[] {
    return queryAudit(this.#database, query);
  }

  writes(charger: ChargerId, since: Instant): readonly Instant[] {
    return queryWrites(this.#database, charger, since);
  }

  /** Millions of rows take seconds, so the task yields after each step. */
  verifying(): ResumableTask<Verified> {
    const disk = this.#disk;
    return verifyingState(
      () => disk.connection,
      this.#siteKey,
      () => disk.storedEpoch,
    );
  }

  verify = (): Verified => runToEnd(this.verifying());

  eventRows(event: EventId, until: Instant, windows: Windows = new Map()): ResumableTask<EventRows> {
    return queryEventRows(this.#database, event, until, windows);
  }

  recordRows(seqs: readonly number[]): readonly RecordRow[] {
    return queryRecordRows(this.#database, seqs);
  }

  openOutages(): readonly AuditEntry[] {
    return queryOpenOutages(this.#database);
  }

  hashes(seqs: readonly number[]): ReadonlyMap<number, string> {
    return queryHashes(this.#database, seqs);
  }

  oldRows(query: OldRowsQuery): OldRows | null {
    return queryOldRows(this.#database, query);
  }

  oldReports(before: Instant, most: number): readonly string[] {
    return queryOldReports(this.#database, before, most);
  }

  /** Readings that wait for their commit included. */
  readings(
    chargers: Iterable<ChargerId>,
    from: Instant,
    until: Instant,
    onForeign?: OnForeign,
  ): readonly Reading[] {
    return this.#readings.of([...chargers], from, until, onForeign);
  }

  seats(vehicle: VehicleId, from: Instant, until: Instant): readonly ChargerId[] {
    return this.#readings.seats(vehicle, from, until);
  }

  quarantine(limit: number): readonly Quarantined[] {
    return queryQuarantine(this.#database, limit);
  }

  alarms(): readonly Alarm[] {
    return queryAlarms(this.#database);
  }

  departures(): StoredDepartures {
    return queryDepartures(this.#database);
  }

  prices(): readonly PriceSeries[] {
    return queryPrices(this.#database);
  }

  reports(query: ReportQuery): readonly ReportRecord[] {
    return queryReports(this.#database, this.#siteKey, query);
  }

  report(name: string): { readonly record: ReportRecord; readonly body: string | null } | null {
    return queryReport(this.#database, this.#siteKey, name);
  }
}
