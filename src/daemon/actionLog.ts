import type { Logger } from "pino";

import { type AuditEntry, severityOf } from "../domain/audit.ts";

/** Delay of the log lines, ms. The lines of 200 rows take longer than the publishes that the rows are about. */
const LINES_AFTER_MS = 50;

/** The rows of one commit, and its duration. */
interface CommittedRows {
  readonly rows: readonly AuditEntry[];
  readonly tookMs: number;
}

/** Counters of commits. */
interface CommitCounters {
  readonly committed: (rows: readonly AuditEntry[], tookMs: number) => void;
}

/** The control-action log: each committed row is logged and counted, soon after its commit and off its way. */
export class ActionLog implements Disposable {
  readonly #log: Logger;
  readonly #counters: CommitCounters;
  #commits: CommittedRows[] = [];
  #timer: NodeJS.Timeout | undefined;

  readonly #write = (): void => {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const commits = this.#commits;
    this.#commits = [];
    for (const { rows, tookMs } of commits) {
      this.#counters.committed(rows, tookMs);
      for (const row of rows) logRow(this.#log, row);
    }
  };

  constructor(log: Logger, counters: CommitCounters) {
    this.#log = log;
    this.#counters = counters;
    // A bug ends the process at once; before the log itself is written out for the last time.
    process.prependOnceListener("exit", this.#write);
  }

  readonly add = (rows: readonly AuditEntry[], tookMs: number): void => {
    this.#commits.push({ rows, tookMs });
    this.#timer ??= setTimeout(this.#write, LINES_AFTER_MS);
  };

  /** Writes what is left. */
  [Symbol.dispose](): void {
    process.removeListener("exit", this.#write);
    this.#write();
  }
}

function logRow(log: Logger, row: AuditEntry): void {
  const { kind, charger, vehicle, event, command, words } = row;
  const named = {
    kind,
    charger: said(charger),
    vehicle: said(vehicle),
    event: said(event),
    command: said(command),
  };
  log[severityOf(row)](named, words);
}

/** The log leaves out what is undefined. */
const said = (name: string | null): string | undefined => name ?? undefined;
