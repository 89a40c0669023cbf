import { InputFaults } from "../alarms/facts.ts";
import type { Config } from "../config/schema.ts";
import { standDown } from "../control/stop.ts";
import type { ControlApi } from "../operator/controlSocket.ts";
import { LiveStream } from "../operator/http/stream.ts";
import type { OperatorViews } from "../operator/http/views.ts";
import { Metrics } from "../operator/metrics.ts";
import { runCooperatively } from "../platform/cooperative.ts";
import type { Health } from "../platform/systemd.ts";
import type { SiteState } from "../store/postgres/fleetList.ts";
import { ActionLog } from "./actionLog.ts";
import { inputFaultsOnRecord } from "./alarms.ts";
import { fromChargers, fromWebhook } from "./arrivals.ts";
import { CertificatesInUse } from "./certificates.ts";
import { DaemonCommissions } from "./commissions.ts";
import { controlApi } from "./controlApi.ts";
import type { Edges } from "./edges.ts";
import { followLease, whileLeading } from "./leading.ts";
import { operatorSide } from "./operatorSide.ts";
import { configuredPrices, spotPrices } from "./reportsAndPrices.ts";
import { controlLoop, partnerEvents, siteInputs, sitePipelines, essential } from "./pipeline.ts";
import { openingSite, roomForDispatches, type Site } from "./site.ts";
import { StopSteps } from "./stopSteps.ts";

export type Started =
  | { readonly ok: true; readonly app: App }
  | { readonly ok: false; readonly reason: string };

/** A running daemon. Its disposal stops it by the rule of `control.onStop`. */
export interface App extends AsyncDisposable {
  /** Null: no webhook is configured. */
  readonly webhookPort: number | null;
  readonly operatorPort: number;
  /** Null: the broker is elsewhere. */
  readonly brokerPort: number | null;
  /** Reads certificates again. */
  readonly reload: () => void;
  /** Health for the watchdog: tries a commit, and checks that evaluations are recent. */
  readonly health: () => Health;
  /** True: an event has a window that is open, or opens later. */
  readonly isBusy: () => boolean;
  readonly state: () => SiteState;
  /** The chargers were evaluated. */
  readonly isReady: () => boolean;
  /** Adds a row about the daemon itself to the record. */
  readonly note: Site["note"];
  /** Resolves with the reason when another process leads the site. */
  readonly lost: Promise<string>;
  /** Name of the stop step that runs. Null: none. */
  readonly stopStep: () => string | null;
}

/**
 * The whole daemon in one straight line. Each part uses only parts above it. Stop steps run in reverse: the last
 * part stops first.
 */
export async function start(config: Config, edges: Edges): Promise<Started> {
  const { log } = edges;
  await using stop = new StopSteps();

  // The stored state. It is restored before anything can arrive.
  const opened = await edges.openStore();
  if (!opened.ok) return opened;
  const { store, siteKey, leadership } = opened;
  const metrics = edges.metrics ?? stop.use("end the metrics", new Metrics());
  const actions = stop.use("write the control-action log", new ActionLog(log));
  const inputFaults = new InputFaults();
  actions.readBy((rows, tookMs) => {
    metrics.committed(rows, tookMs);
    inputFaults.read(rows);
  });
  stop.use("close the store", store);
  const inputs = siteInputs();
  const stream = stop.use("end the live streams", new LiveStream());
  actions.readBy((rows) => stream.addRows(rows));
  const room = stop.use("give back the room of its dispatches", (edges.room ?? roomForDispatches()).part());
  const restored = openingSite(config, opened, edges, {
    onCommitted: actions.add,
    onClockDoubted: () => inputs.clockDoubted$.next(),
    room,
  });
  const site = await runCooperatively(restored, edges.monotonic);
  const { state, schedule, now } = site;
  // The last row of an orderly run. Without it the next start records an outage since the last minute of this run.
  stop.add("record the stop", () => site.note("setpointd stopped"));
  const certificates = new CertificatesInUse(config, site);
  const board = await site.readAtStart(() => configuredPrices(config, store));
  // A function that reads them later would keep the whole stored state in memory.
  const rejected = opened.lastRun.rejected();
  await site.readAtStart(() => inputFaultsOnRecord(store, rejected, inputFaults));

  // The partner. Requests begin with the subscription below.
  const partner = stop.use(
    "end requests to the partner",
    edges.partner({
      now,
      onNearlySpent: ({ made, most }) =>
        site.note(
          `reports made ${made} of at most ${most} requests within the last hour; further ones wait`,
          { warning: "reports" },
        ),
    }),
  );
  const stopping = new AbortController();
  const events = partnerEvents(site, inputs, partner, metrics, () => stopping.signal.aborted);

  // A start whose addresses are taken must not command a charger, so the listeners come first.
  await using listeners = new StopSteps();
  const up = Promise.withResolvers<void>();
  const arrivals = { site, inputs, metrics };
  const asked = await edges.webhook?.(fromWebhook(arrivals, events, certificates, up.promise));
  const webhook = asked === undefined ? null : listeners.use("close the webhook", asked);
  const views = Promise.withResolvers<OperatorViews>();
  const operator = listeners.use(
    "close the operator listener",
    await edges.operator(views.promise, { now, record: site.recordAct }),
  );

  // The chargers.
  const chargers = stop.use(
    "disconnect from the brokers",
    await edges.chargers(fromChargers(config, arrivals, inputFaults, opened)),
  );
  const { connections } = chargers;

  // Control, reports and prices. An error in control is a bug that ends the run; reports and prices must not end control.
  const loop = controlLoop(site, inputs, events, { chargers: connections, counters: metrics });
  const { ports } = loop;
  const pipelines = sitePipelines(site, inputs, events, loop, {
    reports: partner.reports,
    counters: metrics,
    clockAgrees: () => events.watch.clockAgrees,
    ahead: () => events.watch.ahead(),
  });
  stop.add("leave the chargers as control.onStop says", () =>
    standDown(state, ports, config.control.onStop, log),
  );
  const control = essential(pipelines, ports, () => {
    certificates.check();
    log.info(store.head(), "audit head for today (keep this line elsewhere to detect truncation)");
  }).subscribe({ error: edges.onControlFailed ?? fatal });
  stop.add("end control", () => {
    stopping.abort();
    control.unsubscribe();
  });
  const lost = followLease(stop, {
    leadership,
    site,
    inputs,
    events,
    chargers: connections,
    brokers: ["", ...config.brokers.keys()],
    page: edges.page(operator.port),
    log,
  });
  if (site.edited.length > 0) inputs.hint$.next(site.edited);
  const prices = spotPrices(board, config, inputs.brokerUp$, site, {
    ask: (query) => partner.prices.ask(query),
    publish: (path, payload) => connections.publishAboutSite(path, payload),
    counted: (query, outcome) => metrics.priceFetched(query, outcome),
  }).subscribe({ error: (error) => log.error({ err: error }, "prices are not fetched any more") });
  stop.add("end prices", () => prices.unsubscribe());
  // After control, which decides first which vehicle is on a charger.
  const reporting = pipelines.reports.report$.subscribe({
    error: (error) => log.error({ err: error }, "reports are not made any more"),
  });
  stop.add("end reports", async () => {
    reporting.unsubscribe();
    await partner.reports.close();
  });
  const commissions = new DaemonCommissions({
    ...ports,
    state,
    profiles: chargers.profiles,
    settings: config.control.verdict,
    connections,
    isReady: () => loop.evaluated() !== null,
    committed: () => store.committed(),
    returnToControl: (charger) => inputs.unlocked$.next(charger),
  });
  const trialMessages = inputs.charger$.subscribe((message) => commissions.handleMessage(message));
  stop.add("end the messages to commissioning", () => trialMessages.unsubscribe());

  // Views and verbs. The listeners stop before control, which would otherwise leave requests unanswered.
  stop.use("close the listeners", listeners.move());
  const side = await operatorSide(stop, site, inputs, {
    config,
    connections,
    partner,
    events,
    loop,
    webhook,
    certificates,
    board,
    stream,
    metrics,
    inputFaults,
    siteKey,
    trials: commissions,
    configurations: edges.configurations,
    supportArchive: edges.supportArchive,
    accessFault: () => operator.accessFault,
    receivers: stop.use("end requests to receivers of alarms", edges.receivers()).all,
  });
  views.resolve(side.views);
  up.resolve();
  const api = controlApi({
    ...side,
    store,
    state,
    reportSchedule: schedule,
    reports: pipelines.reports,
    commissions,
    ports,
    metrics: () => metrics.text(),
    tryBrokers: () => connections.tryBrokers(),
    free: (freeing) => inputs.freed$.next(freeing),
    poll: () => whileLeading(leadership, events.poll, (reason) => ({ kind: "notStored", reason })),
    resend: (record) => inputs.resend$.next(record),
  });
  const release: ControlApi["release"] = (charger, by) =>
    whileLeading(
      leadership,
      () => api.release(charger, by),
      (reason, hasBegun) => {
        const later = hasBegun ? "; it may still be done later: look at the status before you repeat it" : "";
        return { ok: false, words: `nothing is sent to a charger now: ${reason}${later}` };
      },
    );
  await openSockets(stop, edges, { ...api, release }, side.status);
  // The first stop step: a charger on trial is put back, and the verb gets its answer.
  stop.use("end trials of chargers", commissions);

  const { brokerPort } = chargers;
  const [webhookPort, operatorPort] = [webhook?.port ?? null, operator.port];
  log.info({ operator: operatorPort, webhook: webhookPort, broker: brokerPort }, "setpointd is up");
  const running = stop.move();
  return {
    ok: true,
    app: {
      webhookPort,
      operatorPort,
      brokerPort,
      reload: () => certificates.reload({ webhook, operator }),
      health: () => side.health(store.beat(now())),
      isBusy: () => state.agenda.size > 0,
      state: side.state,
      isReady: side.isReady,
      note: site.note,
      lost,
      stopStep: () => running.current,
      [Symbol.asyncDispose]: () => running[Symbol.asyncDispose](),
    },
  };
}

/** Sockets of the verbs. The daemon runs without them. */
async function openSockets(
  stop: StopSteps,
  { log, controlSocket, statusSocket }: Pick<Edges, "log" | "controlSocket" | "statusSocket">,
  api: ControlApi,
  status: Parameters<Edges["statusSocket"]>[0],
): Promise<void> {
  const control = await controlSocket(api);
  if (typeof control === "string")
    log.warn({ reason: control }, "no control socket: release and audit need the daemon stopped");
  else stop.use("close the control socket", control);
  const shown = await statusSocket(status);
  if (typeof shown === "string")
    log.warn({ reason: shown }, "no status socket: setpointd status has no answer");
  else stop.use("close the status socket", shown);
}

/** Ends the process: a restart is safe by design. */
function fatal(cause: unknown): never {
  throw new Error("the control flow failed", { cause });
}
