import type { Profile } from "../../chargers/profile/schema.ts";
import { type Commissioned, commissioned, reasonNotTo, untried } from "../../commissioning/commission.ts";
import type { Config } from "../../config/schema.ts";
import { acquireCharger } from "../../control/decide/commissioningAccess.ts";
import type { ControlState } from "../../control/state.ts";
import { MqttBench } from "../../daemon/commissioningBench.ts";
import type { Machine } from "../../daemon/edges.ts";
import { openOffline } from "../../daemon/offline.ts";
import { reachBroker, realMachine } from "../../daemon/real.ts";
import { offlineControl } from "../../daemon/site.ts";
import type { Charger } from "../../domain/charger.ts";
import type { Store } from "../../domain/store.ts";
import { seconds } from "../../domain/units.ts";
import { verbConfiguration } from "../configuration.ts";
import { askDaemon, askDaemonAtLength } from "../daemonClient.ts";
import { logger } from "../logger.ts";
import { complain, fail, type ExitCode, say, type Verb } from "../output.ts";
import { stopSignal } from "../stopSignal.ts";

interface CommissionOptions {
  readonly config: string | undefined;
  readonly silence: boolean;
  readonly force: boolean;
}

/** Time for the connection to the broker. */
const BROKER_PATIENCE = seconds(10);
/** Time for an embedded broker to deliver its last messages. */
const BROKER_FLUSH = seconds(1);

/**
 * `commission`: tries one charger with real setpoints, and prints and records the result. A running daemon does it.
 * Without a daemon this verb does it, and holds the state meanwhile, so that no daemon can start.
 */
async function commission(
  id: string,
  { config: named, silence, force }: CommissionOptions,
): Promise<ExitCode> {
  const site = verbConfiguration(named);
  if (site === null) return 2;
  const { config, profiles } = site;
  const charger = config.chargers.find((candidate) => candidate.id === id);
  const profile = charger === undefined ? undefined : profiles.get(charger.profile);
  if (charger === undefined || profile === undefined)
    return fail(
      2,
      `there is no charger ${id}; the configuration has ${config.chargers.map((one) => one.id).join(", ")}`,
    );
  const stop = new AbortController();
  void stopSignal("SIGINT", "SIGTERM").then(() => stop.abort());
  const progress = (message: string): void => complain(`${id}: ${message}`);
  const byDaemon = await throughDaemon(config, { charger: id, silence, force }, progress, stop.signal);
  if (byDaemon !== "absent") return printResult(byDaemon);
  const world = realMachine(logger(2, "error"));
  const opened = await openOffline(config, world, { create: true });
  if (!opened.ok) return fail(1, `nothing was tried: ${opened.reason}`);
  await using store = opened.store;
  const state = offlineControl(config, opened, world);
  const why = force ? null : reasonNotTo(state, charger, world.now());
  if (why !== null) return fail(1, `${why}; --force tries it anyway`);
  // Awaited here, because the state must be held until the end.
  const setting = { config, charger, profile, silence, progress, state, store, world };
  return printResult(await withBench(setting, stop.signal));
}

function printResult({ good, words, complaint }: Commissioned): ExitCode {
  if (words !== null) say(words);
  if (complaint !== null) complain(complaint);
  return good ? 0 : 1;
}

/** Tries a charger through the running daemon. Ctrl-C stops the trial; its result is still awaited. */
async function throughDaemon(
  { state }: Config,
  request: { readonly charger: string; readonly silence: boolean; readonly force: boolean },
  progress: (message: string) => void,
  stop: AbortSignal,
): Promise<Commissioned | "absent"> {
  let done = untried(
    "setpointd stopped during the trial: it restores the charger when it stops, or releases it when it starts",
  );
  stop.addEventListener("abort", () => {
    void askDaemon(state, "POST", "/commission/stop", { charger: request.charger });
  });
  const came = await askDaemonAtLength(state, "/commission", request, (line) => {
    const update = line as { readonly progress?: string; readonly done?: Commissioned };
    if (update.progress !== undefined) progress(update.progress);
    if (update.done !== undefined) done = update.done;
  });
  if (came === "absent") return came;
  return typeof came === "string" ? done : untried(came.reason);
}

interface Setting {
  readonly config: Config;
  readonly charger: Charger;
  readonly profile: Profile;
  readonly silence: boolean;
  readonly progress: (message: string) => void;
  readonly state: ControlState;
  readonly store: Store;
  readonly world: Machine;
}

async function withBench(setting: Setting, stop: AbortSignal): Promise<Commissioned> {
  const { config, charger, state, store, world } = setting;
  await using stack = new AsyncDisposableStack();
  const named = config.brokers.get(charger.broker) ?? config.mqtt;
  const { broker } = await reachBroker(named, config, world, stack);
  const acquired = acquireCharger(state, charger, world.now());
  const bench = MqttBench.open({
    ...world,
    ...setting,
    site: config.site.id,
    broker,
    before: acquired.limit,
    stop,
    nextId: () => state.nextId(),
  });
  if (typeof bench === "string") return untried(bench);
  stack.use(bench);
  const { bench: talk } = bench;
  if (!(await talk.until(() => bench.connected, BROKER_PATIENCE)))
    return untried(`${bench.trouble}; nothing was tried`);
  const result = await commissioned(
    {
      ...setting,
      asked: null,
      acquired,
      settings: config.control.verdict,
      shows: () => bench.shows(),
      write: (changes) => store.write(changes),
      committed: () => store.committed(),
    },
    talk,
  );
  // An embedded broker ends with this verb, after it has delivered the last messages.
  if (named.reach.kind === "embedded") await talk.wait(BROKER_FLUSH);
  return result;
}

export const commissionVerb: Verb = (verb, { config, done }) => {
  verb
    .argument("<charger>", "id of the charger")
    .option("--silence", "also try its behaviour without messages from us; takes its time-out longer", false)
    .option("--force", "start although an event limits it, or control.mode is observe", false)
    .action(async (charger: string, options: { silence: boolean; force: boolean }) => {
      done(await commission(charger, { config: config(), ...options }));
    });
};
