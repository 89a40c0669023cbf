import type { Explanation, Scope } from "./apiAnswers.ts";
import { compliance, eventsNow } from "./derive.ts";
import { amps, kilowatts, levelText, nearTime } from "./format.ts";
import { chargers, events, now, zone } from "./store.ts";
import { t } from "./texts.ts";

export type End = "events" | "at" | "unplugged" | "energy";

/** Chargers that a scope concerns now. */
export const underScope = (scope: Scope) =>
  chargers.all.value.filter(
    ({ charger, vehicle }) =>
      "site" in scope || ("charger" in scope ? charger === scope.charger : vehicle === scope.vehicle),
  );

/** `HH:MM` in the zone of the site. */
export const clockIn = (at: number): string =>
  new Intl.DateTimeFormat("en-GB", {
    timeZone: zone.value,
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  }).format(at);

/** The next moment at which the clocks of the site show this time. Searched by minute, so that a change of the clocks counts. */
export function nextTime(clock: string): number {
  const first = Math.ceil((now.value + 1) / 60_000) * 60_000;
  for (let minute = 0; minute <= 24 * 60; minute += 1)
    if (clockIn(first + minute * 60_000) === clock) return first + minute * 60_000;
  return first;
}

export function endLine(end: End, time: string, energy: string): string {
  const words = t.hold;
  switch (end) {
    case "events":
      return words.untilText(words.untilEvents);
    case "at":
      return words.untilAt(nearTime(zone.value, nextTime(time), now.value));
    case "unplugged":
      return words.untilText(words.untilUnplugged);
    case "energy":
      return words.untilText(`${energy} ${words.energy} ${words.untilEnergy.split(" ").at(-1)}`);
  }
}

/** The effect of an override on each vehicle and event, in sentences. */
export function consequences(
  scope: Scope,
  who: string,
  kind: "exempt" | "level",
  current: string,
  why: Explanation | null,
): readonly string[] {
  const words = t.hold;
  const under = underScope(scope);
  const limited = under.filter(({ asked }) => asked !== null);
  const most = why?.without.most ?? null;
  const after =
    kind === "level"
      ? amps(Number(current) || 0)
      : most === null
        ? t.level.release
        : words.upTo(levelText(most));
  const [only] = under;
  const before = only?.allowed ?? null;
  const beforeText =
    before === null || before.kind === "release"
      ? t.level.release
      : before.kind === "pause"
        ? t.level.pause
        : before.kind === "power"
          ? kilowatts(before.value ?? 0)
          : amps(before.value ?? 0);
  const first =
    "site" in scope
      ? words.siteGets(limited.length)
      : limited.length === 0 && kind === "exempt"
        ? words.getsSame(who, after)
        : words.gets(who, after, beforeText);
  const deviations = eventsNow(events.all.value, now.value).active.flatMap(({ id, name }) => {
    const { good, total } = compliance(id, chargers.all.value);
    const leaving = limited.filter(({ asked }) => asked?.event === id).length;
    return leaving === 0 ? [] : [words.compliance(name ?? id, Math.max(0, good - leaving), total)];
  });
  return [first, ...("site" in scope ? [] : [words.others]), ...deviations];
}
