import { closeSync, constants, rmSync, statfsSync, statSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import type { Logger } from "pino";
import { leaveOpenToOwner, openOwn } from "./files.ts";

/** Some thousand rows of the record. */
export const RESERVE_BYTES = 8 * 1024 * 1024;
/** File name in the state directory. */
export const RESERVE = "reserve";
/** Not zeros: some file systems keep no room for those. */
const CHUNK = Buffer.alloc(64 * 1024, 0xa5);

/** Bytes that a file of ours may still take on the disk of this directory. */
const roomIn = (directory: string): number => {
  const { bavail, bsize } = statfsSync(directory);
  return bavail * bsize;
};

/**
 * Room that nobody else gets: a file that is deleted when the disk is full, so that the record can go on while somebody
 * tidies up (F05). A cap on the database, or a quota, is no full disk: deleting would not help.
 */
export class Reserve {
  readonly #path: string;
  readonly #log: Logger;
  readonly #room: (directory: string) => number;
  #isHeld: boolean;

  constructor(path: string, log: Logger, room = roomIn) {
    this.#path = path;
    this.#log = log;
    this.#room = room;
    this.#isHeld = (statSync(path, { throwIfNoEntry: false })?.size ?? 0) >= RESERVE_BYTES;
  }

  /** True: it is there, made now perhaps. False: there is no room for it, and what there is belongs to the record. */
  hold(): boolean {
    if (this.#isHeld) return true;
    try {
      // Twice as much: it must not fill the disk itself, nor come and go with every commit.
      this.#isHeld = this.#room(dirname(this.#path)) >= 2 * RESERVE_BYTES && this.#write();
    } catch {
      this.#remove();
    }
    return this.#isHeld;
  }

  /** True: there is room now that was not there before. */
  give(): boolean {
    if (!this.#isHeld || this.#room(dirname(this.#path)) >= RESERVE_BYTES) return false;
    this.#remove();
    this.#isHeld = false;
    this.#log.error(
      { reserveBytes: RESERVE_BYTES },
      "the disk is full: its reserve is given to the record, and readings are not stored. Make room",
    );
    return true;
  }

  #write(): true {
    const descriptor = openOwn(this.#path, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC);
    leaveOpenToOwner(descriptor, this.#path);
    try {
      for (let size = 0; size < RESERVE_BYTES; size += CHUNK.length) writeSync(descriptor, CHUNK);
    } finally {
      closeSync(descriptor);
    }
    return true;
  }

  /** Where it cannot be deleted either, nothing is gained and nothing lost. */
  #remove(): void {
    try {
      rmSync(this.#path, { force: true });
    } catch (error) {
      this.#log.warn({ err: error }, "the reserve of the disk cannot be deleted");
    }
  }
}
