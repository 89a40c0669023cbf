import { DatabaseSync } from "node:sqlite";

const { exec } = DatabaseSync.prototype;
const FULL = 13;
const IOERR = 10;

const failure = (words: string, errcode: number): Error =>
  Object.assign(new Error(words), { code: "ERR_SQLITE_ERROR", errcode });

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
  static gone = (): Error => failure("this process is no more", FULL);

  #commit(database: DatabaseSync): void {
    this.beforeCommit();
    if (this.state === "full") throw failure("database or disk is full", FULL);
    if (this.state === "broken") throw failure("disk I/O error", IOERR);
    exec.call(database, "COMMIT");
    this.afterCommit();
    if (this.state === "doubtful") throw failure("disk I/O error", IOERR);
  }

  [Symbol.dispose](): void {
    DatabaseSync.prototype.exec = exec;
  }
}
