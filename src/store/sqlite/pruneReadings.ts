import type { KeptReadings } from "../../domain/store.ts";
import { type Instant, type Millis, minutes } from "../../domain/units.ts";
import { minuteOf } from "../readingRow.ts";
import type { Connection } from "./connection.ts";

/** Charger readings may arrive a week late. Older ones only serve baselines, which need one per minute. */
const FINE = minutes(8 * 24 * 60);
/** Length of a step, ms. It blocks the event loop. */
const STEP_MS = 20;
/**
 * Rows deleted by one statement: a minute of 20,000 chargers has 120,000. A charger's rows of one minute are
 * deleted together.
 */
export const PRUNE_PAGE = 1_000;

/**
 * A short step of pruning. Readings older than `keep` are deleted. Of those older than eight days, only the
 * last of each minute stays. Call it repeatedly, within a transaction. `keep` null: the clock is unconfirmed,
 * so nothing is too old, and only the excess is deleted. Throws SQLite errors.
 */
export function pruneReadings(
  connection: Connection,
  now: Instant,
  keep: Millis | null,
  most = Infinity,
): KeptReadings {
  const { database } = connection;
  const oldest = database.prepare("SELECT min(minute) AS minute FROM reading");
  const next = database.prepare("SELECT min(minute) AS minute FROM reading WHERE minute >= ?");
  const page = database.prepare(
    `SELECT charger FROM reading WHERE minute = ? AND charger > ? ORDER BY charger LIMIT 1 OFFSET ${PRUNE_PAGE - 1}`,
  );
  const drop = database.prepare("DELETE FROM reading WHERE minute = ? AND charger <= ?");
  const dropRest = database.prepare("DELETE FROM reading WHERE minute = ?");
  const thin = database.prepare(
    `DELETE FROM reading WHERE minute = ?1 AND charger > ?2 AND (?3 IS NULL OR charger <= ?3) AND told IS NULL AND EXISTS (
       SELECT 1 FROM reading AS later
       WHERE later.minute = reading.minute AND later.charger = reading.charger AND later.at > reading.at
       AND later.vehicle IS reading.vehicle AND (later.energy IS NOT NULL OR reading.energy IS NULL))`,
  );
  const [tooOld, coarse] =
    keep === null ? [-Infinity, -Infinity] : [minuteOf(now - keep), minuteOf(now - FINE)];
  let count = numberIn(connection, "readings");
  let thinned = numberIn(connection, "readingsThinned");
  /** The chargers of that minute up to this one are done. */
  let through = String(connection.getMeta.get("readingsThinnedThrough")?.["value"] ?? "");
  let leftEarly = false;
  const began = performance.now();
  while (performance.now() - began < STEP_MS) {
    const first = oldest.get()?.["minute"];
    if (typeof first === "number" && (first < tooOld || count > most)) {
      leftEarly ||= first >= tooOld;
      const last = page.get(first, "")?.["charger"];
      count -= Number((last === undefined ? dropRest.run(first) : drop.run(first, last)).changes);
      continue;
    }
    const minute = next.get(thinned)?.["minute"];
    if (typeof minute !== "number" || minute >= coarse) break;
    if (minute > thinned) through = "";
    const last = page.get(minute, through)?.["charger"] ?? null;
    count -= Number(thin.run(minute, through, last).changes);
    thinned = last === null ? minute + 1 : minute;
    through = last === null ? "" : String(last);
  }
  if (keep !== null) database.prepare("DELETE FROM seat WHERE day < ?").run(Math.floor(tooOld / 1440));
  connection.putMeta.run("readings", String(count));
  connection.putMeta.run("readingsThinned", String(thinned));
  connection.putMeta.run("readingsThinnedThrough", through);
  // This commit runs every minute anyway. After a crash, `alive` shows how long nothing ran.
  connection.putMeta.run("alive", String(now));
  return { rows: count, leftEarly };
}

/** Counting millions of rows takes seconds, so the number is stored. */
export function countReadings(connection: Connection, added: number): void {
  connection.putMeta.run("readings", String(numberIn(connection, "readings") + added));
}

const numberIn = ({ getMeta }: Connection, name: "readings" | "readingsThinned"): number =>
  Number(getMeta.get(name)?.["value"] ?? 0);
