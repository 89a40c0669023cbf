import type { WallClock } from "../reason.ts";
import type { Charger } from "../site/charger.ts";
import { after, type Instant } from "../units.ts";
import type { Ask, CoordinationEvent } from "./event.ts";
import type { Revision } from "./known.ts";
import type { ControlSettings } from "./settings.ts";
import type { Targeting } from "./targeting.ts";

/** What an event asks, of whom and when: `16 A for 4 vehicles, 05:00:00 to 06:00:00, spread 600 s, priority 1`. */
export function askInWords(
  revision: Revision,
  aim: Targeting,
  settings: ControlSettings,
  clock: WallClock,
): string {
  const { event } = revision;
  const count = aim.vehicles.size === 1 ? "1 vehicle" : `${aim.vehicles.size} vehicles`;
  const spread = event.randomizeStart > 0 ? `, spread ${event.randomizeStart / 1000} s` : "";
  const priority = event.priority === null ? "no priority" : `priority ${event.priority}`;
  return `${level(event.ask, settings)} for ${count}, ${span(revision, clock)}${spread}, ${priority}`;
}

/** What a person would ask about first when an event changed: `until 06:30:00 -> 06:00:00, 16 A -> 10 A`. */
export function changeInWords(
  before: Revision,
  now: Revision,
  settings: ControlSettings,
  clock: WallClock,
): string {
  const changes = [
    difference("from", clock(before.start), clock(now.start)),
    difference("until", clock(endOf(before)), clock(endOf(now))),
    difference("asks", level(before.event.ask, settings), level(now.event.ask, settings)),
    difference("spread", `${before.event.randomizeStart / 1000} s`, `${now.event.randomizeStart / 1000} s`),
    difference("priority", String(before.event.priority), String(now.event.priority)),
    JSON.stringify(before.event.targets) === JSON.stringify(now.event.targets) ? null : "other targets",
    JSON.stringify(before.event.reports) === JSON.stringify(now.event.reports) ? null : "other reports",
  ].filter((change) => change !== null);
  return changes.length === 0 ? "nothing that is acted on" : changes.join(", ");
}

/** What is odd about an event, each in a few words; none of it is an error (DESIGN 5.2, 5.3). */
export function oddities(
  revision: Revision,
  aim: Targeting,
  settings: ControlSettings,
  chargers: Iterable<Charger>,
  now: Instant,
): readonly string[] {
  const { event } = revision;
  const odd: string[] = [];
  if (event.ask.kind === "unknown")
    odd.push(`payload type ${event.ask.payloadType} is not known: never acted on`);
  if (event.duration <= 0) odd.push("its duration is zero: never acted on");
  else if (after(endOf(revision), event.randomizeStart) <= now) odd.push("it is over already");
  if (aim.untargeted)
    odd.push(`it has no targets: ${settings.untargeted === "all" ? "all vehicles" : "nobody"}`);
  if (aim.foreignVehicles > 0)
    odd.push(`${aim.foreignVehicles} of its vehicles ${aim.foreignVehicles === 1 ? "is" : "are"} not ours`);
  if (aim.foreignTypes.length > 0)
    odd.push(`target types ${aim.foreignTypes.join(", ")} mean no vehicles here`);
  if (unitsLookWrong(event.ask, settings, chargers)) {
    odd.push(`${level(event.ask, settings)} is far outside what the chargers can do: are the units right?`);
  }
  return odd;
}

/** An ask over 20 times the largest charger maximum, or under 1/20 of the smallest minimum, smells of A for W or W for kW. */
function unitsLookWrong(ask: Ask, settings: ControlSettings, chargers: Iterable<Charger>): boolean {
  if (ask.kind === "unknown" || ask.level === 0) return false;
  const asked = Math.abs(ask.level) * (ask.kind === "power" && settings.powerUnit === "kW" ? 1000 : 1);
  const [maxima, minima]: [number[], number[]] = [[], []];
  for (const { minCurrent, maxCurrent, minPower, maxPower, phases, voltage } of chargers) {
    const ratio = phases * voltage;
    const [least, most] =
      ask.kind === "power"
        ? [minPower ?? times(minCurrent, ratio), maxPower ?? times(maxCurrent, ratio)]
        : [minCurrent ?? times(minPower, 1 / ratio), maxCurrent ?? times(maxPower, 1 / ratio)];
    if (least !== null) minima.push(least);
    if (most !== null) maxima.push(most);
  }
  const tooMuch = maxima.length > 0 && asked > 20 * maxima.reduce((a, b) => Math.max(a, b));
  return tooMuch || (minima.length > 0 && asked < minima.reduce((a, b) => Math.min(a, b)) / 20);
}

const times = (limit: number | null, ratio: number): number | null => (limit === null ? null : limit * ratio);

function level(ask: Ask, { powerUnit }: ControlSettings): string {
  switch (ask.kind) {
    case "current":
      return `${ask.level} A`;
    case "power":
      return `${ask.level} ${powerUnit}`;
    case "unknown":
      return ask.payloadType;
  }
}

const endOf = ({ event, start }: Revision): Instant => after(start, event.duration);
const span = (revision: Revision, clock: WallClock): string =>
  `${clock(revision.start)} to ${clock(endOf(revision))}`;
const difference = (what: string, before: string, now: string): string | null =>
  before === now ? null : `${what} ${before} -> ${now}`;

/** `event EV-7731 "Evening peak"`. */
export const nameOf = ({ id, name }: Pick<CoordinationEvent, "id" | "name">): string =>
  name === "" ? `event ${id}` : `event ${id} "${name}"`;
