import type { Committed } from "../core/ledger.ts";
import { type Millis, seconds } from "../core/units.ts";

/** What a health pass came to; `words` say what is wrong, or what works only in part. */
export interface Health {
  readonly fit: boolean;
  readonly words: string;
}

/** What one health pass found out. */
export interface Signs {
  /** Of a commit that was tried just now. */
  readonly committed: Committed;
  /** Reads the record back; throws where that fails. */
  readonly readBack: () => unknown;
  /** Since the last look at the depot, on a clock that never jumps; null: none yet. */
  readonly sinceLook: Millis | null;
}

/** Two of the longest naps of the alarm, and room for a slow look. */
const FRESH = seconds(150);

/**
 * Fit: the last look is fresh, and a commit works. A disk that refuses writes but can be read is no reason for a
 * restart, which would not even come up: standing commands are still refreshed, and the words say so (F05, F06).
 */
export function fitness({ committed, readBack, sinceLook }: Signs): Health {
  if (sinceLook === null) return { fit: false, words: "the depot was not looked at yet" };
  if (sinceLook > FRESH)
    return { fit: false, words: `the last look at the depot is ${Math.round(sinceLook / 1000)} s old` };
  if (committed.ok) return { fit: true, words: "controlling" };
  return canRead(readBack)
    ? { fit: true, words: `nothing new can be recorded or started: ${committed.reason}` }
    : { fit: false, words: `the state can be neither written nor read: ${committed.reason}` };
}

function canRead(readBack: () => unknown): boolean {
  try {
    readBack();
    return true;
  } catch {
    return false;
  }
}
