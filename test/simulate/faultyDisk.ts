import { DatabaseSync } from "node:sqlite";

const { exec } = DatabaseSync.prototype;

const failure = (words: string, errcode: number): Error =>
  Object.assign(new Error(words), { code: "ERR_SQLITE_ERROR", errcode });

// Made once: the stack of an error costs more than a commit, and nobody reads it.
const FULL = failure("database or disk is full", 13);
const BROKEN = failure("disk I/O error", 10);
const GONE = failure("this process is no more", 13);

/** How commits go. `doubtful`: they are made, and said to have failed. */
export type DiskState = "sound" | "full" | "broken" | "doubtful";

/** Every commit of this process passes here, on its way to the real database. */
export class FaultyDisk implements Disposable {
  state: DiskState = "sound";
  /** Called around a commit; what it throws is what the commit fails with. */
  beforeCommit: () => void = () => {};
  afterCommit: () => void = () => {};

  constructor() {
    const commit = (database: DatabaseSync): void => this.#commit(database);
    DatabaseSync.prototype.exec = function (this: DatabaseSync, sql: string) {
      if (sql === "COMMIT") commit(this);
      else exec.call(this, sql);
    };
  }

  /** What a process that is no more gets from its disk. */
  static gone = (): Error => GONE;

  #commit(database: DatabaseSync): void {
    this.beforeCommit();
    if (this.state === "full") throw FULL;
    if (this.state === "broken") throw BROKEN;
    exec.call(database, "COMMIT");
    this.afterCommit();
    if (this.state === "doubtful") throw BROKEN;
  }

  [Symbol.dispose](): void {
    DatabaseSync.prototype.exec = exec;
  }
}
