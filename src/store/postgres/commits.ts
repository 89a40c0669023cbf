import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import type { Change, NotStored } from "../../domain/changes.ts";
import type { CommandRecord } from "../../domain/command.ts";
import { ANOTHER_LEADS, RESTORED } from "../../domain/leadership.ts";
import { type Head, sealed, unsealed } from "../chain.ts";
import { leaveToOwner, readWitness, Witness } from "../files.ts";
import { type Batch, batchOf, COMMIT, commitValues } from "./batch.ts";
import { column, faultOf, type SiteDatabase } from "./database.ts";
import { endTerms } from "./fleetWork.ts";
import type { Lease } from "./lease.ts";

/** Interval of the tries to learn whether a commit was stored, ms. */
const ASK_AGAIN_MS = 250;

interface UnsureCommit {
  readonly number: number;
  readonly changes: readonly Change[];
  readonly isStored: PromiseWithResolvers<boolean>;
}

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
  /** The commit whose answer was lost. Null: what is stored is known. */
  #unsure: UnsureCommit | null = null;
  /** Changes of such commits that are stored. Those that survive a failed commit come with the next one again. */
  readonly #stored = new Set<Change>();
  /** The question that is under way. Each refuses the next number, so there is one at a time. */
  #asking: Promise<string | null> | null = null;

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
    const unknown = await this.settle();
    if (unknown !== null) return refusedBy(unknown);
    const fresh = changes.filter((change) => !this.#stored.has(change));
    const batch = batchOf(siteKey, this.#head, fresh);
    const number = this.#number + 1;
    try {
      const values = commitValues(batch, sealed(siteKey, batch.head, epoch));
      const [answer] = await database.query(COMMIT, [site, epoch, number, ...values]);
      if (answer?.["led"] !== 1) return refusedBy(await this.#end());
    } catch (error) {
      const { reason, isCertain } = faultOf(error);
      if (isCertain) return refusedBy(reason);
      const isStored = Promise.withResolvers<boolean>();
      this.#unsure = { number, changes: fresh, isStored };
      // Without the lease, the chargers wait for nothing that this answer would change.
      while (this.#unsure !== null && this.#lease.state === "leading") {
        if ((await this.settle()) !== null) await sleep(ASK_AGAIN_MS);
      }
      if (this.#unsure !== null) {
        void this.#settleLater();
        return { ok: false, reason, isUnsure: true, isStored: isStored.promise };
      }
      if (this.#number !== number) return refusedBy(reason);
      this.#stored.clear();
      return batch;
    }
    this.#number = number;
    this.#head = batch.head;
    this.#stored.clear();
    return batch;
  }

  /**
   * Learns whether a commit whose answer was lost is stored. If not, it never will be. Null: known. A string: why it is not.
   */
  async settle(): Promise<string | null> {
    if (this.#unsure === null) return null;
    this.#asking ??= this.#ask(this.#unsure);
    const reason = await this.#asking;
    this.#asking = null;
    return reason;
  }

  /** An idle site has no next commit soon, which would settle this one first. */
  async #settleLater(): Promise<void> {
    while (this.#lease.state !== "lost" && (await this.settle()) !== null)
      await sleep(ASK_AGAIN_MS, undefined, { ref: false });
  }

  /** The database refuses this run. Returns the reason. Throws errors of the database. */
  async #end(): Promise<string> {
    const { database, site } = this.#from;
    const restored = await database.query(NOTE_RESTORED, [site, this.#lease.epoch, this.#number]);
    if (restored.length === 0) return endTerms(database, [this.#lease]);
    this.#lease.lose(RESTORED);
    return RESTORED;
  }

  /** Reads what is stored, and refuses a commit that is still on its way. Null: done. */
  async #ask({ number, changes, isStored }: UnsureCommit): Promise<string | null> {
    const { database, site } = this.#from;
    try {
      const [row] = await database.query(ASK, [site, this.#lease.epoch, number]);
      // Control is ahead of an earlier state: only a new start knows what is stored.
      if (row === undefined || Number(row["commit_no"]) < this.#number) return await this.#end();
      this.#number = Number(row["commit_no"]);
      this.#head = { seq: Number(row["head_seq"]), hash: String(row["head_hash"]) };
      if (this.#number === number) for (const change of changes) this.#stored.add(change);
      this.#unsure = null;
      isStored.resolve(this.#number === number);
      return null;
    } catch (error) {
      return faultOf(error).reason;
    }
  }
}

/** The next leader reads the zero. Commits and epochs never go back otherwise. */
const NOTE_RESTORED = `UPDATE site SET restored = 0
  WHERE id = $1 AND (epoch < $2 OR epoch = $2 AND commit_no < $3) RETURNING id`;

/** A commit that is not stored is skipped by its number. The question may arrive late, and twice: then it changes nothing. */
const ASK = `UPDATE site SET commit_no = CASE commit_no WHEN $3 - 1 THEN $3 + 1 ELSE commit_no END
  WHERE id = $1 AND epoch = $2 RETURNING commit_no, head_seq, head_hash`;

/** Interval of writes of the head while the record grows, ms. */
const KEEP_EVERY_MS = 10_000;

/**
 * The newest row of the record that this machine knows, in a file of its folder. A database without that row was restored, or
 * a replica that was behind leads it: commands since then are not on record. Without the file nothing is noticed.
 */
export class KnownHead implements Disposable {
  readonly #folder: string;
  readonly #from: SiteDatabase;
  readonly #monotonic: () => number;
  /** Null: the file has it. */
  #unkept: { readonly head: Head; readonly epoch: number } | null = null;
  #keptAt: number;

  constructor(folder: string, from: SiteDatabase, monotonic: () => number) {
    this.#folder = join(folder, "heads");
    this.#from = from;
    this.#monotonic = monotonic;
    this.#keptAt = monotonic();
  }

  get #path(): string {
    return join(this.#folder, this.#from.site);
  }

  /** True: the database lacks the row. `restored`: epoch of the first run after a restore, which knew that. Zero: none yet. */
  async isMissing(head: Head, restored: number | null): Promise<boolean> {
    const { database, site, siteKey } = this.#from;
    if (restored === 0) return true;
    const known = readWitness(this.#path, siteKey);
    if (known === null || (known.epoch ?? 0) < (restored ?? 0)) return false;
    if (known.seq >= head.seq) return known.hash !== head.hash;
    const [row] = await database.query("SELECT hash FROM audit WHERE site = $1 AND seq = $2", [
      site,
      known.seq,
    ]);
    // Old rows are pruned.
    return row !== undefined && row["hash"] !== known.hash;
  }

  /** A commit of this process is stored. `epoch`: of its lease. */
  saw(head: Head, epoch: number): void {
    this.#unkept = { head, epoch };
    if (this.#monotonic() - this.#keptAt >= KEEP_EVERY_MS) this[Symbol.dispose]();
  }

  /** Reads the head of another leader. Throws errors of the database. */
  async follow(): Promise<void> {
    const { database, site, siteKey } = this.#from;
    const [row] = await database.query("SELECT sealed FROM site WHERE id = $1", [site]);
    const text = String(row?.["sealed"]);
    const head = unsealed(siteKey, text);
    if (head !== null && head.seq > (readWitness(this.#path, siteKey)?.seq ?? 0)) this.#keep(text);
  }

  /** Writes what is not in the file yet. */
  [Symbol.dispose](): void {
    if (this.#unkept === null) return;
    this.#keep(sealed(this.#from.siteKey, this.#unkept.head, this.#unkept.epoch));
    this.#unkept = null;
    this.#keptAt = this.#monotonic();
  }

  /** An older file raises no alarm, so a folder that refuses writes is no fault. */
  #keep(text: string): void {
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      leaveToOwner(this.#folder);
      using witness = new Witness(this.#path);
      witness.write(text);
    } catch {}
  }
}

const isRelease = ({ command }: CommandRecord): boolean => command.desired.kind === "release";

/**
 * Notes that the database was restored, and forgets releases from before: their chargers may have been limited since. `isVerb`:
 * the next leader still has to do that. Returns the commands that stay. Throws errors of the database.
 */
export async function forgetReleases(
  { database, site }: SiteDatabase,
  { epoch }: Lease,
  commands: readonly CommandRecord[],
  isVerb: boolean,
): Promise<readonly CommandRecord[]> {
  const released = isVerb ? [] : commands.filter(isRelease).map(({ command }) => column(command.charger));
  await database.query(FORGET_RELEASES, [site, epoch, released, isVerb ? 0 : epoch]);
  return commands.filter((record) => !isRelease(record));
}

const FORGET_RELEASES = `WITH led AS (UPDATE site SET restored = $4 WHERE id = $1 AND epoch = $2 RETURNING id)
  DELETE FROM body USING led WHERE body.site = led.id AND body.kind = 'command' AND body.id = ANY ($3::text[])`;
