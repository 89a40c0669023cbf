import type { Departure, Hold, HoldPreview } from "./apiAnswers.ts";
import { kilowattHours, levelText } from "./format.ts";
import { t } from "./texts.ts";

/** Names of events and vehicles for people, and moments in the zone of the site. */
export interface Naming {
  readonly event: (id: string) => string;
  /** The level that an event asks for. */
  readonly ask: (event: string) => string;
  readonly vehicle: (id: string) => string;
  readonly time: (at: string) => string;
  /** The next departure of a vehicle, as the page knows it. */
  readonly departure: (vehicle: string) => Departure | undefined;
  /** The active event that asks for a level of this vehicle. Null: none. */
  readonly eventOf: (vehicle: string) => string | null;
}

/** An answer that may still be on its way, or refused. */
interface Awaited {
  readonly value: HoldPreview | null;
  readonly problem: string | null;
}

/** Energy that an override takes from each event, and the overrides that it meets, as the gateway answers. */
export function previewLines({ value, problem }: Awaited, naming: Naming): readonly string[] {
  const words = t.hold;
  if (problem !== null) return [words.costUnanswered(problem)];
  if (value === null) return [words.costAwaited];
  const costs = value.costs.map(({ event, estimatedWh }) =>
    estimatedWh === null
      ? words.costUnknown(naming.event(event))
      : words.cost(energyText(estimatedWh), naming.event(event)),
  );
  return [
    ...(costs.length === 0 ? [words.costNothing] : costs),
    ...value.others.map(({ sentence }) => words.other(sentence)),
  ];
}

/** Sentences about when the vehicles are ready under an override, against their departures. */
export function departureLines(
  { value }: Awaited,
  { vehicle, time, departure }: Pick<Naming, "vehicle" | "time" | "departure">,
): readonly string[] {
  const words = t.hold;
  const all = value?.departures ?? [];
  const [only] = all;
  if (only === undefined) return [];
  if (all.length > 1) {
    const short = all.filter(({ state }) => state === "short").length;
    const before = all.filter((each) => departure(each.vehicle)?.state === "short").length;
    return [words.leavingShort(all.length, short, before)];
  }
  const [who, leaves] = [vehicle(only.vehicle), time(only.at)];
  if (only.short !== null) return [words.willBeShort(who, leaves, kilowattHours(only.short.energyWh))];
  if (only.state === "ready") return [words.isReady(who, leaves)];
  if (only.readyAt === null) return [words.readyUnknown(who, only.missing.join(", "))];
  const before = departure(only.vehicle)?.readyAt ?? null;
  const [ready, instead] = [time(only.readyAt), before === null ? null : time(before)];
  return [words.readyAt(who, ready, instead === ready ? null : instead, leaves)];
}

/** Below this, in Wh, the energy of a short override rounds to nothing. */
const LEAST_SHOWN = 50;

const energyText = (wh: number): string => (wh < LEAST_SHOWN ? t.hold.hardly : kilowattHours(wh));

/** The effect of the end of an override: who is under which event again, and how long it lasts otherwise. */
export function endConsequences(
  { effect, until, costs }: Pick<Hold, "effect" | "until" | "costs">,
  naming: Naming,
): readonly string[] {
  const words = t.hold;
  const under = Map.groupBy(
    effect.filter(({ applies }) => applies !== false),
    // A hold that overrules no event may still keep its vehicle from one.
    ({ overrules, vehicle }) => overrules?.[0] ?? (vehicle === null ? null : naming.eventOf(vehicle)),
  );
  const lines = [...under].flatMap(([event, rows]) => {
    if (event === null) return [];
    const who = named(
      rows.map(({ vehicle, charger }) => (vehicle === null ? charger : naming.vehicle(vehicle))),
    );
    return [words.endFollows(who, rows.length, naming.event(event), naming.ask(event))];
  });
  return [
    words.endWill,
    ...(lines.length === 0 ? [words.endNothing] : lines),
    ...(until === null ? [] : [words.endElse(naming.time(until))]),
    ...(costs ?? []).flatMap(({ event, estimatedWh }) =>
      estimatedWh === null ? [] : [words.endCost(energyText(estimatedWh), naming.event(event))],
    ),
  ];
}

/** Names that a sentence holds. More are counted. */
const MOST_NAMES = 6;

/** `Bus 201, Bus 202 and 3 more`. */
export function named(names: readonly string[]): string {
  const shown = names.slice(0, MOST_NAMES).join(", ");
  const more = names.length - MOST_NAMES;
  return more > 0 ? t.hold.andMore(shown, more) : shown;
}

/** An override as a line of a list: who, the level, the end. */
export function holdLine(hold: Hold, who: string, { time }: Pick<Naming, "time">): string {
  const words = t.hold;
  const level = hold.kind === "exempt" ? words.withoutEvents : levelText(hold.level);
  const until = hold.until === null ? null : time(hold.until);
  const end = lineEnd(hold);
  if (end === null) return words.line(who, level, until === null ? "" : words.lineAt(until));
  return words.line(who, level, until === null ? end : words.atTheLatest(end, until));
}

/** Null: a time alone ends it. */
function lineEnd({ end, energyWh, deliveredWh }: Hold): string | null {
  const words = t.hold;
  switch (end) {
    case "at":
      return null;
    case "events":
      return words.lineEvents;
    case "unplugged":
      return words.lineUnplugged;
    case "energy":
      return words.lineEnergy(
        kilowattHours(energyWh ?? 0),
        deliveredWh === null ? null : kilowattHours(deliveredWh),
      );
  }
}
