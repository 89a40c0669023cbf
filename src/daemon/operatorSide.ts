import { HOLD_RESULT } from "../chargers/native/messages.ts";
import type { InputFaults } from "../alarms/inputFaults.ts";
import type { Receiver } from "../alarms/notifier.ts";
import type { ChargerConnections } from "../chargers/connections.ts";
import type { Config } from "../config/schema.ts";
import type { Json } from "../domain/audit.ts";
import type { Beat } from "../domain/store.ts";
import { eventId, iso, millis } from "../domain/units.ts";
import type { ControlApi } from "../operator/controlSocket.ts";
import { eventPlan } from "../operator/eventPlan.ts";
import { handoverApi } from "../operator/handover.ts";
import { holdCosts } from "../operator/holdCosts.ts";
import { holdApi } from "../operator/holds.ts";
import { modeApi } from "../operator/mode.ts";
import { resendApi } from "../operator/resend.ts";
import type { LiveStream } from "../operator/http/stream.ts";
import type { OperatorViews } from "../operator/http/views.ts";
import { liveSource } from "../operator/live.ts";
import { pricesView, readingsView } from "../operator/listViews.ts";
import type { Metrics } from "../operator/metrics.ts";
import { problems } from "../operator/problems.ts";
import { chargersView, eventsView, vehiclesView } from "../operator/views.ts";
import { runCooperatively } from "../platform/cooperative.ts";
import { fitness, type Health } from "../platform/systemd.ts";
import { timesOfDay } from "../platform/text.ts";
import { version } from "../platform/packageRoot.ts";
import type { PriceBoard } from "../prices/board.ts";
import type { WebhookListener } from "../vtn/webhook.ts";
import { inputFaultsOnRecord, siteAlarms } from "./alarms.ts";
import type { certificatesInUse } from "./certificates.ts";
import { siteDepartures } from "./departures.ts";
import type { Partner } from "./edges.ts";
import { shownReports } from "./partnerReports.ts";
import { prove } from "./proof.ts";
import { homeAssistant } from "./homeAssistant/pipeline.ts";
import { type ControlLoop, holdResults, type PartnerEvents, type SiteInputs } from "./pipeline.ts";
import type { Site } from "./site.ts";
import { explanationsOf, siteGauges, siteStatus } from "./status.ts";
import type { StopSteps } from "./stopSteps.ts";

/** The running parts that people on site read and act on. */
interface RunningParts {
  readonly connections: ChargerConnections;
  readonly partner: Partner;
  readonly events: Pick<PartnerEvents, "watch">;
  readonly loop: Pick<ControlLoop, "evaluated" | "clockDoubtedSince">;
  /** Null: no webhook is configured. */
  readonly webhook: Pick<WebhookListener, "refused" | "refusedDeliveries"> | null;
  readonly certificates: ReturnType<typeof certificatesInUse>;
  readonly board: PriceBoard;
  readonly stream: LiveStream;
  readonly metrics: Metrics;
  readonly receivers: readonly Receiver[];
  readonly inputFaults: InputFaults;
  /** Seals proofs. */
  readonly siteKey: Buffer;
  /** Reason why users and tokens cannot be read. Null: they can, or there is no login. */
  readonly accessFault: () => string | null;
}

/** Answers of the running daemon to people on site. */
interface OperatorSide {
  readonly views: OperatorViews;
  readonly status: () => Promise<Json>;
  /** Health after a commit was tried. */
  readonly health: (committed: Beat) => Health;
  /** The first evaluation is done. */
  readonly isReady: () => boolean;
  readonly explain: ControlApi["explain"];
  readonly handover: ControlApi["handover"];
  readonly holds: ControlApi["holds"];
  readonly mode: ControlApi["mode"];
  readonly alarms: ControlApi["alarms"];
  readonly departures: ControlApi["departures"];
}

/** Interval of checks for costs of holds that are due, ms. */
const COSTS_EVERY = 30_000;

/** Views, holds and alarms of the running daemon. A feature for people on site is wired here, in one call. */
export async function operatorSide(
  stop: StopSteps,
  config: Config,
  site: Site,
  inputs: SiteInputs,
  parts: RunningParts,
): Promise<OperatorSide> {
  const { store, state, schedule, now, monotonic } = site;
  const {
    connections,
    partner,
    events,
    loop,
    webhook,
    certificates,
    board,
    stream,
    metrics,
    receivers,
    inputFaults,
  } = parts;
  /** An error there must not end control. */
  const follow = (stream$: ReturnType<typeof homeAssistant>, stopStep: string, failure: string): void => {
    const running = stream$.subscribe({ error: (error) => site.log.error({ err: error }, failure) });
    stop.add(stopStep, () => running.unsubscribe());
  };
  const { status, problemSources } = siteStatus(config, site, {
    connections,
    partner,
    watch: events.watch,
    loop,
    webhook,
    certificates,
    failingReceivers: () => alarms.failing(),
    accessFault: parts.accessFault,
  });
  await site.readAtStart(() => inputFaultsOnRecord(store, inputFaults));
  const departures = siteDepartures(
    site,
    config,
    (request) => inputs.hold$.next(request),
    await site.readAtStart(() => store.departures()),
    await site.readAtStart(() => store.alarms()),
  );
  follow(departures.forecast$, "end departures", "departures are not forecast any more");
  const alarms = await siteAlarms(site, inputs.brokerUp$, {
    problemSources,
    departures: departures.facts,
    expiring: certificates.expiring,
    publish: (path, payload) => connections.publishAboutSite(path, payload),
    inputFaults,
    receivers,
    counted: (receiver, outcome, notices) => metrics.notified(receiver, outcome, notices),
  });
  follow(alarms.alarm$, "end alarms", "alarms are not observed any more");
  const described$ = homeAssistant(inputs.brokerUp$, inputs.homeAssistantUp$, {
    config,
    state,
    now,
    alarms: alarms.counts,
    publish: (topic, payload) => connections.publishAtHome(topic, payload),
    warn: (reason) => site.log.warn({ reason }, "the broker refuses a topic for Home Assistant"),
  });
  follow(
    described$,
    "end the descriptions for Home Assistant",
    "Home Assistant gets no descriptions any more",
  );
  const health = (committed: Beat): Health => {
    const evaluated = loop.evaluated();
    return fitness({
      committed,
      sinceEvaluation: evaluated === null ? null : millis(monotonic() - evaluated.tick),
    });
  };
  const isReady = (): boolean => loop.evaluated() !== null;
  metrics.show(
    siteGauges(site, {
      connections,
      partner,
      watch: events.watch,
      certificates,
      board,
      alarms,
      departures,
      problemSources,
    }),
    monotonic,
  );
  const { of: departureOf } = departures.api;
  const explain = explanationsOf(state, store, now, departureOf);
  stream.follow(
    liveSource({ state, epoch: site.epoch, now, monotonic, status, alarm: alarms.get, departureOf }),
  );
  const holds = holdApi(state, (request) => inputs.hold$.next(request), now, isReady, monotonic);
  const costs = holdCosts({
    state,
    store,
    context: { settings: config.report, chargers: state.chargers },
    request: (request) => inputs.hold$.next(request),
    now,
    monotonic,
  });
  const costing = setInterval(() => {
    costs().catch((error: unknown) => site.log.warn({ err: error }, "the costs of holds are not known"));
  }, COSTS_EVERY);
  stop.add("end the costs of holds", () => clearInterval(costing));
  const mode = modeApi(state, (request) => inputs.mode$.next(request), now, isReady);
  const resend = resendApi(state, (request) => inputs.hold$.next(request), isReady);
  const handover = handoverApi({
    state,
    store,
    site: config.site.id,
    timeOfDay: timesOfDay(config.site.timezone),
    now,
    mode: mode.get,
    alarms: alarms.all,
    departures: departures.api.list,
    problems: () => runCooperatively(problems(state, problemSources(), now()), monotonic),
  });
  const answered = holdResults(inputs.holdMessage$, holds).subscribe(
    (result) => void connections.publishAboutSite(HOLD_RESULT, result, false),
  );
  stop.add("end holds from MQTT", () => answered.unsubscribe());
  const views: OperatorViews = {
    stream,
    ready: isReady,
    health: () => {
      if (!isReady()) return { fit: true, words: "starting" };
      // Only after a failed commit is another one tried: a monitor that asks each second must not wear the flash.
      return health(store.stats().failing === null ? { ok: true } : store.beat(now()));
    },
    status,
    site: () => siteView(config),
    events: () => eventsView(state, now()),
    chargers: () => chargersView(state, now()),
    vehicles: () => vehiclesView(state, now(), departureOf),
    audit: async (query) => (await store.audit(query)).map((row) => ({ ...row, at: iso(row.at) })),
    verify: oneAtATime(async () => ({ ...(await store.verify()) })),
    prices: () => pricesView(board),
    reports: () => shownReports(schedule, store),
    explain,
    handover,
    readings: (query) => readingsView(state, store, query, now()),
    holds,
    mode,
    resend,
    eventPlan: (event) => runCooperatively(eventPlan(state, event, now()), monotonic),
    proof: async (event, format) => {
      const known = (await state.known.readWhole(eventId(event))) ?? null;
      return prove(event, format, { config, store, siteKey: parts.siteKey, now, monotonic, known });
    },
    alarms: alarms.api,
    departures: departures.api,
    metrics,
  };
  return {
    views,
    status,
    health,
    isReady,
    explain,
    handover,
    holds,
    mode,
    alarms: alarms.api,
    departures: departures.api,
  };
}

/** The site as the page shows it: its plan, and the makes and ratings of its chargers. */
function siteView({ site, chargers }: Pick<Config, "site" | "chargers">): Json {
  const { id, timezone, board, fuse = null } = site;
  const makes = Object.fromEntries(chargers.map(({ id: charger, profile }) => [charger, profile]));
  const ratings = Object.fromEntries(
    chargers.map(({ id: charger, phases, voltage, maxCurrent, maxPower }) => [
      charger,
      { phases, voltage, maxCurrentA: maxCurrent, maxPowerW: maxPower },
    ]),
  );
  return { site: id, timezone, version: version(), board, makes, ratings, fuseA: fuse };
}

/** Requests that come while the work runs share its result. */
function oneAtATime<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | null = null;
  return () => (running ??= work().finally(() => (running = null)));
}
