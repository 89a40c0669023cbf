import { closeSync, constants, writeSync } from "node:fs";

import { type Head, unsealed } from "../chain.ts";
import { leaveOpenToOwner, openOwn, readOwn } from "../files.ts";

/** Name of the witness file in the state directory. */
export const HEAD_FILE = "head";

/**
 * A copy of the head in a file beside the database. It is written after each commit and never synced. SQLite
 * silently drops the end of a damaged write-ahead log, head included; then this file is ahead and shows it.
 */
export class Witness implements Disposable {
  readonly #descriptor: number;

  constructor(path: string) {
    this.#descriptor = openOwn(path, constants.O_RDWR | constants.O_CREAT);
    leaveOpenToOwner(this.#descriptor, path);
  }

  /**
   * Stores a head in the format of `sealed`. False: the file system rejects writes. The rows are safe without
   * it; an outdated witness raises no alarm.
   */
  write(head: string): boolean {
    try {
      writeSync(this.#descriptor, head, 0, "latin1");
      return true;
    } catch {
      return false;
    }
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
  }
}

/** The head in the witness file. Null: none, or unreadable. */
export function readWitness(path: string, siteKey: Buffer): Head | null {
  try {
    return unsealed(siteKey, readOwn(path).toString("latin1"));
  } catch {
    return null;
  }
}
