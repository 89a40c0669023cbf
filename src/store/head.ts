import { closeSync, constants, openSync, readFileSync, writeSync } from "node:fs";
import { seal, type Head } from "./chain.ts";
import { leaveToOwner } from "./files.ts";

/** Name of the witness file in the state directory. */
export const HEAD_FILE = "head";

/** A head as text with its seal, of one length: number, hash, HMAC-SHA256. */
export function sealed(siteKey: Buffer, head: Head): string {
  return `${String(head.seq).padStart(16, "0")} ${head.hash} ${seal(siteKey, head)}`;
}

/** Null: not a head, or not sealed with this key. */
export function unsealed(siteKey: Buffer, text: string): Head | null {
  const [seq = "", hash = ""] = text.split(" ");
  const head = { seq: Number(seq), hash };
  return text === sealed(siteKey, head) ? head : null;
}

/**
 * The head once more, in a file beside the database, written after each commit and never synced. SQLite
 * silently drops the end of a write-ahead log that was cut or changed, head and all; then this one is ahead.
 */
export class Witness implements Disposable {
  readonly #descriptor: number;

  constructor(path: string) {
    this.#descriptor = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600);
    leaveToOwner(path);
  }

  /**
   * Keeps a head as `sealed` spells it. False: the file system takes no writes. The rows are safe without; a witness
   * that stays behind is none against them.
   */
  saw(head: string): boolean {
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

/** What the witness saw last; null: nothing, or nothing readable. */
export function witnessed(path: string, siteKey: Buffer): Head | null {
  try {
    return unsealed(siteKey, readFileSync(path, "latin1"));
  } catch {
    return null;
  }
}
