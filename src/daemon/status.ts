import type { ChargerConnections } from "../chargers/connections.ts";
import type { Config } from "../config/schema.ts";
import type { ControlState } from "../control/state.ts";
import { type Alarm, isGraver } from "../domain/alarm.ts";
import type { Json } from "../domain/audit.ts";
import type { Store } from "../domain/store.ts";
import { type Leadership, shownLeader } from "../domain/leadership.ts";
import { periodEnd } from "../domain/hold.ts";
import { type ChargerId, type Instant, instant, iso, vehicleId } from "../domain/units.ts";
import type { Answer } from "../operator/answer.ts";
import { configurationFault, configurationStatus } from "../operator/siteConfigurations.ts";
import type { DepartureOf } from "../operator/departures.ts";
import { explainRequest, explanation, type PastDecisions } from "../operator/explanation.ts";
import type { Gauges } from "../operator/gauges.ts";
import { priceHorizons } from "../operator/listViews.ts";
import { countProblems, problems } from "../operator/problems.ts";
import { MANY_DROPS, type ProblemSources } from "../operator/siteProblems.ts";
import { openAlarms } from "../operator/alarms.ts";
import { countDepot, statusView } from "../operator/views.ts";
import { runCooperatively } from "../platform/cooperative.ts";
import type { PriceBoard } from "../prices/board.ts";
import { isAwaited } from "../store/postgres/database.ts";
import type { SiteState } from "../store/postgres/fleetList.ts";
import type { WebhookListener } from "../vtn/webhook.ts";
import type { CertificatesInUse } from "./certificates.ts";
import type { Edges, Partner } from "./edges.ts";
import type { ControlLoop, PartnerEvents } from "./pipeline.ts";
import type { Site } from "./site.ts";

/** The running parts that the status shows. */
interface StatusParts {
  readonly connections: ChargerConnections;
  readonly partner: Pick<Partner, "reports" | "tokenUntil">;
  readonly watch: PartnerEvents["watch"];
  readonly loop: Pick<ControlLoop, "evaluated" | "clockDoubtedSince">;
  /** Null: no webhook is configured. */
  readonly webhook: Pick<WebhookListener, "unbound" | "refused" | "refusedDeliveries"> | null;
  readonly certificates: Pick<CertificatesInUse, "view">;
  /** Reason why users and tokens cannot be read. Null: they can, or there is no login. */
  readonly accessFault: () => string | null;
  readonly configurations: Edges["configurations"];
  /** Receivers of alarms that do not accept them. */
  readonly failingReceivers: () => ProblemSources["failingReceivers"];
  readonly allAlarms: () => readonly Alarm[];
}

/** Answers the question why a charger has its setpoint: now, ahead or behind. */
export const explanationsOf =
  (
    state: ControlState,
    store: Store,
    now: () => Instant,
    departureOf: DepartureOf,
    isLinked: (charger: ChargerId) => boolean,
  ) =>
  async (query: Readonly<Record<string, unknown>>): Promise<Answer<Json>> => {
    const request = explainRequest(query);
    if ("ok" in request) return request;
    const past: PastDecisions = {
      decisionAt: async (charger, notAfter) =>
        (await store.audit({ charger, notAfter, kind: "decision", newest: true, limit: 1 }))[0] ?? null,
      seats: (vehicle, from, until) => store.seats(vehicle, from, until),
    };
    const answer = await explanation(state, past, request, now(), isLinked);
    if (!answer.ok) return answer;
    const { vehicle } = answer.value;
    // The departure is that of now.
    const hasDeparture = vehicle !== null && (request.at === null || request.at >= now());
    return {
      ok: true,
      value: { ...answer.value, departure: hasDeparture ? departureOf(vehicleId(vehicle)) : null },
    };
  };

/** The site in numbers, for the list of a fleet. */
export function siteState(
  { chargers, presence, silence }: Pick<ControlState, "chargers" | "presence" | "silence">,
  alarms: readonly Alarm[],
): SiteState {
  let live = 0;
  for (const id of chargers.keys()) {
    const { online, heardAt } = presence.of(id);
    if (online !== false && heardAt !== null && !silence.has(id)) live += 1;
  }
  const open = alarms.filter(({ state }) => state === "open");
  const [worst] = open.map(({ severity }) => severity).toSorted((a, b) => (isGraver(a, b) ? -1 : 1));
  return { chargers: chargers.size, live, alarms: open.length, worst: worst ?? null };
}

/** The running parts that the gauges show. */
interface GaugeParts extends Pick<StatusParts, "connections" | "watch"> {
  readonly partner: Pick<Partner, "tokenAge">;
  readonly certificates: Pick<CertificatesInUse, "ends">;
  readonly board: PriceBoard;
  readonly alarms: { readonly counts: Gauges["alarms"]; readonly waiting: Gauges["noticesWaiting"] };
  readonly departures: { readonly counts: Gauges["departures"] };
  readonly problemSources: () => ProblemSources;
}

/** Values of the site's gauges, read at each scrape. */
export function siteGauges(
  { state, store, schedule, leadership, now }: Site,
  { connections, partner, watch, certificates, board, alarms, departures, problemSources }: GaugeParts,
): Gauges {
  return {
    *counts() {
      const counts = yield* countDepot(state, now());
      return { ...counts, problems: countProblems(yield* problems(state, problemSources(), now())) };
    },
    dispatches: () => state.agenda.size,
    brokerUp: () => connections.connected,
    leads: () => (leadership === null ? null : leadership.state === "leading"),
    leasesLost: () => leadership?.terms.lost ?? null,
    failover: () => seconds(leadership?.failover ?? null),
    observing: () => {
      const { period } = state.mode;
      return seconds(period === null ? null : periodEnd(period) - now());
    },
    partnerUp: () => watch.isUp,
    partnerSilence: () => (now() - watch.health.answeredAt) / 1000,
    tokenAge: () => seconds(partner.tokenAge()),
    disk: () => store.stats(),
    certificateEnds: () => certificates.ends(),
    priceHorizons: () => priceHorizons(board, now()),
    reportsWaiting: () => schedule.outbox.size,
    alarms: alarms.counts,
    noticesWaiting: alarms.waiting,
    departures: departures.counts,
  };
}

const seconds = (ms: number | null): number | null => (ms === null ? null : ms / 1000);

/** The status of the running daemon, and the facts from which problems are found. */
export function siteStatus(
  config: Config,
  site: Site,
  parts: StatusParts,
): { readonly status: () => Promise<Json>; readonly problemSources: () => ProblemSources } {
  const { store, state, now, monotonic } = site;
  const { connections, partner, watch, loop, webhook, certificates, allAlarms, configurations } = parts;
  const sourcesNow = (): ProblemSources => problemSources(config, site, parts);
  const status = async (): Promise<Json> => {
    // A database that is away must not hide the status, which says so.
    const rejected = await store.quarantine(20).catch((error: unknown) => {
      if (site.leadership === null || !isAwaited(error)) throw error;
      return [];
    });
    const lookedAt = loop.evaluated()?.at ?? null;
    const sources = sourcesNow();
    const { brokersAway } = sources;
    const status = statusView(state, now(), {
      ...sources,
      site: config.site.id,
      timezone: config.site.timezone,
      epoch: site.epoch,
      leader: site.leadership === null ? null : shownLeader(site.leadership.view(now())),
      ready: lookedAt !== null,
      lookedAt,
      contact: { ...watch.contact, tokenUntil: partner.tokenUntil() },
      broker: {
        connected: connections.connected,
        reason: brokersAway[0]?.reason ?? null,
        away: brokersAway.map(({ name }) => name),
      },
      alarms: openAlarms(allAlarms()),
      certificates: certificates.view(),
      configuration: configurationStatus(configurations, state),
      webhookRefused: webhook === null ? null : { ...webhook.refused() },
      store: { ...store.stats() },
      quarantine: rejected.map((row) => ({ ...row, at: iso(row.at) })),
    });
    return runCooperatively(status, monotonic);
  };
  return { status, problemSources: sourcesNow };
}

/** The facts from which problems are found, as they are now. */
function problemSources(
  config: Config,
  { store, outages, startedAt, leadership, retentionAlarms, now }: Site,
  { connections, partner, watch, loop, webhook, failingReceivers, accessFault, configurations }: StatusParts,
): ProblemSources {
  const { failing } = store.stats();
  const brokers = ["", ...config.brokers.keys()];
  return {
    startedAt,
    partner: watch.health,
    maxSkew: config.clock.maxSkew,
    brokersAway: brokers.flatMap((name) => {
      const since = outages.awaySince(name === "" ? "broker" : `broker ${name}`);
      return since === null ? [] : [{ name, since, reason: connections.troubleOf(name) }];
    }),
    brokersUnstable: brokers.flatMap((name) => {
      const drops = connections.recentDropsOf(name);
      return drops < MANY_DROPS ? [] : [{ name, drops }];
    }),
    isLinked: (charger) => connections.isLinked(charger),
    failingCommits:
      failing === null ? null : { since: instant(now() - failing.forMs), reason: failing.reason },
    database:
      leadership === null
        ? null
        : { doubtedSince: leadership.state === "in doubt" ? doubtedSince(leadership, now()) : null },
    clockDoubtedSince: loop.clockDoubtedSince(),
    reportRequests: partner.reports.nearlySpent(),
    retention: retentionAlarms.open,
    failingReceivers: failingReceivers(),
    accessFault: accessFault(),
    configurationFault: configurationFault(configurations),
    unboundWebhook: webhook?.unbound ?? null,
    refusedWebhooks: webhook?.refusedDeliveries() ?? null,
  };
}

/** The doubt begins before the end of the lease. */
const doubtedSince = (leadership: Leadership, now: Instant): Instant =>
  instant(Math.min(now, leadership.view(now).leaseUntil));
