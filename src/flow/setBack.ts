import { nextJudgement } from "../core/control/command.ts";
import type { Depot } from "../core/depot.ts";
import { earlier, type Instant } from "../core/units.ts";

/**
 * After the clock was set back: what is known only since the start counts as of now where it is dated later. It would
 * be newer than anything that is heard for as long as the clock was ahead.
 */
export function setBack(depot: Depot, now: Instant): void {
  const cut = (at: Instant | null): Instant | null => (at === null ? null : earlier(at, now));
  depot.plugs.setBack(now);
  depot.ramp?.setBack(now);
  for (const [charger, presence] of depot.presence) {
    depot.presence.set(charger, {
      ...presence,
      heardAt: cut(presence.heardAt),
      voltagesAt: cut(presence.voltagesAt),
      currentsAt: cut(presence.currentsAt),
      stateAt: cut(presence.stateAt),
      measuredAt: cut(presence.measuredAt),
    });
  }
  for (const [charger, record] of depot.commands) {
    if (record.judgeAt === null) continue;
    // It has the time to get there that it would have had.
    const latest = nextJudgement(now, depot.settings.verdict.ramp, record.resends);
    const followedAt = cut(record.followedAt ?? null);
    depot.commands.set(charger, { ...record, judgeAt: earlier(record.judgeAt, latest), followedAt });
  }
}
