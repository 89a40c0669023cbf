import type { Profile } from "../chargers/profile/schema.ts";
import { type AcquiredCharger, acquire, returned } from "../control/decide/commissioningAccess.ts";
import type { JudgeSettings } from "../control/observe/compliance.ts";
import type { ControlState } from "../control/state.ts";
import { auditRow, type Json } from "../domain/audit.ts";
import type { Change, Committed } from "../domain/changes.ts";
import type { Charger } from "../domain/charger.ts";
import { type Desired, formatLevel } from "../domain/setpoint.ts";
import { type Instant, type Millis, seconds } from "../domain/units.ts";
import { isGood, resultFacts, formatResult, summary } from "./report.ts";
import { type Bench, describePriorState, priorState, type SilencePromise, tryCharger } from "./trial.ts";

/** What commissioning needs, whether the daemon does it or the verb by itself. */
export interface Commissioning {
  readonly charger: Charger;
  readonly profile: Profile;
  readonly silence: boolean;
  readonly lent: AcquiredCharger;
  readonly depot: ControlState;
  readonly settings: JudgeSettings;
  /** The level that the charger shows it stands under, whoever told it; null: it does not show. */
  readonly shows: () => Desired | null;
  readonly write: (changes: readonly Change[]) => void;
  readonly durable: () => Promise<Committed>;
  readonly progress: (words: string) => void;
}

/** What to print, and how it ended. */
export interface Commissioned {
  readonly good: boolean;
  /** The result; null: nothing was tried. */
  readonly words: string | null;
  /** What went wrong around it; null: nothing. */
  readonly complaint: string | null;
}

/** How long a charger may take to say its first word; it may have to find the broker first. */
const FIRST_WORDS = seconds(10);
/** Lease of a native charger while its silence is tried: nobody wants to wait for the real one. */
const SHORT_LEASE = seconds(30);
/** Silence for makes that have no time-out; longer than any that has one. */
const LONG_SILENCE = seconds(90);
/** How long a make that promises nothing may take to answer. */
const ANSWER_WITHIN = seconds(10);

/** Why a charger should not be tried now; null: nothing speaks against it. */
export function reasonNotTo(depot: ControlState, charger: Charger, now: Instant): string | null {
  const { winner, until } = depot.verdictOn(charger, now);
  if (winner !== null)
    return `${winner.event.id} holds on ${charger.id} until ${until === null ? "it is withdrawn" : depot.wallClock(until)}`;
  return depot.barTo("plan", null) === "observing"
    ? "control.mode is observe: no charger is told anything"
    : null;
}

/** Takes a charger from control for a while. Where control runs, `commissioned` is called in the same turn: it stores the pledge. */
export const acquireCharger = (depot: ControlState, charger: Charger, now: Instant): AcquiredCharger =>
  acquire(depot, charger, now);

/** Tries a charger that control has lent, leaves it as it was, and writes down what it did. */
export async function commissioned(
  { charger, profile, silence, lent, depot, settings, shows, write, durable, progress }: Commissioning,
  bench: Bench,
): Promise<Commissioned> {
  const note = async (words: string, facts: Json, changes: readonly Change[]): Promise<string | null> => {
    write([auditRow("operator", bench.now(), words, { charger: charger.id, facts }), ...changes]);
    const written = await durable();
    return written.ok ? null : written.reason;
  };
  const nothingTried = (why: string): Commissioned => {
    write(returned(depot, charger.id, true, bench.now()));
    return { good: false, words: null, complaint: `nothing was tried: ${why}` };
  };
  // At once: what control decides while the first word is waited for has to be stored after it.
  write(lent.pendingRelease);
  const pledged = await durable();
  if (!pledged.ok) return nothingTried(pledged.reason);
  await bench.until(() => bench.told() !== null, FIRST_WORDS);
  if (bench.isStopped()) return nothingTried(bench.preemptedBy() ?? "stopped");
  const before = priorState(lent.standing, shows(), charger);
  const unwritten = await note(
    `commissioning of ${charger.id} (${profile.profile}) begins`,
    { before: formatLevel(before.desired), knownBy: before.source },
    [],
  );
  if (unwritten !== null) return nothingTried(unwritten);
  const result = await tryCharger(
    {
      charger,
      settings,
      silence: silence ? promiseOf(profile) : null,
      answerWithin: answerTime(profile),
      leave: before.desired,
      progress,
    },
    bench,
  );
  const isLeft = result.leftFailure === null;
  const lost = await note(
    `commissioned ${charger.id}: ${summary(result)}`,
    resultFacts(result),
    returned(depot, charger.id, isLeft, bench.now()),
  );
  return {
    good: isGood(result) && lost === null,
    words: `${charger.id} (${profile.profile}), ${describePriorState(before)}\n${formatResult(result)}`,
    complaint: lost === null ? null : `the result could not be written down: ${lost}`,
  };
}

/** What the make does by itself in silence. */
function promiseOf({ nativePayloads, deviceTimeout }: Profile): SilencePromise {
  if (nativePayloads) return { after: SHORT_LEASE, effect: "own limits" };
  if (deviceTimeout === undefined) return { after: LONG_SILENCE, effect: "holds" };
  return { after: deviceTimeout.after, effect: deviceTimeout.effect === "pause" ? "pauses" : "own limits" };
}

/** A profile that waits for a confirmation says no by itself when none comes. */
const answerTime = ({ confirmedBy }: Profile): Millis =>
  confirmedBy === undefined ? ANSWER_WITHIN : seconds(confirmedBy.within / 1000 + 1);
