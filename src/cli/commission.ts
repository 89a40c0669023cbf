import { type Surroundings, surroundings } from "../app.ts";
import { addressOf, credentialsOf } from "../chargers/address.ts";
import { EmbeddedBroker } from "../chargers/embeddedBroker.ts";
import type { FleetBroker } from "../chargers/fleet.ts";
import type { Profile } from "../chargers/profile/schema.ts";
import { isGood, resultFacts, resultInWords, summary } from "../commission/inWords.ts";
import { MqttBench } from "../commission/mqttBench.ts";
import { type SilencePromise, tryCharger } from "../commission/trial.ts";
import type { BrokerConfig } from "../config/mqtt.ts";
import type { Config } from "../config/schema.ts";
import type { Json } from "../core/audit.ts";
import { type Desired, inWords } from "../core/control/setpoint.ts";
import { Depot } from "../core/depot.ts";
import type { Charger } from "../core/site/charger.ts";
import { type Millis, seconds } from "../core/units.ts";
import { type Opened, openState } from "../store/open.ts";
import type { Store } from "../store/store.ts";
import { wallClock } from "../wallClock.ts";
import { siteConfiguration } from "./configuration.ts";
import { askDaemon } from "./daemon.ts";
import { logger } from "./logger.ts";
import { complain, type ExitCode, say } from "./outcome.ts";
import { stopSignal } from "./stopSignal.ts";

export interface CommissionOptions {
  readonly config: string | undefined;
  readonly silence: boolean;
  readonly force: boolean;
}

/** How long the broker may take to be there. */
const BROKER_PATIENCE = seconds(10);
/** How long a charger may take to say its first word; it may have to find the broker first. */
const FIRST_WORDS = seconds(10);
/** Lease of a native charger while its silence is tried: nobody wants to wait for the real one. */
const SHORT_LEASE = seconds(30);
/** Silence for makes that have no time-out; longer than any that has one. */
const LONG_SILENCE = seconds(90);
/** How long a make that promises nothing may take to answer. */
const ANSWER_WITHIN = seconds(10);

/**
 * `commission`: tries one charger with real setpoints, tells what it did, and writes that down. It holds the state
 * meanwhile, so no daemon can start and fight it.
 */
export async function commission(
  id: string,
  { config: named, silence, force }: CommissionOptions,
): Promise<ExitCode> {
  const site = siteConfiguration(named);
  if (site === null) return 2;
  const { config, profiles } = site;
  const charger = config.chargers.find((candidate) => candidate.id === id);
  const profile = charger === undefined ? undefined : profiles.get(charger.profile);
  if (charger === undefined || profile === undefined) {
    complain(
      `there is no charger ${id}; the configuration has ${config.chargers.map((one) => one.id).join(", ")}`,
    );
    return 2;
  }
  if ((await askDaemon(config.state, "GET", "/limited")).kind === "answered") {
    complain("setpointd is running, and would fight for this charger: stop it, commission, start it again");
    return 1;
  }
  const world = surroundings(logger(2, "error"));
  const opened = openState(config.state, { ...world, random: world.randomBytes, damaged: "refuse" });
  if (!opened.ok) {
    complain(`nothing was tried: ${opened.reason}`);
    return 1;
  }
  using store = opened.store;
  const depot = depotOf(config, opened, world);
  const { winner, until } = depot.verdictOn(charger, world.now());
  if (!force && (winner !== null || config.control.mode === "observe")) {
    const why =
      winner === null
        ? "control.mode is observe: no charger is told anything"
        : `${winner.event.id} holds on ${id} until ${until === null ? "it is withdrawn" : depot.wallClock(until)}`;
    complain(`${why}; --force commissions it all the same`);
    return 1;
  }
  const standing = depot.commands.get(charger.id)?.command.desired ?? null;
  // Awaited here: the state is held as long as this runs.
  return await withBench({ config, charger, profile, silence, standing, depot, store, world });
}

interface Setting {
  readonly config: Config;
  readonly charger: Charger;
  readonly profile: Profile;
  readonly silence: boolean;
  /** What it was told last; null: nothing by us. */
  readonly standing: Desired | null;
  readonly depot: Depot;
  readonly store: Store;
  readonly world: Surroundings;
}

async function withBench(setting: Setting): Promise<ExitCode> {
  const { config, charger, profile, silence, standing, depot, store, world } = setting;
  const stop = new AbortController();
  void stopSignal("SIGINT", "SIGTERM").then(() => stop.abort());
  await using stack = new AsyncDisposableStack();
  const broker = await reached(config.brokers.get(charger.broker) ?? config.mqtt, world, stack);
  const bench = MqttBench.open({
    ...world,
    site: config.site.id,
    charger,
    profile,
    broker,
    before: standing,
    stop: stop.signal,
    nextId: () => depot.nextId(),
  });
  if (typeof bench === "string") {
    complain(bench);
    return 2;
  }
  stack.use(bench);
  if (!(await bench.until(() => bench.connected, BROKER_PATIENCE))) {
    complain("the broker cannot be reached; nothing was tried");
    return 1;
  }
  await bench.until(() => bench.told() !== null, FIRST_WORDS);
  const note = async (words: string, facts: Json): Promise<string | null> => {
    const entry = { at: world.now(), kind: "operator", charger: charger.id, words, facts } as const;
    store.write([{ kind: "audit", entry: { ...entry, vehicle: null, event: null, command: null } }]);
    const written = await store.durable();
    return written.ok ? null : written.reason;
  };
  const unwritten = await note(`commissioning of ${charger.id} (${profile.profile}) begins`, null);
  if (unwritten !== null || stop.signal.aborted) {
    complain(`nothing was tried: ${unwritten ?? "stopped"}`);
    return 1;
  }
  const result = await tryCharger(
    {
      charger,
      settings: config.control.verdict,
      silence: silence ? promiseOf(profile) : null,
      answerWithin: answerTime(profile),
      leave: standing ?? { kind: "release" },
      progress: (words) => complain(`${charger.id}: ${words}`),
    },
    bench,
  );
  const lost = await note(`commissioned ${charger.id}: ${summary(result)}`, resultFacts(result));
  say(`${charger.id} (${profile.profile}), ${heldBefore(standing)}\n${resultInWords(result)}`);
  if (lost !== null) complain(`the result could not be written down: ${lost}`);
  return isGood(result) && lost === null ? 0 : 1;
}

const heldBefore = (standing: Desired | null): string =>
  standing === null ? "never told anything by us before" : `told ${inWords(standing)} before`;

function depotOf(config: Config, opened: Opened & { readonly ok: true }, { now }: Surroundings): Depot {
  const depot = new Depot({
    chargers: config.chargers,
    vehicles: config.vehicles,
    settings: config.control,
    siteKey: opened.siteKey,
    epoch: opened.epoch,
    wallClock: wallClock(config.site.timezone, now),
    unsure: false,
  });
  depot.restore(opened.remembered, now());
  return depot;
}

/** A broker that is inside the daemon is inside this verb meanwhile. */
async function reached(
  broker: BrokerConfig,
  { log }: Surroundings,
  stack: AsyncDisposableStack,
): Promise<FleetBroker> {
  const { reach, prefix } = broker;
  const embedded =
    reach.kind === "embedded"
      ? stack.use(await EmbeddedBroker.listen({ ...reach.listen, credentials: credentialsOf(broker), log }))
      : null;
  return { prefix, address: addressOf(broker, embedded?.port ?? null) };
}

/** What the make does by itself in silence. */
function promiseOf({ nativePayloads, deviceTimeout }: Profile): SilencePromise {
  if (nativePayloads) return { after: SHORT_LEASE, effect: "own limits" };
  if (deviceTimeout === undefined) return { after: LONG_SILENCE, effect: "holds" };
  return { after: deviceTimeout.after, effect: deviceTimeout.effect === "pause" ? "pauses" : "own limits" };
}

/** A profile that waits for a confirmation says no by itself when none comes. */
const answerTime = ({ confirmedBy }: Profile): Millis =>
  confirmedBy === undefined ? ANSWER_WITHIN : seconds(confirmedBy.within / 1000 + 1);
