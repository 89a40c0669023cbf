import type { InputFaults } from "../alarms/facts.ts";
import type { Receiver } from "../alarms/notifier.ts";
import type { ChargerConnections } from "../chargers/connections.ts";
import { HOLD_RESULT } from "../chargers/native/messages.ts";
import type { Config } from "../config/schema.ts";
import { DepartureBoard, departureView } from "../departures/board.ts";
import { Departures } from "../departures/pipeline.ts";
import { ShortfallWatch } from "../departures/watch.ts";
import type { Alarm } from "../domain/alarm.ts";
import type { Json } from "../domain/audit.ts";
import type { Committed } from "../domain/changes.ts";
import type { Hold } from "../domain/hold.ts";
import type { Beat, StoredDepartures } from "../domain/store.ts";
import { type ChargerId, millis, type VehicleId } from "../domain/units.ts";
import { configurationApi } from "../operator/configuration.ts";
import { OperatorDepartures } from "../operator/departures.ts";
import { handoverApi } from "../operator/handover.ts";
import { holdCosts } from "../operator/holdCosts.ts";
import { OperatorHolds } from "../operator/holds.ts";
import type { LiveStream } from "../operator/http/stream.ts";
import type { OperatorViews } from "../operator/http/views.ts";
import { LiveObjects } from "../operator/live.ts";
import type { Metrics } from "../operator/metrics.ts";
import { modeApi } from "../operator/mode.ts";
import { problems } from "../operator/problems.ts";
import { OperatorBindings } from "../operator/bindings.ts";
import { rebootApi, resendApi } from "../operator/chargerActions.ts";
import { runCooperatively } from "../platform/cooperative.ts";
import { fitness, type Health } from "../platform/systemd.ts";
import { timesOfDay } from "../platform/clock.ts";
import type { PriceBoard } from "../prices/board.ts";
import type { WebhookListener } from "../vtn/webhook.ts";
import { siteAlarms } from "./alarms.ts";
import type { CertificatesInUse } from "./certificates.ts";
import type { SharedRequests } from "./controlApi.ts";
import type { Edges, Partner } from "./edges.ts";
import { homeAssistant } from "./homeAssistant/pipeline.ts";
import { requestChange, requestWhileLeading } from "./leading.ts";
import { type ControlLoop, holdResults, type PartnerEvents, type SiteInputs } from "./pipeline.ts";
import type { Site } from "./site.ts";
import { siteViews } from "./siteViews.ts";
import { faultOf, isOfDatabase } from "../store/postgres/database.ts";
import type { SiteState } from "../store/postgres/fleetList.ts";
import { explanationsOf, siteGauges, siteState, siteStatus } from "./status.ts";
import type { StopSteps } from "./stopSteps.ts";
import type { RequestedChange } from "../control/stage.ts";

/** The running parts that people on site read and act on. */
interface RunningParts {
  readonly config: Config;
  readonly connections: ChargerConnections;
  readonly partner: Partner;
  readonly events: Pick<PartnerEvents, "watch">;
  readonly loop: Pick<ControlLoop, "evaluated" | "clockDoubtedSince">;
  /** Null: no webhook is configured. */
  readonly webhook: Pick<WebhookListener, "unbound" | "refused" | "refusedDeliveries"> | null;
  readonly certificates: CertificatesInUse;
  readonly board: PriceBoard;
  readonly stream: LiveStream;
  readonly metrics: Metrics;
  readonly receivers: readonly Receiver[];
  readonly inputFaults: InputFaults;
  /** Seals proofs. */
  readonly siteKey: Buffer;
  readonly trials: OperatorViews["trials"];
  readonly configurations: Edges["configurations"];
  readonly supportArchive: Edges["supportArchive"];
  /** Reason why users and tokens cannot be read. Null: they can, or there is no login. */
  readonly accessFault: () => string | null;
}

/** Answers of the running daemon to people on site. */
interface OperatorSide extends SharedRequests {
  readonly views: OperatorViews;
  readonly status: () => Promise<Json>;
  /** Health after a commit was tried. */
  readonly health: (committed: Beat) => Health;
  /** The first evaluation is done. */
  readonly isReady: () => boolean;
  readonly state: () => SiteState;
}

/** Interval of checks for costs of holds that are due, ms. */
const COSTS_EVERY = 30_000;

/** Views, holds and alarms of the running daemon. A feature for people on site is wired here, in one call. */
export async function operatorSide(
  stop: StopSteps,
  site: Site,
  inputs: SiteInputs,
  parts: RunningParts,
): Promise<OperatorSide> {
  const { store, state, now, monotonic } = site;
  const { config, connections, events, loop, stream, metrics, certificates, inputFaults } = parts;
  const isReady = (): boolean => loop.evaluated() !== null;
  const request = (change: RequestedChange): Promise<Committed> => requestChange(inputs, change);
  /** An error there must not end control. */
  const follow = (stream$: ReturnType<typeof homeAssistant>, stopStep: string, failure: string): void => {
    const running = stream$.subscribe({ error: (error) => site.log.error({ err: error }, failure) });
    stop.add(stopStep, () => running.unsubscribe());
  };

  // The facts that people read, and that alarms are made of.
  const { status, problemSources } = siteStatus(config, site, {
    ...parts,
    watch: events.watch,
    failingReceivers: () => alarms.failing(),
    allAlarms: () => alarms.all(),
  });
  const stored = {
    ...(await site.readAtStart(() => store.departures())),
    alarms: await site.readAtStart(() => store.alarms()),
  };
  const departures = siteDepartures(site, config, stored, request);
  follow(departures.forecast$, "end departures", "departures are not forecast any more");
  const alarms = siteAlarms(site, inputs.brokerUp$, {
    stored: stored.alarms,
    problemSources,
    departures: departures.facts,
    expiring: () => certificates.expiring(),
    publish: (path, payload) => connections.publishAboutSite(path, payload),
    inputFaults,
    receivers: parts.receivers,
    counted: (receiver, outcome, notices) => metrics.notified(receiver, outcome, notices),
  });
  follow(alarms.alarm$, "end alarms", "alarms are not observed any more");

  // Readers that ask for nothing: Home Assistant, the scraper of metrics, and open pages.
  const described$ = homeAssistant(inputs.brokerUp$, inputs.homeAssistantUp$, {
    config,
    state,
    now,
    alarms: alarms.counts,
    publish: (topic, payload) => connections.publishAtHome(topic, payload),
    warn: (reason, message) => site.log.warn({ reason }, message),
  });
  follow(
    described$,
    "end the descriptions for Home Assistant",
    "Home Assistant gets no descriptions any more",
  );
  const gauges = siteGauges(site, { ...parts, watch: events.watch, alarms, departures, problemSources });
  metrics.show(gauges, monotonic);
  const departureOf = departures.api.of;
  stream.follow(
    new LiveObjects({ state, epoch: site.epoch, now, monotonic, status, alarm: alarms.get, departureOf }),
  );

  // The answers to people.
  const isLinked = (charger: ChargerId): boolean => connections.isLinked(charger);
  const { departureUnder } = departures;
  const { resend, ...people } = requestsOfPeople(site, inputs, { ...parts, departureUnder }, isReady);
  const explain = explanationsOf(state, store, now, departureOf, isLinked);
  const handover = handoverApi({
    state,
    store,
    site: config.site.id,
    timeOfDay: timesOfDay(config.site.timezone),
    now,
    mode: people.mode.get,
    alarms: alarms.all,
    departures: () => departures.api.list(),
    problems: () => runCooperatively(problems(state, problemSources(), now()), monotonic),
  });
  addCostsOfHolds(stop, site, config, request);
  const answered = holdResults(inputs.holdMessage$, people.holds).subscribe(
    (result) => void connections.publishAboutSite(HOLD_RESULT, result, false),
  );
  stop.add("end holds from MQTT", () => answered.unsubscribe());

  const health = (committed: Beat): Health => {
    const evaluated = loop.evaluated();
    const sinceEvaluation = evaluated === null ? null : millis(monotonic() - evaluated.tick);
    return fitness({ committed, sinceEvaluation });
  };
  const shared = {
    ...people,
    status,
    explain,
    handover,
    alarms: alarms.api,
    departures: departures.api,
  };
  return {
    views: siteViews(site, parts, { ...shared, resend, trials: parts.trials, isReady, health }),
    ...shared,
    isReady,
    health,
    state: () => siteState(state, alarms.all()),
  };
}

/** Requests of people to the site. Each is settled after its commit, and refused while this process does not lead. */
function requestsOfPeople(
  { state, store, leadership, recordAct, now, monotonic }: Site,
  inputs: SiteInputs,
  {
    config,
    connections,
    configurations,
    departureUnder,
  }: Pick<RunningParts, "config" | "connections" | "configurations"> &
    Pick<ReturnType<typeof siteDepartures>, "departureUnder">,
  isReady: () => boolean,
) {
  const request = requestWhileLeading(leadership, (change) => requestChange(inputs, change));
  const isLinked = (charger: ChargerId): boolean => connections.isLinked(charger);
  return {
    holds: new OperatorHolds({ state, request, now, isReady, monotonic, departureUnder }),
    mode: modeApi({ state, request, now, isReady }),
    configuration: configurationApi({
      configurations,
      state,
      onStop: config.control.onStop,
      record: (message, facts) => {
        recordAct(message, facts);
        return store.committed();
      },
      now,
      isReady,
    }),
    resend: resendApi({ state, request, isReady, isLinked }),
    reboots: rebootApi({ state, request, isReady, isLinked, now, chargers: connections }),
    bindings: new OperatorBindings({ state, request, now, isReady }),
  };
}

/** Adds the costs of holds that are due, now and then. */
function addCostsOfHolds(
  stop: StopSteps,
  { state, store, now, monotonic, log }: Site,
  { report }: Pick<Config, "report">,
  request: (change: RequestedChange) => Promise<Committed>,
): void {
  const context = { settings: report, chargers: state.chargers };
  const costs = holdCosts({ state, store, context, request, now, monotonic });
  const timer = setInterval(() => {
    costs().catch((error: unknown) =>
      log.warn(isOfDatabase(error) ? faultOf(error) : { err: error }, "the costs of holds are not known"),
    );
  }, COSTS_EVERY);
  stop.add("end the costs of holds", () => clearInterval(timer));
}

/** The departures of the running site. Nothing is forecast before a subscription to `forecast$`. */
export function siteDepartures(
  site: Site,
  settings: Pick<Config, "departures" | "departureGuard">,
  stored: StoredDepartures & { readonly alarms: readonly Alarm[] },
  request: (change: RequestedChange) => Promise<Committed>,
) {
  const { store, state, config, now, monotonic } = site;
  const timeOfDay = timesOfDay(config.site.timezone);
  const before = stored.alarms.filter(
    ({ kind, state: alarmState }) => kind === "departureShort" && alarmState !== "cleared",
  );
  const board = new DepartureBoard({
    state,
    configured: settings.departures,
    stored: stored.departures,
    plugIns: stored.plugIns,
    timeOfDay,
  });
  const watch = new ShortfallWatch(before.flatMap(({ subject }) => subject ?? []));
  const departures = new Departures(state, settings, board, watch, {
    now,
    monotonic,
    write: (changes) => void store.writeUntilStored(changes),
    request,
  });
  return {
    forecast$: departures.follow(),
    facts: departures.facts.bind(departures),
    counts: () => departures.counts(),
    setFor: (vehicle: VehicleId) => board.setFor(vehicle),
    departureUnder: (vehicle: VehicleId, hold: Hold): Json => {
      const expected = board.assuming(vehicle, { added: hold }, now());
      return expected === null ? null : departureView(expected, now());
    },
    api: new OperatorDepartures({
      state,
      departures,
      now,
      timeOfDay,
      commit: (changes) => {
        store.write(changes);
        return store.committed();
      },
    }),
  };
}
