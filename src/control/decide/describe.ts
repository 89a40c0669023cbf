import { auditRow, type Json } from "../../domain/audit.ts";
import type { Change } from "../../domain/changes.ts";
import type { Charger } from "../../domain/charger.ts";
import type { Delivery } from "../../domain/delivery.ts";
import {
  type Ask,
  type CoordinationEvent,
  isDatedAhead,
  type KnownEvent,
  MOST_DESCRIPTORS,
  PAYLOAD_TYPES,
  type Revision,
} from "../../domain/event.ts";
import { after, type EventId, type Instant, iso } from "../../domain/units.ts";
import type { WallClock } from "../../platform/clock.ts";
import { sanitizeForLog, counted } from "../../platform/text.ts";
import type { ExpandContext } from "../schedule/expand.ts";
import type { Intake } from "../ingest/intake.ts";
import { type Targeting, targeting, unknownVehiclesMessage } from "../schedule/targeting.ts";
import type { ControlSettings } from "../ports.ts";

/**
 * The setpoint, vehicles and time of an event: `16 A for 4 vehicles, 05:00:00 to 06:00:00, spread 600 s,
 * priority 1`.
 */
export function formatAsk(
  revision: Revision,
  aim: Targeting,
  settings: ControlSettings,
  clock: WallClock,
): string {
  const { event } = revision;
  const spread = event.randomizeStart > 0 ? `, spread ${event.randomizeStart / 1000} s` : "";
  const priority = event.priority === null ? "no priority" : `priority ${event.priority}`;
  return `${level(event.ask, settings)} for ${counted(aim.vehicles.size, "vehicle")}, ${span(revision, clock)}${spread}, ${priority}`;
}

/** The differences of an edit that matter to an operator: `until 06:30:00 -> 06:00:00, 16 A -> 10 A`. */
export function formatChange(
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

/** Warnings about an event, a few words each. None of them is an error. */
export function eventWarnings(
  revision: Revision,
  aim: Targeting,
  { settings, vehicles }: Pick<ExpandContext, "settings" | "vehicles">,
  reach: LevelRange,
  now: Instant,
): readonly string[] {
  const { event } = revision;
  const warnings: string[] = [];
  if (event.ask.kind === "unknown")
    warnings.push(
      `payload type ${sanitizeForLog(event.ask.payloadType)} is not known, ${Object.values(PAYLOAD_TYPES).join(" and ")} are: never acted on`,
    );
  if (isDatedAhead(event.revision, now))
    warnings.push(
      `its date ${iso(event.revision)} is more than a day ahead: a later edit counts once it was fetched`,
    );
  if (event.duration <= 0) warnings.push("its duration is zero: never acted on");
  else if (after(endOf(revision), event.randomizeStart) <= now) warnings.push("it is over already");
  if (aim.untargeted)
    warnings.push(`it has no targets: ${settings.untargeted === "all" ? "all vehicles" : "nobody"}`);
  const unknown = unknownVehiclesMessage(aim, vehicles);
  if (unknown !== null && settings.sharesAccount !== true) warnings.push(unknown);
  if (aim.foreignTypes.length > 0)
    warnings.push(
      `target types ${sanitizeForLog(aim.foreignTypes.join(", "))} mean no vehicles here, only ${settings.vehicleTargetTypes.join(", ")} (control.vehicleTargetTypes)`,
    );
  if (isUnitDoubtful(event.ask, settings, reach)) {
    warnings.push(
      `${level(event.ask, settings)} is far outside what the chargers can do: are the units right?`,
    );
  }
  return warnings;
}

/** The largest maximum and the smallest minimum of all chargers, in A and in W; null where none declares one. */
export interface LevelRange {
  readonly current: { readonly least: number | null; readonly most: number | null };
  readonly power: { readonly least: number | null; readonly most: number | null };
}

/** Computed once: a burst of events must not walk through all chargers each time. */
export function levelRangeOf(chargers: readonly Charger[]): LevelRange {
  const over = (limits: (charger: Charger) => readonly [number | null, number | null]) => {
    const all = chargers.map(limits);
    const minima = all.flatMap(([least]) => least ?? []);
    const maxima = all.flatMap(([, most]) => most ?? []);
    return {
      least: minima.length === 0 ? null : minima.reduce((a, b) => Math.min(a, b)),
      most: maxima.length === 0 ? null : maxima.reduce((a, b) => Math.max(a, b)),
    };
  };
  return {
    current: over(({ minCurrent, maxCurrent, minPower, maxPower, phases, voltage }) => {
      const ratio = 1 / (phases * voltage);
      return [minCurrent ?? times(minPower, ratio), maxCurrent ?? times(maxPower, ratio)];
    }),
    power: over(({ minCurrent, maxCurrent, minPower, maxPower, phases, voltage }) => {
      const ratio = phases * voltage;
      return [minPower ?? times(minCurrent, ratio), maxPower ?? times(maxCurrent, ratio)];
    }),
  };
}

/**
 * True: the level is over 20 times the largest maximum, or under 1/20 of the smallest minimum.
 * The partner probably mixed up A and W, or W and kW.
 */
function isUnitDoubtful(ask: Ask, settings: ControlSettings, reach: LevelRange): boolean {
  if (ask.kind === "unknown" || ask.level === 0) return false;
  const asked = Math.abs(ask.level) * (ask.kind === "power" && settings.powerUnit === "kW" ? 1000 : 1);
  const { least, most } = reach[ask.kind];
  return (most !== null && asked > 20 * most) || (least !== null && asked < least / 20);
}

const times = (limit: number | null, ratio: number): number | null => (limit === null ? null : limit * ratio);

function level(ask: Ask, { powerUnit }: ControlSettings): string {
  switch (ask.kind) {
    case "current":
      return `${ask.level} A`;
    case "power":
      return `${ask.level} ${powerUnit}`;
    case "unknown":
      return sanitizeForLog(ask.payloadType);
  }
}

const endOf = ({ event, start }: Revision): Instant => after(start, event.duration);
const span = (revision: Revision, clock: WallClock): string =>
  `${clock(revision.start)} to ${clock(endOf(revision))}`;
const difference = (what: string, before: string, now: string): string | null =>
  before === now ? null : `${what} ${before} -> ${now}`;

/** `event EV-7731 "Evening peak"`. */
export const nameOf = ({ id, name }: Pick<CoordinationEvent, "id" | "name">): string =>
  name === "" ? `event ${id}` : `event ${id} "${sanitizeForLog(name)}"`;

/** Parts of the state of control that a row about an event needs. */
interface DescribedBy {
  readonly expansion: ExpandContext;
  readonly settings: ControlSettings;
  readonly wallClock: WallClock;
  readonly levelRange: LevelRange;
}

/** The row of an event that is new, changed or withdrawn. `before`: the event as it was known. */
export function eventAudit(
  { expansion, settings, wallClock, levelRange }: DescribedBy,
  known: KnownEvent,
  before: KnownEvent | undefined,
  outcome: Intake["outcome"],
  { at, source }: Delivery,
): Change {
  if (known.kind === "withdrawn") {
    const name = before?.kind === "live" ? nameOf(before.revision.event) : `event ${known.id}`;
    const message = `${name} was withdrawn (${source})`;
    return eventRow(at, known.id, message, { outcome, source });
  }
  const { event, start } = known.revision;
  const aim = targeting(event, expansion);
  const earlier = before?.kind === "live" ? before.revision : null;
  const asks = formatAsk(known.revision, aim, settings, wallClock);
  const changed = earlier === null ? "" : `, ${formatChange(earlier, known.revision, settings, wallClock)}`;
  const odd = eventWarnings(known.revision, aim, expansion, levelRange, at);
  const sentences = [
    `${nameOf(event)} ${outcome === "changed" ? `changed${changed}` : "is new"} (${source}): ${asks}`,
    ...odd,
  ];
  return eventRow(at, known.id, sentences.join("; "), {
    outcome,
    source,
    revision: iso(event.revision),
    start: iso(start),
    durationMs: event.duration,
    randomizeStartMs: event.randomizeStart,
    priority: event.priority,
    ask: askFacts(event.ask),
    hash: event.hash,
    targets: targetFacts(aim),
    reports: event.reports.slice(0, MOST_DESCRIPTORS).map(({ payloadType, readingType }) => ({
      payloadType: payloadType.slice(0, MOST_NAME),
      readingType: readingType.slice(0, MOST_NAME),
    })),
    odd,
  });
}

/** Caps on names in the record: characters of each, and number of names. */
const MOST_NAME = 128;
const MOST_NAMES = 20;

const askFacts = (ask: Ask): Json =>
  ask.kind === "unknown" ? { ...ask, payloadType: ask.payloadType.slice(0, MOST_NAME) } : { ...ask };

const targetFacts = (aim: Targeting): Json => ({
  vehicles: aim.vehicles.size,
  foreignVehicles: aim.foreignVehicles,
  unknownVehicles: aim.unknownIds.map((id) => id.slice(0, MOST_NAME)),
  foreignTypes: aim.foreignTypes.slice(0, MOST_NAMES).map((type) => type.slice(0, MOST_NAME)),
});

/** The row of a delete that came without the revision that it deletes. */
export function unprovenDelete(id: EventId, { at, source }: Delivery): Change {
  const message = `a delete of event ${id} came without a revision that counts (${source}): the event is fetched by its id`;
  return eventRow(at, id, message, { outcome: "unproven", source });
}

export const eventRow = (at: Instant, event: EventId | null, message: string, details: Json): Change =>
  auditRow("event", at, message, { event, facts: details });
