import { closeSync, constants, writeSync } from "node:fs";
import { authenticate } from "./authentic.ts";
import { seal, type Head } from "./chain.ts";
import { leaveOpenToOwner, openOwn, readOwn } from "./files.ts";

/** Name of the witness file in the state directory. */
export const HEAD_FILE = "head";

/** `epoch`: of the run that wrote it. Null: written by a version that did not store it here. */
export interface SealedHead extends Head {
  readonly epoch: number | null;
}

/** A head as text, of one length: row number, hash, epoch of the run, HMAC-SHA256. */
export function sealed(siteKey: Buffer, { seq, hash }: Head, epoch: number): string {
  const [row, run] = [seq, epoch].map((number) => String(number).padStart(16, "0"));
  return `${row} ${hash} ${run} ${authenticate(siteKey, "audit head and epoch", String(seq), hash, String(epoch))}`;
}

/** As earlier versions wrote it: row number, hash, HMAC-SHA256. */
const sealedBefore = (siteKey: Buffer, head: Head): string =>
  `${String(head.seq).padStart(16, "0")} ${head.hash} ${seal(siteKey, head)}`;

/** Null: not a head, or not sealed with this key. */
export function unsealed(siteKey: Buffer, text: string): SealedHead | null {
  const [seq = "", hash = "", run = ""] = text.split(" ");
  const head = { seq: Number(seq), hash };
  if (text === sealedBefore(siteKey, head)) return { ...head, epoch: null };
  const epoch = Number(run);
  return text === sealed(siteKey, head, epoch) ? { ...head, epoch } : null;
}

/**
 * The head once more, in a file beside the database, written after each commit and never synced. SQLite
 * silently drops the end of a write-ahead log that was cut or changed, head and all; then this one is ahead.
 */
export class Witness implements Disposable {
  readonly #descriptor: number;

  constructor(path: string) {
    this.#descriptor = openOwn(path, constants.O_RDWR | constants.O_CREAT);
    leaveOpenToOwner(this.#descriptor, path);
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
    return unsealed(siteKey, readOwn(path).toString("latin1"));
  } catch {
    return null;
  }
}
