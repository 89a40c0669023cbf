import type { Charger, Explanation, Scope } from "./apiAnswers.ts";
import { compliance, eventsNow, isUnheard } from "./derive.ts";
import { amps, askText, clockTime, kilowatts, levelText, nearTime, nextTime } from "./format.ts";
import { named, type Naming } from "./holdPreview.ts";
import { brokersAway, chargers, departures, events, now, vehicles, zone } from "./store.ts";
import { t } from "./texts.ts";

export type End = "events" | "at" | "unplugged" | "energy";

/** Reason of a request that only asks for a preview: the API takes no hold without one. */
export const PREVIEW = "preview";

/** Chargers that a scope concerns now. */
export const underScope = (scope: Scope) =>
  chargers.all.value.filter(
    ({ charger, vehicle }) =>
      "site" in scope || ("charger" in scope ? charger === scope.charger : vehicle === scope.vehicle),
  );

/** `HH:MM` in the zone of the site. */
export const clockIn = (at: number): string => clockTime(zone.value, at);

/** The next moment at which the clocks of the site show this time. */
export const nextAt = (clock: string): number => nextTime(zone.value, now.value, clock);

/** End of an override that no time of day ends. */
function endText(end: Exclude<End, "at">, energy: string): string {
  const words = t.hold;
  switch (end) {
    case "events":
      return words.untilEvents;
    case "unplugged":
      return words.untilIsUnplugged;
    case "energy":
      return words.untilIsDelivered(`${energy} ${words.energy}`);
  }
}

/** End of an override as a sentence. `until`: its latest end, as the gateway answers it. Null: not answered yet. */
export function endLine(end: End, time: string, energy: string, until: string | null): string {
  const words = t.hold;
  if (end === "at") return words.untilAt(nearTime(zone.value, nextAt(time), now.value));
  const text = endText(end, energy);
  return until === null ? words.untilText(text) : words.untilLatest(text, naming.time(until));
}

/** Names that the site gives to what its API has by id. */
export const naming: Naming = {
  event: (id) => events.of(id)?.name ?? id,
  ask: (id) => askText(events.of(id)?.ask),
  vehicle: (id) => vehicles.of(id)?.name ?? id,
  time: (at) => nearTime(zone.value, Date.parse(at), now.value),
  departure: (vehicle) => departures.of(vehicle),
  eventOf: (vehicle) =>
    eventsNow(events.all.value, now.value).active.find(({ vehicles: targets }) => targets?.includes(vehicle))
      ?.id ?? null,
};

/** Names of the vehicles at some chargers. A charger without one has its own name. */
export const namesAt = (under: readonly Charger[]): string =>
  named(under.map(({ vehicle, charger }) => (vehicle === null ? charger : naming.vehicle(vehicle))));

/** The effect of an override on each vehicle and event, in sentences. `first`: the new level. */
export function consequences(
  scope: Scope,
  who: string,
  kind: "exempt" | "level",
  current: string,
  why: Explanation | null,
): { readonly first: string; readonly more: readonly string[] } {
  const words = t.hold;
  const under = underScope(scope);
  const limited = under.filter(({ asked }) => asked !== null);
  const most = why?.without.most ?? null;
  const exempt = most === null ? words.ownLevel : words.upTo(levelText(most));
  const after = kind === "level" ? amps(Number(current) || 0) : exempt;
  const [only] = under;
  const before = only?.allowed ?? null;
  const beforeText =
    before === null || before.kind === "release"
      ? words.ownLevel
      : before.kind === "pause"
        ? t.level.pause
        : before.kind === "power"
          ? kilowatts(before.value ?? 0)
          : amps(before.value ?? 0);
  const first =
    "site" in scope
      ? kind === "level"
        ? words.siteLevel(under.length, after)
        : words.siteGets(limited.length, namesAt(limited))
      : under.length === 0
        ? words.absent(who)
        : limited.length === 0 && kind === "exempt"
          ? words.getsSame(who, after)
          : words.gets(who, after, beforeText);
  const deviations = eventsNow(events.all.value, now.value).active.flatMap(({ id, name }) => {
    const { good, total } = compliance(id, chargers.all.value, brokersAway.value);
    const leaving = limited.filter(({ asked }) => asked?.event === id).length;
    return leaving === 0 ? [] : [words.compliance(name ?? id, Math.max(0, good - leaving), total)];
  });
  const away = under.filter((charger) => isUnheard(charger, brokersAway.value));
  const unreached = away.length === 0 ? [] : [words.unreached(namesAt(away), away.length)];
  return { first, more: [...unreached, ...("site" in scope ? [] : [words.others]), ...deviations] };
}
