import { addressOf, mqttClientId, type NamedBroker } from "../chargers/broker/address.ts";
import { ChargerConnections } from "../chargers/connections.ts";
import type { Profile } from "../chargers/profile/schema.ts";
import type { Config } from "../config/schema.ts";
import { decide } from "../control/decide/evaluate.ts";
import { free } from "../control/decide/freeing.ts";
import { recordOutcome } from "../control/send/outcome.ts";
import {
  chargerIn,
  withUnconfigured,
  formatFreed,
  formatLimitedAgain,
  releaseWhileObserving,
  limited,
} from "../control/send/release.ts";
import type { ControlState } from "../control/state.ts";
import { type CommandRecord, leaseOf } from "../domain/command.ts";
import type { Store } from "../domain/store.ts";
import type { ChargerId, Instant } from "../domain/units.ts";
import type { Machine } from "./edges.ts";
import { openOffline } from "./offline.ts";
import { offlineControl } from "./site.ts";

/** Deadline for the connection to the brokers. One that never answers MQTT 5 is connected within it. */
const BROKER_PATIENCE_MS = 20_000;

/**
 * Releases chargers while no daemon runs: opens the state, publishes, and records the outcome. `target`: a charger, or
 * the vehicle on it. Null: all. `by`: the person.
 */
export async function releaseOffline(
  { config, profiles }: { readonly config: Config; readonly profiles: ReadonlyMap<string, Profile> },
  target: string | null,
  by: string,
  machine: Machine,
): Promise<{ readonly ok: boolean; readonly words: string }> {
  const { now, random, log } = machine;
  const opened = await openOffline(config, machine, { onFull: "open" });
  if (!opened.ok) return { ok: false, words: opened.reason };
  await using store = opened.store;
  const state = offlineControl(config, opened, machine);
  const found = target === null ? null : chargerIn(state, target);
  if (found?.ok === false) return { ok: false, words: found.reason };
  const asked = found === null ? [...state.chargers.keys()] : [found.charger];
  const held = limited(state).filter(({ command }) => asked.includes(command.charger));
  if (state.mode.current === "observe") return releaseWhileObserving(held);
  const reached =
    held.length === 0
      ? null
      : await reach(state, held, config, {
          profiles,
          now,
          random,
          log,
          siteKey: opened.siteKey,
        });
  if (typeof reached === "string") return { ok: false, words: reached };
  await using fleet = reached;

  // Chargers without a command are released as well: from the events that hold now, at the next start.
  const changes = free(state, asked, by, now());
  void store.writeUntilStored(changes);
  decideReleases(state, store, held, now);
  await store.durable();
  const failures = fleet === null ? [] : await publishReleases(state, store, fleet, held, config, machine);
  // A release goes out on a full disk as well. This commit tries once more to store it.
  await store.durable();

  const freed = new Set([
    ...held.map(({ command }) => command.charger),
    ...changes.flatMap((change) =>
      change.kind === "hold" && change.hold.scope.kind === "charger" ? [change.hold.scope.charger] : [],
    ),
  ]);
  for (const { charger } of failures) freed.delete(charger);
  const unstored = store.stats().failing?.reason ?? null;
  const words = freed.size === 0 ? [] : [formatReleased(state, held, freed, unstored)];
  if (failures.length > 0) {
    const reasons = failures.map(({ charger, reason }) => `${charger}: ${reason}`);
    return { ok: false, words: [...words, `not released: ${reasons.join("; ")}`].join("; ") };
  }
  const nothing = opened.assertAll
    ? "no charger is limited as far as is known; commands from before the state was lost are not known: setpointd sends each charger its level at its next start"
    : "nothing was limited";
  const done = { ok: true, words: words[0] ?? nothing };
  return target === null ? withUnconfigured(state, done) : done;
}

/** A release of each limited charger, unless the operator's release has decided one already. */
function decideReleases(
  state: ControlState,
  store: Store,
  held: readonly CommandRecord[],
  now: () => Instant,
): void {
  for (const { command } of held) {
    const known = state.chargers.get(command.charger);
    if (known === undefined || state.commands.get(command.charger)?.command !== command) continue;
    const { vehicle, event } = command;
    const verdict = state.verdictOn(known, now());
    const release = { desired: { kind: "release" }, until: null, vehicle, event, cause: "operator" } as const;
    void store.writeUntilStored(decide(state, verdict, release, now()));
  }
}

/** Publishes the commands of these chargers, one after another. Returns those that failed. */
async function publishReleases(
  state: ControlState,
  store: Store,
  fleet: ChargerConnections,
  held: readonly CommandRecord[],
  { control }: Config,
  { now, random }: Machine,
): Promise<readonly { readonly charger: ChargerId; readonly reason: string }[]> {
  const failures: { charger: ChargerId; reason: string }[] = [];
  for (const { command: before } of held) {
    const record = state.commands.get(before.charger);
    if (record === undefined) continue;
    const from = now();
    const sent = await fleet.send(record.command, leaseOf(control.refresh), record.replaces);
    store.write(recordOutcome(state, record.command, sent, { from, until: now() }, random()));
    if (!sent.ok) failures.push({ charger: before.charger, reason: sent.reason });
  }
  return failures;
}

/** `held`: the commands before the release. `unstored`: why it is not on record. Null: it is. */
function formatReleased(
  state: ControlState,
  held: readonly CommandRecord[],
  freed: ReadonlySet<ChargerId>,
  unstored: string | null,
): string {
  const records = new Map(held.map((record) => [record.command.charger, record]));
  const each = [...freed].map((id) => {
    const record = records.get(id);
    return record === undefined ? id : formatFreed(state, record);
  });
  const lost =
    unstored === null
      ? ""
      : `; not on record: ${unstored}. A start limits them again while their events hold`;
  return `freed ${each.join("; ")}; ${formatLimitedAgain(each.length)}${lost}`;
}

/** Connections to the brokers of these chargers, all established. A text: the reason why not. */
async function reach(
  state: ControlState,
  held: readonly CommandRecord[],
  config: Config,
  ports: Pick<Machine, "now" | "random" | "log"> & {
    readonly profiles: ReadonlyMap<string, Profile>;
    readonly siteKey: Buffer;
  },
): Promise<ChargerConnections | string> {
  const needed = new Set(held.map(({ command }) => state.chargers.get(command.charger)?.broker ?? ""));
  const brokers = new Map<string, NamedBroker>();
  for (const [name, broker] of [["", config.mqtt] as const, ...config.brokers]) {
    if (!needed.has(name)) continue;
    if (broker.reach.kind === "embedded")
      return "the broker is inside setpointd, which is not running: start it, then release";
    brokers.set(name, { prefix: broker.prefix, address: addressOf(broker, null) });
  }
  const missing = new Set(needed);
  const up = Promise.withResolvers<void>();
  await using stack = new AsyncDisposableStack();
  const fleet = stack.use(
    new ChargerConnections({
      site: config.site.id,
      clientId: mqttClientId(config.site.id, ports.siteKey),
      chargers: config.chargers,
      brokers,
      ...ports,
      onMessage: () => {},
      onDiscard: () => {},
      onBroker: (name, there) => {
        if (there) missing.delete(name);
        if (missing.size === 0) up.resolve();
      },
    }),
  );
  const timer = setTimeout(() => up.reject(new Error()), BROKER_PATIENCE_MS);
  try {
    await up.promise;
  } catch {
    const troubles = [...missing].map((name) => fleet.troubleOf(name));
    return `${troubles.join("; ")}; nothing was released`;
  } finally {
    clearTimeout(timer);
  }
  stack.move();
  return fleet;
}
