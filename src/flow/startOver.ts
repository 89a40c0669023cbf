import { commandId, type CommandRecord } from "../core/control/command.ts";
import type { Depot } from "../core/depot.ts";
import type { Remembered } from "../core/ledger.ts";
import { after, type ChargerId, type Instant, seconds } from "../core/units.ts";

/** After a failed commit everyone is looked at again so much later: soon, but not in circles. */
const COMMIT_RETRY = seconds(5);

/**
 * Nothing of a failed commit was kept, so the picture becomes what is stored. `sent` holds each charger's record
 * as its last publish left it: refreshes are counted in memory only, and must not all fall due at once.
 */
export function startOver(
  depot: Depot,
  remembered: Remembered,
  sent: ReadonlyMap<ChargerId, CommandRecord>,
  now: Instant,
): void {
  depot.restore(remembered, now);
  for (const [charger, record] of depot.commands) {
    const was = sent.get(charger);
    if (was === undefined || commandId(was.command) !== commandId(record.command)) continue;
    depot.commands.set(charger, { ...record, sentAt: was.sentAt, sends: was.sends });
  }
  for (const charger of depot.chargers.keys()) depot.wake(charger, after(now, COMMIT_RETRY));
}

/** What was told last keeps its lease while nothing newer can be recorded: the charger must not fall back to its own default (F05, F06). */
export function wantsLease(depot: Depot, charger: ChargerId, now: Instant): boolean {
  const record = depot.commands.get(charger);
  if (record === undefined || record.sentAt === null) return false;
  const { command, sentAt } = record;
  if (command.desired.kind === "release" || (command.until !== null && command.until <= now)) return false;
  const refresh = depot.chargers.get(charger)?.refresh ?? null;
  return refresh !== null && after(sentAt, refresh) <= now;
}
