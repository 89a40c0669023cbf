import type { Logger } from "pino";

import { type AuditEntry, severityOf } from "../domain/audit.ts";

/** The lines of 200 rows take longer than the publishes that the rows are about: those go first. */
const LINES_AFTER_MS = 50;

/** The control-action log: every row of the record is a line, soon after it is committed. */
export class ActionLog implements Disposable {
  readonly #log: Logger;
  #rows: (readonly AuditEntry[])[] = [];
  #bell: NodeJS.Timeout | undefined;

  readonly #write = (): void => {
    clearTimeout(this.#bell);
    this.#bell = undefined;
    const rows = this.#rows.flat();
    this.#rows = [];
    for (const row of rows) logRow(this.#log, row);
  };

  constructor(log: Logger) {
    this.#log = log;
    // A bug ends the process at once; before the log itself is written out for the last time.
    process.prependOnceListener("exit", this.#write);
  }

  add(rows: readonly AuditEntry[]): void {
    this.#rows.push(rows);
    this.#bell ??= setTimeout(this.#write, LINES_AFTER_MS);
  }

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
