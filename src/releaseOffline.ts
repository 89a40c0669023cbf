import type { Surroundings } from "./app.ts";
import { addressOf } from "./chargers/address.ts";
import { Fleet, type FleetBroker } from "./chargers/fleet.ts";
import type { Profile } from "./chargers/profile/schema.ts";
import type { Config } from "./config/schema.ts";
import { leaseOf } from "./core/control/command.ts";
import { Depot } from "./core/depot.ts";
import { notReleased } from "./flow/byHand.ts";
import { decide, free } from "./flow/look.ts";
import { outcome } from "./flow/outcome.ts";
import { pickUp } from "./flow/startOver.ts";
import { limited } from "./flow/stop.ts";
import { nothingYet, openState } from "./store/open.ts";
import { wallClock } from "./wallClock.ts";

/** How long the broker may take to be there. */
const BROKER_PATIENCE_MS = 10_000;

/** Frees chargers while no daemon runs: opens the state, tells the chargers, and writes down that it did. */
export async function releaseOffline(
  { config, profiles }: { readonly config: Config; readonly profiles: ReadonlyMap<string, Profile> },
  charger: string | null,
  { now, random, randomBytes, log }: Surroundings,
): Promise<{ readonly ok: boolean; readonly words: string }> {
  const nothing = nothingYet(config.state);
  if (nothing !== null) return { ok: false, words: nothing };
  const opened = openState(config.state, { now, random: randomBytes, log, damaged: "refuse" });
  if (!opened.ok) return { ok: false, words: opened.reason };
  using store = opened.store;
  const depot = new Depot({
    chargers: config.chargers,
    vehicles: config.vehicles,
    settings: config.control,
    siteKey: opened.siteKey,
    epoch: opened.epoch,
    wallClock: wallClock(config.site.timezone, now),
    unsure: opened.unsure,
  });
  pickUp(depot, opened.remembered, now());
  const held = limited(depot).filter(({ command }) => charger === null || command.charger === charger);
  if (config.control.mode === "observe") return notReleased(held);
  if (held.length === 0 && opened.unsure)
    return {
      ok: true,
      words:
        "nothing is limited as far as is known; what chargers were told before the state was lost is not: when setpointd starts, it tells each of them",
    };
  if (held.length === 0) return { ok: true, words: "nothing was limited" };
  const needed = new Set(held.map(({ command }) => depot.chargers.get(command.charger)?.broker ?? ""));
  const brokers = new Map<string, FleetBroker>();
  for (const [name, broker] of [["", config.mqtt] as const, ...config.brokers]) {
    if (!needed.has(name)) continue;
    if (broker.reach.kind === "embedded") {
      return {
        ok: false,
        words: "the broker is inside setpointd, which is not running: start it, then release",
      };
    }
    brokers.set(name, { prefix: broker.prefix, address: addressOf(broker, null) });
  }

  const missing = new Set(needed);
  const up = Promise.withResolvers<void>();
  await using fleet = new Fleet({
    site: config.site.id,
    chargers: config.chargers,
    profiles,
    brokers,
    now,
    random,
    log,
    onMessage: () => {},
    onDiscard: () => {},
    onBroker: (name, there) => {
      if (there) missing.delete(name);
      if (missing.size === 0) up.resolve();
    },
  });
  const timer = setTimeout(() => up.reject(new Error()), BROKER_PATIENCE_MS);
  try {
    await up.promise;
  } catch {
    return { ok: false, words: "the broker cannot be reached; nothing was released" };
  } finally {
    clearTimeout(timer);
  }

  store.write(
    free(
      depot,
      held.map(({ command }) => command.charger),
      now(),
    ),
  );
  for (const { command } of held) {
    const known = depot.chargers.get(command.charger);
    if (known === undefined || depot.commands.get(command.charger)?.command !== command) continue;
    const { vehicle, event } = command;
    const verdict = depot.verdictOn(known, now());
    store.write(
      decide(
        depot,
        verdict,
        { desired: { kind: "release" }, until: null, vehicle, event, cause: "operator" },
        now(),
      ),
    );
  }
  const committed = await store.durable();
  if (!committed.ok) return { ok: false, words: `nothing was released: ${committed.reason}` };
  const failures: string[] = [];
  for (const { command } of held) {
    const record = depot.commands.get(command.charger);
    if (record === undefined) continue;
    const from = now();
    const sent = await fleet.send(record.command, leaseOf(config.control.refresh), record.replaces);
    store.write(outcome(depot, record.command, sent, { from, until: now() }, random()));
    if (!sent.ok) failures.push(`${command.charger}: ${sent.reason}`);
  }
  await store.durable();
  if (failures.length > 0) return { ok: false, words: `not released: ${failures.join("; ")}` };
  return { ok: true, words: `freed ${held.map(({ command }) => command.charger).join(", ")}` };
}
