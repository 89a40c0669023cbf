import type { Logger } from "pino";

import { type AuditEntry, type AuditRow, severityOf } from "../domain/audit.ts";

/** Delay of the log lines, ms. The lines of 200 rows take longer than the publishes that the rows are about. */
const LINES_AFTER_MS = 50;
/** Rows above which the further commits wait for the next turn of the event loop. */
const ROWS_A_TURN = 500;

/** The rows of one commit, and its duration. */
interface CommittedRows {
  readonly rows: readonly AuditRow[];
  readonly tookMs: number;
}

/** Another reader of committed rows: a counter, or a live page. */
type CommitReader = (rows: readonly AuditRow[], tookMs: number) => void;

/** Logs that may have lines left when the process exits. One listener for all of them: a fleet has thousands. */
const open = new Set<Disposable>();

const writeOpen = (): void => {
  for (const log of open) log[Symbol.dispose]();
};

/** The control-action log: each committed row is logged, soon after its commit. Other readers get it then as well. */
export class ActionLog implements Disposable {
  readonly #log: Logger;
  readonly #readers: CommitReader[] = [];
  #commits: CommittedRows[] = [];
  #timer: NodeJS.Timeout | undefined;

  readonly #write = (most = Infinity): void => {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    let count = 0;
    for (let commit = this.#commits.shift(); commit !== undefined; commit = this.#commits.shift()) {
      const { rows, tookMs } = commit;
      for (const read of this.#readers) read(rows, tookMs);
      for (const row of rows) logRow(this.#log, row);
      count += rows.length;
      if (count >= most) break;
    }
    if (this.#commits.length > 0) this.#timer = setTimeout(() => this.#write(ROWS_A_TURN), 0);
  };

  constructor(log: Logger) {
    this.#log = log;
    // A bug ends the process at once; before the log itself is written out for the last time.
    if (open.size === 0) process.prependListener("exit", writeOpen);
    open.add(this);
  }

  readBy(reader: CommitReader): void {
    this.#readers.push(reader);
  }

  readonly add = (rows: readonly AuditRow[], tookMs: number): void => {
    this.#commits.push({ rows, tookMs });
    this.#timer ??= setTimeout(() => this.#write(ROWS_A_TURN), LINES_AFTER_MS);
  };

  /** Writes what is left. */
  [Symbol.dispose](): void {
    open.delete(this);
    if (open.size === 0) process.removeListener("exit", writeOpen);
    this.#write();
  }
}

function logRow(log: Logger, row: AuditEntry): void {
  const { kind, charger, vehicle, event, command, words } = row;
  const named = {
    kind,
    charger: orUndefined(charger),
    vehicle: orUndefined(vehicle),
    event: orUndefined(event),
    command: orUndefined(command),
  };
  log[severityOf(row)](named, words);
}

/** The log leaves out fields that are undefined. */
const orUndefined = (name: string | null): string | undefined => name ?? undefined;
