import { followChain, GENESIS, type Checked, type Head } from "./chain.ts";
import { metaValue, type Connection } from "./connection.ts";
import { damaged, type Fault } from "./fault.ts";
import { unsealed } from "./head.ts";
import { chainRows } from "./rows.ts";

/** `head`: hash of the last row. `seq`: the first row that is not what it should be. */
export type Verified =
  | { readonly ok: true; readonly rows: number; readonly head: string }
  | { readonly ok: false; readonly seq: number; readonly reason: string };

/** Rows looked at on start; all of them would keep the chargers waiting. */
const TAIL = 1000;

/** The whole record, from its first row or from what pruning left, to the sealed head (DESIGN 5.8). */
export function verifyAll(connection: Connection, siteKey: Buffer): Verified {
  const checked = follow(connection, siteKey, firstStart(connection));
  return checked.ok ? { ok: true, rows: checked.rows, head: checked.head.hash } : checked;
}

/** The newest rows and the sealed head; `witness` is what the file beside the database saw last. */
export function verifyTail(connection: Connection, siteKey: Buffer, witness: Head | null): Head | Fault {
  const checked = follow(connection, siteKey, tailStart(connection));
  if (!checked.ok) return damaged(`audit record: ${checked.reason}`);
  const { head } = checked;
  if (witness !== null && witness.seq > head.seq) {
    return damaged(`audit record: it ends at row ${head.seq}, but row ${witness.seq} was committed`);
  }
  return head;
}

function follow(connection: Connection, siteKey: Buffer, start: Head): Checked {
  const checked = followChain(start, chainRows(connection.database, start.seq));
  if (!checked.ok) return checked;
  const text = metaValue(connection, "head");
  const head = text === null ? GENESIS : unsealed(siteKey, text);
  const { seq, hash } = checked.head;
  if (head === null) return { ok: false, seq, reason: "its head was not written with this site key" };
  if (head.seq === seq && head.hash === hash) return checked;
  return { ok: false, seq: seq + 1, reason: `it ends at row ${seq}, but its head says ${head.seq}` };
}

/**
 * Where the oldest row continues from. Pruning up to row n first appends a `checkpoint` row with the facts
 * `{ through: n, hash: <that of row n> }`: the chain and the sealed head vouch for it like for any other row.
 */
function firstStart(connection: Connection): Head {
  const { database } = connection;
  const first = database.prepare("SELECT min(seq) AS seq FROM audit").get()?.["seq"] ?? 1;
  if (first === 1) return GENESIS;
  const row = database
    .prepare("SELECT facts FROM audit WHERE kind = 'checkpoint' ORDER BY seq DESC LIMIT 1")
    .get();
  const { through, hash } = checkpoint(String(row?.["facts"]));
  return through === Number(first) - 1 ? { seq: through, hash } : GENESIS;
}

function checkpoint(facts: string): { through: number; hash: string } {
  try {
    const { through, hash } = JSON.parse(facts);
    return { through: Number(through), hash: String(hash) };
  } catch {
    // None, or unreadable: then the rows before are simply missing.
    return { through: 0, hash: "" };
  }
}

function tailStart(connection: Connection): Head {
  const anchor = connection.database
    .prepare("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1 OFFSET ?")
    .get(TAIL);
  if (anchor === undefined) return firstStart(connection);
  return { seq: Number(anchor["seq"]), hash: String(anchor["hash"]) };
}
