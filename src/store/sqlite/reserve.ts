import { closeSync, constants, rmSync, statfsSync, statSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import type { Logger } from "pino";
import { leaveOpenToOwner, openOwn } from "../files.ts";

/** Some thousand audit rows. */
export const RESERVE_BYTES = 8 * 1024 * 1024;
/** File name in the state directory. */
export const RESERVE = "reserve";
/** Not zeros: some file systems reserve no room for those. */
const CHUNK = Buffer.alloc(64 * 1024, 0xa5);

/** Bytes that a file of ours may still use on the disk of this directory. */
export const roomIn = (directory: string): number => {
  const { bavail, bsize } = statfsSync(directory);
  return bavail * bsize;
};

/**
 * A file that reserves disk space. It is deleted when the disk is full, so that the audit record can go on
 * until a person makes room. A limit of the database or a quota is not a full disk: deleting would not help.
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

  /** Creates the reserve if there is room. False: no room, and the rest of the disk belongs to the record. */
  ensure(): boolean {
    if (this.#isHeld) return true;
    try {
      // Twice the size: the reserve must neither fill the disk nor be created and deleted with every commit.
      this.#isHeld = this.#room(dirname(this.#path)) >= 2 * RESERVE_BYTES && this.#write();
    } catch {
      this.#remove();
    }
    return this.#isHeld;
  }

  /** True: deleting the reserve made room. */
  release(): boolean {
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

  /** A failure changes nothing, so it is only logged. */
  #remove(): void {
    try {
      rmSync(this.#path, { force: true });
    } catch (error) {
      this.#log.warn({ err: error }, "the reserve of the disk cannot be deleted");
    }
  }
}
