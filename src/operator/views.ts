import { commandId, isLimiting } from "../core/control/command.ts";
import { hasEnded } from "../core/control/absence.ts";
import type { KnownEvent } from "../core/control/known.ts";
import { targeting } from "../core/control/targeting.ts";
import type { Depot } from "../core/depot.ts";
import { chargerState } from "../core/site/chargerState.ts";
import type { Json } from "../core/audit.ts";
import type { PartnerHealth } from "../core/partnerHealth.ts";
import { after, type Instant, iso } from "../core/units.ts";

/** What the daemon knows of itself beside the depot. */
export interface Vitals {
  readonly site: string;
  readonly epoch: number;
  readonly ready: boolean;
  readonly lookedAt: Instant | null;
  readonly partner: PartnerHealth;
  readonly broker: boolean;
  /** Each with its end, and whether that is near. */
  readonly certificates: Json;
  readonly store: Json;
  /** The newest of what could not be read. */
  readonly quarantine: Json;
}

/** Is the system alive: partner, broker, chargers, clock, state. */
export function statusView(depot: Depot, now: Instant, vitals: Vitals): Json {
  const { partner } = vitals;
  const records = [...depot.commands.values()];
  const next = depot.next();
  return {
    site: vitals.site,
    mode: depot.settings.mode,
    ready: vitals.ready,
    now: iso(now),
    epoch: vitals.epoch,
    lookedAt: vitals.lookedAt === null ? null : iso(vitals.lookedAt),
    next: next === undefined ? null : iso(next),
    partner: {
      ok: partner.everAnswered && partner.failures === 0,
      answeredAt: partner.everAnswered ? iso(partner.answeredAt) : null,
      failures: partner.failures,
      lastFailure: partner.lastFailure,
      stale: partner.stale,
      skewMs: partner.skew,
    },
    broker: { connected: vitals.broker },
    chargers: {
      total: depot.chargers.size,
      online: [...depot.presence.values()].filter(({ online }) => online === true).length,
      unreachable: [...depot.chargers.keys()].filter((id) => depot.silence.has(id)).length,
      limited: records.filter(isLimiting).length,
      followed: records.filter(({ progress }) => progress === "followed").length,
      notFollowed: records.filter(({ progress }) => progress === "notFollowed").length,
      refused: records.filter(({ progress }) => progress === "refused").length,
    },
    events: { known: depot.known.size, dispatches: depot.agenda.size },
    certificates: vitals.certificates,
    store: vitals.store,
    quarantine: vitals.quarantine,
  };
}

/** Every event that is known, the newest start first. */
export function eventsView(depot: Depot, now: Instant): Json {
  return [...depot.known.values()]
    .toSorted((a, b) => startOf(b) - startOf(a))
    .map((known) => eventView(depot, known, now));
}

const startOf = (known: KnownEvent): number =>
  known.kind === "live" ? known.revision.start : known.receivedAt;

function eventView(depot: Depot, known: KnownEvent, now: Instant): Json {
  if (known.kind === "withdrawn") {
    return { id: known.id, state: "withdrawn", withdrawnAt: iso(known.receivedAt) };
  }
  const { event, start } = known.revision;
  const aim = targeting(event, depot.expansion);
  return {
    id: event.id,
    name: event.name,
    programId: event.programId,
    state: hasEnded(known, now) ? "ended" : start <= now ? "active" : "planned",
    priority: event.priority,
    start: iso(start),
    end: iso(after(start, event.duration)),
    randomizeStartMs: event.randomizeStart,
    ask: { ...event.ask },
    vehicles: [...aim.vehicles],
    foreignVehicles: aim.foreignVehicles,
    reportDescriptors: event.reports.length,
    source: known.source,
    receivedAt: iso(known.receivedAt),
    modified: iso(event.revision),
  };
}

/** Every charger: what is asked, allowed and measured, and why. */
export const chargersView = (depot: Depot, now: Instant): Json =>
  [...depot.chargers.values()].map((charger) => {
    const { id } = charger;
    const verdict = depot.verdictOn(charger, now);
    const why = depot.whyOf(charger);
    return {
      ...chargerState(verdict, depot.commands.get(id), depot.presenceOf(id), why, depot.silence.has(id)),
      writes:
        charger.writesPerHour === null
          ? null
          : { lastHour: depot.writes.inLastHour(id, now), most: charger.writesPerHour },
      commissioning: depot.loans.has(id),
    };
  });

/** Every vehicle: where it is, and what is planned for it. */
export const vehiclesView = (depot: Depot, now: Instant): Json =>
  [...depot.vehicles.values()].map((vehicle) => {
    const charger = depot.plugs.where(vehicle.id);
    const record = charger === null ? undefined : depot.commands.get(charger);
    return {
      id: vehicle.id,
      name: vehicle.name,
      charger,
      command: record === undefined ? null : commandId(record.command),
      planned: depot.agenda
        .of(vehicle.id)
        .filter(({ until }) => until > now)
        .toSorted((a, b) => a.from - b.from)
        .slice(0, MOST_PLANNED)
        .map(({ event, from, until, offset, setpoint }) => ({
          event: event.id,
          from: iso(from),
          until: iso(until),
          offsetMs: offset,
          asked: { ...setpoint },
        })),
    };
  });

/** A page shows what comes next, not a year. */
const MOST_PLANNED = 100;

/** What the metrics count in the depot. */
export const depotGauges = (depot: Depot) => ({
  dispatches: () => depot.agenda.size,
  chargers: () => {
    const counts = { online: 0, offline: 0, unreachable: 0, silent: 0 };
    for (const id of depot.chargers.keys()) {
      const { online, heardAt } = depot.presenceOf(id);
      if (online === false) counts.offline += 1;
      else if (depot.silence.has(id)) counts.unreachable += 1;
      else counts[heardAt === null ? "silent" : "online"] += 1;
    }
    return counts;
  },
  commands: () => {
    const counts: Record<string, number> = {};
    for (const { progress } of depot.commands.values()) counts[progress] = (counts[progress] ?? 0) + 1;
    return counts;
  },
});
