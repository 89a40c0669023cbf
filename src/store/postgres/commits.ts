import { setTimeout as sleep } from "node:timers/promises";

import type { Change, NotStored } from "../../domain/changes.ts";
import { ANOTHER_LEADS } from "../../domain/leadership.ts";
import { type Head, sealed } from "../chain.ts";
import { type Batch, batchOf, COMMIT, commitValues } from "./batch.ts";
import { faultOf, type SiteDatabase } from "./database.ts";
import type { Lease } from "./lease.ts";

/** Interval of the tries to learn whether a commit was stored, ms. */
const ASK_AGAIN_MS = 250;

/** Result of a commit. */
export type Outcome = Batch | NotStored;

const refusedBy = (reason: string): NotStored => ({ ok: false, reason });

/**
 * Commits of the leader, one after another. Each has the next number, and the database refuses any other number and any
 * other epoch. A commit whose answer was lost is asked for by its number, after a step that refuses it from then on.
 */
export class Commits {
  readonly #from: SiteDatabase;
  readonly #lease: Lease;
  #head: Head;
  #number: number;
  /** The answer to the last commit was lost. */
  #isUnsure = false;

  constructor(from: SiteDatabase, lease: Lease, last: { readonly head: Head; readonly number: number }) {
    this.#from = from;
    this.#lease = lease;
    this.#head = last.head;
    this.#number = last.number;
  }

  /** Head after the last commit that added audit rows. */
  get head(): Head {
    return this.#head;
  }

  /** Commits all changes or none. */
  async commit(changes: readonly Change[]): Promise<Outcome> {
    const { database, site, siteKey } = this.#from;
    const { epoch } = this.#lease;
    if (this.#lease.state === "lost") return refusedBy(ANOTHER_LEADS);
    if (this.#isUnsure) {
      const reason = await this.#ask();
      if (reason !== null) return refusedBy(reason);
    }
    const batch = batchOf(siteKey, this.#head, changes);
    const number = this.#number + 1;
    try {
      const values = commitValues(batch, sealed(siteKey, batch.head, epoch));
      const [answer] = await database.query(COMMIT, [site, epoch, number, ...values]);
      if (answer?.["led"] !== 1) return refusedBy(this.#refused());
    } catch (error) {
      const { reason, isCertain } = faultOf(error);
      if (isCertain) return refusedBy(reason);
      this.#isUnsure = true;
      // Without the lease, the chargers wait for nothing that this answer would change.
      while (this.#isUnsure && this.#lease.state === "leading") {
        if ((await this.#ask()) !== null) await sleep(ASK_AGAIN_MS);
      }
      if (this.#isUnsure) return { ok: false, reason, isUnsure: true };
      return this.#number === number + 1 ? batch : refusedBy(reason);
    }
    this.#number = number;
    this.#head = batch.head;
    return batch;
  }

  #refused(): string {
    this.#lease.lose(ANOTHER_LEADS);
    return ANOTHER_LEADS;
  }

  /** Reads what is stored, and refuses a commit that is still on its way. Null: done. */
  async #ask(): Promise<string | null> {
    const { database, site } = this.#from;
    try {
      const [row] = await database.query(ASK, [site, this.#lease.epoch]);
      if (row === undefined) return this.#refused();
      this.#number = Number(row["commit_no"]);
      this.#head = { seq: Number(row["head_seq"]), hash: String(row["head_hash"]) };
      this.#isUnsure = false;
      return null;
    } catch (error) {
      return faultOf(error).reason;
    }
  }
}

const ASK = `UPDATE site SET commit_no = commit_no + 1 WHERE id = $1 AND epoch = $2
  RETURNING commit_no, head_seq, head_hash`;
