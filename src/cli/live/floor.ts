import { sectionOf, type NamedBroker } from "../../chargers/broker/address.ts";
import { isTooLarge } from "../../chargers/broker/brokerAnswers.ts";
import type { BrokerTrial } from "../../chargers/broker/tryBroker.ts";
import { ChargerConnections } from "../../chargers/connections.ts";
import type { Profile } from "../../chargers/profile/schema.ts";
import type { Config } from "../../config/schema.ts";
import type { Machine } from "../../daemon/edges.ts";
import { reachBroker } from "../../daemon/real.ts";
import { isNative } from "../../domain/charger.ts";
import type { ChargerMessage } from "../../domain/telemetry.ts";
import { seconds } from "../../domain/units.ts";
import { askDaemon } from "../daemonClient.ts";
import type { Trials } from "./trials.ts";

/** Best sign of life of one charger. */
export interface Sign {
  /** `kept`: only retained messages of unknown age. `unreadable`: only messages that cannot be decoded. */
  readonly kind: "live" | "kept" | "unreadable" | "nothing";
  readonly text: string;
}

/** Brokers and chargers of a site, over this verb's own connections or the daemon's. */
export interface LiveFloor extends AsyncDisposable {
  readonly by: string;
  /** A string is the reason why they cannot be tried. */
  readonly trials: () => Promise<readonly BrokerTrial[] | string>;
  /** Signs by charger. Absent: no message. */
  readonly signs: () => Promise<ReadonlyMap<string, Sign>>;
}

interface LastMessage {
  readonly charger: string;
  /** ISO. */
  readonly heardAt: string | null;
  readonly isSilent: boolean;
}

/** A message to the daemon within this time counts as live. */
const RECENT_MS = 30_000;

/** Uses the daemon's connections. A second login with its user could replace it at the broker. */
export function daemonFloor(state: string, { now }: Machine): LiveFloor {
  return {
    by: "the running daemon",
    trials: async () => {
      const answer = await askDaemon(state, "POST", "/try/brokers");
      if (answer.kind === "answered" && answer.status === 200) {
        const trials = answer.body as readonly BrokerTrial[];
        // A daemon that was not restarted after an upgrade answers without it.
        if (trials.every((trial) => "verdict" in trial)) return trials;
      }
      return answer.kind === "failed" ? answer.reason : "the running daemon does not know this request";
    },
    signs: async () => {
      const answer = await askDaemon(state, "GET", "/heard");
      const all =
        answer.kind === "answered" && answer.status === 200 ? (answer.body as readonly LastMessage[]) : [];
      return new Map(all.map((heard) => [heard.charger, signOf(heard, now())]));
    },
    [Symbol.asyncDispose]: async () => {},
  };
}

/** The process that leads, if the running daemon stands by. Null: it leads, or does not answer. */
export async function standInReason(state: string): Promise<string | null> {
  const answer = await askDaemon(state, "GET", "/heard");
  return answer.kind === "failed" && answer.isStandIn === true ? answer.reason : null;
}

function signOf({ heardAt, isSilent }: LastMessage, now: number): Sign {
  if (heardAt === null) return { kind: "nothing", text: "" };
  const age = now - Date.parse(heardAt);
  const text = `last message ${Math.max(0, Math.round(age / 1000))} s ago`;
  return { kind: isSilent || age > RECENT_MS ? "kept" : "live", text };
}

/** Connects with the daemon's credentials and an own client id. Used while no daemon runs. */
export async function ownFloor(
  config: Config,
  profiles: ReadonlyMap<string, Profile>,
  world: Machine,
): Promise<LiveFloor> {
  await using stack = new AsyncDisposableStack();
  const brokers = new Map<string, NamedBroker>();
  for (const [name, broker] of [["", config.mqtt] as const, ...config.brokers])
    brokers.set(name, (await reachBroker(broker, config, world, stack)).broker);
  const signs = new Map<string, Sign>();
  const fleet = stack.use(
    new ChargerConnections({
      ...world,
      site: config.site.id,
      // Random, so that it never equals the daemon's.
      clientId: `setpointd-${config.site.id}-check-${world.randomBytes(4).toString("hex")}`,
      presencePath: "gateway/commissioning",
      chargers: config.chargers,
      profiles,
      brokers,
      // No charger is commanded, and no lease is renewed.
      observes: true,
      onMessage: (message) => {
        const sign = signIn(message);
        const before = signs.get(message.charger);
        if (sign !== null && before?.kind !== "live") signs.set(message.charger, sign);
      },
      onDiscard: () => {},
      onBroker: () => {},
    }),
  );
  const open = stack.move();
  const started = world.monotonic();
  return {
    by: "a connection of its own",
    trials: async () => {
      while (!fleet.connected && world.monotonic() - started < BROKER_PATIENCE) await pause(POLL_MS);
      return fleet.tryBrokers();
    },
    signs: async () => signs,
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  };
}

/** A broker that never answers MQTT 5 is connected within it. */
const BROKER_PATIENCE = seconds(20);
const POLL_MS = 100;
const pause = (ms: number): Promise<void> => new Promise((over) => setTimeout(over, ms));

/** Null: no sign of the charger. */
function signIn(message: ChargerMessage): Sign | null {
  switch (message.kind) {
    case "telemetry":
      return message.snapshot === true ? KEPT : LIVE;
    case "online":
      return message.snapshot || !message.online ? KEPT : LIVE;
    case "malformed":
      return { kind: "unreadable", text: message.reason };
    case "ack":
    case "forgot":
      return LIVE;
    case "unconfirmed":
      return null;
  }
}

const LIVE: Sign = { kind: "live", text: "sends messages" };
const KEPT: Sign = { kind: "kept", text: "only retained ones" };

/** Prints the trial of each broker: login, subscriptions, and publishes that command no charger. */
export function printTrials(trials: readonly BrokerTrial[], { chargers }: Config, lines: Trials): void {
  for (const trial of trials) {
    const section = sectionOf(trial.name);
    if (!trial.connected) {
      lines.failed(
        section,
        trial.trouble,
        `a running broker that accepts the login: check ${section}.url, username, password and tls`,
      );
      continue;
    }
    lines.ok(section, `logged in, MQTT ${trial.reportsRefusals ? "5" : "3.1.1"}`);
    for (const filter of trial.refusedFilters)
      lines.failed(`subscribe ${filter}`, "the broker refuses it", ALLOW);
    if (trial.refusedFilters.length === 0)
      lines.ok(`${section} subscribe`, "every topic that setpointd reads");
    printPublishes(trial, lines);
    const others = chargers.filter((charger) => charger.broker === trial.name && !isNative(charger));
    for (const { id, profile } of others)
      lines.untried(`publish to ${id}`, `would command a ${profile}: setpointd commission ${id} tries it`);
  }
}

const ALLOW = "allow it in the broker's access list: setpointd acl prints the whole list";
const RAISE = "raise the size of packets that the broker takes (mosquitto: max_packet_size)";
const remedyOf = (refusal: string): string => (isTooLarge(refusal) ? RAISE : ALLOW);

function printPublishes({ publishes, reportsRefusals, verdict }: BrokerTrial, lines: Trials): void {
  if (!reportsRefusals)
    lines.untried("publish", "a broker of MQTT 3.1.1 does not report whether it refuses a publish");
  // Topics on which the daemon has published by itself.
  for (const { access, topic, found } of verdict.refused)
    if (access === "write" && !publishes.some((each) => each.topic === topic))
      lines.failed(`publish ${topic}`, found, remedyOf(found));
  for (const { topic, refusal, hasSubscriber } of publishes) {
    const item = `publish ${topic}`;
    if (refusal !== null) lines.failed(item, refusal, remedyOf(refusal));
    else if (!hasSubscriber)
      lines.failed(
        item,
        "no client subscribes to it",
        "the charger has to subscribe, and must be allowed to",
      );
    else lines.ok(item, "the broker accepts it");
  }
}
