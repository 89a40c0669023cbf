import { eventWarnings } from "../control/decide/describe.ts";
import { asSwitched, wattsPerAmpere } from "../control/decide/limits.ts";
import { formatHold, holdFacts } from "../control/holds/holds.ts";
import { hasEnded } from "../control/ingest/absence.ts";
import { targeting, unknownVehicles } from "../control/schedule/targeting.ts";
import { chargerState } from "../control/send/chargerState.ts";
import type { ControlState } from "../control/state.ts";
import type { Json } from "../domain/audit.ts";
import type { Charger } from "../domain/charger.ts";
import { commandId, type CommandRecord, isLimiting, reallySent } from "../domain/command.ts";
import type { KnownEvent, TrackedEvent } from "../domain/event.ts";
import type { Desired } from "../domain/setpoint.ts";
import { after, type Instant, iso, isoOrNull } from "../domain/units.ts";
import { inSteps, type ResumableTask } from "../platform/cooperative.ts";
import type { Vehicle } from "../domain/vehicle.ts";
import { bindingView } from "./bindings.ts";
import { reportedFacts } from "./chargerActions.ts";
import type { DepartureOf } from "./departures.ts";
import { shownPeriod } from "./mode.ts";
import { isUnreachable, problems } from "./problems.ts";
import type { SiteCounts } from "./gauges.ts";
import type { ProblemSources } from "./siteProblems.ts";

/** State of the daemon beside the control state. */
export interface Vitals extends ProblemSources {
  readonly site: string;
  readonly timezone: string;
  readonly epoch: number;
  /** Null: no other process can lead the site. */
  readonly leader: Json;
  readonly ready: boolean;
  readonly lookedAt: Instant | null;
  /** Last webhook delivery and last answered poll of the list, null: none since the start. End of the token, null: none. */
  readonly contact: Readonly<Record<"webhookAt" | "polledAt" | "tokenUntil", Instant | null>>;
  readonly broker: { readonly connected: boolean; readonly reason: string | null; readonly away: Json };
  readonly alarms: Json;
  /** Certificates, each with its end and a warning if that is near. Configuration null: the site has no file of its own. */
  readonly certificates: Json;
  readonly configuration: Json;
  /** Refused webhook requests since the start, by reason. Null: no webhook listener. */
  readonly webhookRefused: Json;
  readonly store: Json;
  /** Newest input that could not be read. */
  readonly quarantine: Json;
}

/** Overview of partner, broker, chargers, clock and state. */
export function* statusView(state: ControlState, now: Instant, vitals: Vitals): ResumableTask<Json> {
  const { partner } = vitals;
  const open = yield* problems(state, vitals, now);
  const chargers = yield* countChargers(state, now, vitals);
  return {
    site: vitals.site,
    timezone: vitals.timezone,
    startedAt: iso(vitals.startedAt),
    mode: state.mode.current,
    observing: state.mode.period === null ? null : shownPeriod(state, state.mode.period),
    ready: vitals.ready,
    now: iso(now),
    epoch: vitals.epoch,
    ...(vitals.leader === null ? {} : { leader: vitals.leader }),
    lookedAt: isoOrNull(vitals.lookedAt),
    next: isoOrNull(state.next() ?? null),
    partner: {
      ok: partner.everAnswered && partner.failures === 0,
      answeredAt: partner.everAnswered ? iso(partner.answeredAt) : null,
      webhookAt: isoOrNull(vitals.contact.webhookAt),
      polledAt: isoOrNull(vitals.contact.polledAt),
      failures: partner.failures,
      lastFailure: partner.lastFailure,
      stale: partner.stale,
      skewMs: partner.skew,
      tokenUntil: isoOrNull(vitals.contact.tokenUntil),
    },
    broker: vitals.broker,
    problems: open.map((problem) => ({ ...problem })),
    alarms: vitals.alarms,
    chargers,
    holds: {
      open: state.holds.open().length,
      list: state.holds
        .open()
        .slice(0, MAX_SHOWN)
        .map((hold) => ({ ...holdFacts(hold), sentence: formatHold(hold, state.wallClock) })),
    },
    events: {
      known: state.known.size,
      dispatches: state.agenda.size,
      active: yield* activeEvents(state, now),
    },
    certificates: vitals.certificates,
    configuration: vitals.configuration,
    webhook: vitals.webhookRefused === null ? null : { refused: vitals.webhookRefused },
    store: vitals.store,
    quarantine: vitals.quarantine,
  };
}

/** The chargers of the status, by reach and by the progress of their last command. */
function* countChargers(state: ControlState, now: Instant, vitals: Vitals) {
  let [online, unreachable] = [0, 0];
  yield* inSteps(state.chargers.keys(), (id) => {
    if (state.presence.of(id).online === true && vitals.isLinked(id)) online += 1;
    if (isUnreachable(state, id, vitals, now)) unreachable += 1;
  });
  const counts = { limited: 0, notSent: 0, followed: 0, notFollowed: 0, refused: 0 };
  yield* inSteps(state.commands.values(), (record) => {
    const { progress } = record;
    if (isLimiting(record)) counts[hasLeft(record) ? "limited" : "notSent"] += 1;
    if (progress === "followed" || progress === "notFollowed" || progress === "refused")
      counts[progress] += 1;
  });
  return { total: state.chargers.size, online, unreachable, ...counts };
}

/** Events that have begun and are not over, the first to end first. */
function* activeEvents(state: ControlState, now: Instant): ResumableTask<Json> {
  const active: (KnownEvent & { readonly kind: "live" })[] = [];
  yield* inSteps(state.known.values(), (known) => {
    if (known.kind === "live" && known.revision.start <= now && !hasEnded(known, now)) active.push(known);
  });
  const endOf = ({ revision: { event, start } }: (typeof active)[number]): Instant =>
    after(start, event.duration);
  const shown: Json[] = [];
  for (const known of active.toSorted((a, b) => endOf(a) - endOf(b)).slice(0, MAX_SHOWN)) {
    const { event, start } = known.revision;
    const { ask } = event;
    const unit = ask.kind === "power" ? state.settings.powerUnit : "A";
    shown.push({
      id: event.id,
      name: event.name,
      asked: ask.kind === "unknown" ? ask.payloadType : `${ask.level} ${unit}`,
      vehicles: targeting(event, state.expansion).vehicles.size,
      start: iso(start),
      end: iso(endOf(known)),
      modified: iso(event.revision),
    });
    yield;
  }
  return shown;
}

/** True if the broker acknowledged this command, or the level before it. */
function hasLeft(record: CommandRecord): boolean {
  const sent = reallySent(record);
  if (sent === null) return false;
  return sent.sentAt !== null || (sent.replaces !== null && sent.replaces.kind !== "release");
}

/** Every known event, the newest start first. Events that are over are read from the disk one by one. */
export async function* eventsView(state: ControlState, now: Instant): AsyncGenerator<Json> {
  const newestFirst = [...state.known.values()].toSorted((a, b) => startOf(b) - startOf(a));
  for (const { id } of newestFirst) {
    const known = await state.known.readNow(id);
    // Forgotten meanwhile, or unreadable. The store logs that.
    if (known !== undefined && known !== null) yield eventView(state, known, now);
  }
}

function startOf(known: TrackedEvent): number {
  if (known.kind === "over") return known.start;
  return known.kind === "live" ? known.revision.start : known.receivedAt;
}

export function eventView(state: ControlState, known: KnownEvent, now: Instant): Json {
  if (known.kind === "withdrawn") {
    return { id: known.id, state: "withdrawn", withdrawnAt: iso(known.receivedAt) };
  }
  const { event, start } = known.revision;
  const aim = targeting(event, state.expansion);
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
    unknownVehicles: unknownVehicles(aim, state.vehicles),
    odd: eventWarnings(known.revision, aim, state.expansion, state.levelRange, known.receivedAt),
    reportDescriptors: event.reports.length,
    source: known.source,
    receivedAt: iso(known.receivedAt),
    modified: iso(event.revision),
  };
}

/** Every charger with its setpoint, its limits, its readings and the reason. A row is built when it is asked for. */
export const chargersView = (state: ControlState, now: Instant): Iterable<Json> =>
  state.chargers.values().map((charger) => chargerView(state, charger, now));

export function chargerView(state: ControlState, charger: Charger, now: Instant): Json {
  const { id } = charger;
  const [verdict, why] = [state.verdictOn(charger, now), state.whyOf(charger)];
  return {
    ...chargerState(verdict, state.commands.get(id), state.presence.of(id), why, state.silence.has(id)),
    broker: charger.broker,
    writes:
      charger.writesPerHour === null
        ? null
        : { lastHour: state.writes.inLastHour(id, now), most: charger.writesPerHour },
    commissioning: state.locks.has(id),
    binding: bindingView(state.occupancy.bindingAt(id)),
    ...reportedFacts(state, id),
  };
}

/** Every vehicle with its charger, its planned setpoints and its departure. A row is built when it is asked for. */
export const vehiclesView = (state: ControlState, now: Instant, departureOf: DepartureOf) =>
  state.vehicles.values().map((vehicle) => vehicleView(state, vehicle, now, departureOf));

export function vehicleView(
  state: ControlState,
  vehicle: Vehicle,
  now: Instant,
  departureOf: DepartureOf,
): Json {
  const charger = state.occupancy.where(vehicle.id);
  const record = charger === null ? undefined : state.commands.get(charger);
  return {
    id: vehicle.id,
    name: vehicle.name,
    charger,
    command: record === undefined ? null : commandId(record.command),
    planned: state.agenda
      .of(vehicle.id)
      .filter(({ until }) => until > now)
      .toSorted((a, b) => a.from - b.from)
      .slice(0, MAX_PLANNED)
      .map(({ event, from, until, offset, setpoint }) => ({
        event: event.id,
        from: iso(from),
        until: iso(until),
        offsetMs: offset,
        asked: { ...setpoint },
      })),
    departure: departureOf(vehicle.id),
  };
}

/** Cap on active events, and on holds, in the overview. */
const MAX_SHOWN = 20;
/** Cap on planned setpoints for each vehicle. */
const MAX_PLANNED = 100;

/** Level in watts at the declared voltage. Null: the charger is released. */
function inWatts(desired: Desired, charger?: Charger, vehicle?: Vehicle): number | null {
  switch (desired.kind) {
    case "power":
      return desired.watts;
    case "current":
      return charger === undefined
        ? null
        : desired.amperes * wattsPerAmpere(asSwitched(charger, desired), vehicle ?? null, null);
    case "pause":
      return 0;
    case "release":
      return null;
  }
}

/** Counts of the control state for the metrics. */
export function* countDepot(state: ControlState, now: Instant): ResumableTask<Omit<SiteCounts, "problems">> {
  const events = { active: 0, planned: 0 };
  yield* inSteps(state.known.values(), (known) => {
    if (known.kind === "live" && !hasEnded(known, now))
      events[known.revision.start <= now ? "active" : "planned"] += 1;
  });
  const chargers = { online: 0, offline: 0, unreachable: 0, silent: 0 };
  const powers = new Map<string, number>();
  yield* inSteps(state.chargers.keys(), (id) => {
    const { online, heardAt, telemetry } = state.presence.of(id);
    const isSilent = state.silence.has(id);
    if (online === false) chargers.offline += 1;
    else if (isSilent) chargers.unreachable += 1;
    else chargers[heardAt === null ? "silent" : "online"] += 1;
    if (telemetry?.powerW !== undefined && online !== false && !isSilent) powers.set(id, telemetry.powerW);
  });
  const commands: Record<string, number> = {};
  const setpoints = new Map<string, number>();
  yield* inSteps(state.commands.values(), (record) => {
    const { progress } = record;
    commands[progress] = (commands[progress] ?? 0) + 1;
    const sent = reallySent(record);
    if (sent === null || !hasLeft(record)) return;
    const { charger, vehicle, desired } = sent.command;
    const level = inWatts(
      desired,
      state.chargers.get(charger),
      vehicle === null ? undefined : state.vehicles.get(vehicle),
    );
    if (level !== null) setpoints.set(charger, level);
  });
  return { events, chargers, powers, commands, setpoints };
}
