import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

import type { Profile } from "../../chargers/profile/schema.ts";
import type { Fleet } from "../../config/fleet.ts";
import type { Config } from "../../config/schema.ts";
import { profileChecks } from "../../daemon/chargerModels.ts";
import type { Machine } from "../../daemon/edges.ts";
import type { LoadedProfiles } from "../../daemon/loadProfiles.ts";
import { inspectDatabase, type InspectedFleet, inspectFleet } from "../../daemon/offline.ts";
import { realMachine } from "../../daemon/real.ts";
import { askDaemon } from "../daemonClient.ts";
import { logger } from "../logger.ts";
import { type ExitCode, say, writeLine } from "../output.ts";
import { daemonFloor, type LiveFloor, ownFloor, type Sign, printTrials, standInReason } from "./floor.ts";
import { tryPartner, tryWebhook } from "./partner.ts";
import { type Finding, Trials } from "./trials.ts";
import { messageOf } from "../../platform/text.ts";

/** Time for each charger to send a message, and the interval of progress lines. */
const CHARGERS_WITHIN_MS = 30_000;
const PROGRESS_EVERY_MS = 10_000;
const POLL_MS = 500;
/** Cap on chargers named in a progress line. */
const MAX_NAMED = 8;

/** `check --live`: tries everything that a site needs. Commands no charger. */
export async function checkLive(config: Config, profiles: ReadonlyMap<string, Profile>): Promise<ExitCode> {
  const isRunning = (await askDaemon(config.state, "GET", "/heard")).kind !== "absent";
  say(
    isRunning
      ? "setpointd is running: brokers and chargers are tried through it"
      : "setpointd is not running",
  );
  const lines = new Trials(printFinding, (message) => writeLine(`...     ${message}`));
  await trySite(config, profiles, isRunning, realMachine(logger(2, "silent")), lines);
  const { failures } = lines;
  say(
    failures === 0
      ? "all that was tried works"
      : `${failures} of the above ${failures === 1 ? "has" : "have"} failed`,
  );
  return failures === 0 ? 0 : 1;
}

function printFinding({ result, name, found, remedy }: Finding): void {
  const mark = { ok: "ok      ", wrong: "FAILED  ", skipped: "-       " }[result];
  writeLine(`${mark}${name}: ${found}`);
  if (remedy !== null) writeLine(`        ${remedy}`);
}

/** Tries the database, partner, webhook, brokers and chargers. */
export async function trySite(
  config: Config,
  profiles: ReadonlyMap<string, Profile>,
  isRunning: boolean,
  world: Machine,
  lines: Trials,
): Promise<void> {
  const database = await inspectDatabase(config, world);
  if (database !== null) {
    lines.about("database");
    lines.by("a connection with the address of state.postgres.url");
    if (database.ok) lines.ok("state.postgres", database.found);
    else lines.failed("state.postgres", database.found, database.expected);
  }
  lines.about("partner");
  await tryPartner(config, world, lines);
  lines.about("webhook");
  await tryWebhook(config.webhook, isRunning, world, lines);
  lines.about("brokers");
  const standIn = isRunning ? await standInReason(config.state) : null;
  if (standIn !== null) {
    lines.untried("brokers and chargers", `tried at the leader alone: ${standIn}`);
    return;
  }
  lines.by(isRunning ? "the connection of the running daemon" : "a connection with an own client id");
  try {
    await using floor = isRunning
      ? daemonFloor(config.state, world)
      : await ownFloor(config, profiles, world);
    await tryFloor(floor, config, lines);
  } catch (error) {
    // The embedded broker cannot bind its address.
    lines.failed(
      "mqtt",
      messageOf(error),
      "an address of this machine that no other program has (mqtt.embedded.listen)",
    );
  }
}

/** Tries the database, the sites, the partner, the webhook and the brokers of a fleet. Commands no charger. */
export async function tryFleet(
  fleet: Fleet,
  profiles: LoadedProfiles,
  world: Machine,
  lines: Trials,
): Promise<void> {
  const { shared, sitesAtMost } = fleet;
  const { database, isRead, processes, sites } = await inspectFleet(fleet, world, profileChecks(profiles));
  lines.about("database");
  lines.by("a connection with the address of state.postgres.url");
  if (database.ok) lines.ok("state.postgres", database.found);
  else lines.failed("state.postgres", database.found, database.expected);
  lines.about("fleet");
  if (isRead) tryLeaders(processes, sites, lines);
  else lines.untried("sites", `needs the database; this process would lead ${sitesAtMost} at most`);
  lines.about("partner");
  await tryPartner(shared, world, lines);
  lines.about("webhook");
  const isHere = processes.some(({ process }) => process.startsWith(`${hostname()} `));
  await tryWebhook(shared.webhook, isHere, world, lines);
  lines.about("brokers");
  // Each broker once, as the first of its sites.
  const users = new Map([
    [placeOf(shared.mqtt), { id: shared.site.id, mqtt: shared.mqtt }],
    ...sites
      .toReversed()
      .flatMap(({ site, mqtt }) => (mqtt === null ? [] : [[placeOf(mqtt), { id: site, mqtt }] as const])),
  ]);
  for (const { id, mqtt } of users.values()) {
    lines.by(`a connection with an own client id, as the site ${id}`);
    const config = { ...shared, site: { ...shared.site, id }, mqtt, chargers: [], brokers: new Map() };
    await using floor = await ownFloor(config, new Map(), world);
    const trials = await floor.trials();
    if (typeof trials !== "string") printTrials(trials, config, lines);
  }
}

const placeOf = ({ reach, username }: Config["mqtt"]): string =>
  `${reach.kind === "url" ? reach.url : ""} ${username}`;

function tryLeaders(
  processes: InspectedFleet["processes"],
  sites: InspectedFleet["sites"],
  lines: Trials,
): void {
  lines.by("the processes in the database that were seen within two thirds of a lease");
  if (processes.length === 0)
    lines.failed(
      "processes",
      "no process of the fleet is up",
      "setpointd fleet on one machine at least (systemctl start setpointd-fleet)",
    );
  for (const { process, led, most } of processes) lines.ok(process, `leads ${led} of at most ${most} sites`);
  if (sites.length === 0) return lines.untried("sites", "none is stored: setpointd site put FILE stores one");
  const room = processes.reduce((sum, { most }) => sum + most, 0);
  if (processes.length > 0 && room < sites.length)
    lines.failed(
      "room",
      `${sites.length} sites, and the processes lead ${room} at most`,
      "a higher sitesAtMost, or another process",
    );
  lines.by("the leases in the database");
  const unled = sites.filter(({ leader }) => leader === null).map(({ site }) => site);
  if (unled.length === 0) lines.ok("leaders", `each of ${sites.length} sites has one`);
  else
    lines.failed(
      "leaders",
      `no process leads ${unled.length} of ${sites.length} sites: ${namesOf(unled)}`,
      "a running process with room; its log has the reason where a site cannot be led",
    );
  lines.by("the stored files and keys of the sites");
  const wrong = sites.filter(({ fault }) => fault !== null);
  if (wrong.length === 0) lines.ok("site files", `${sites.length} are right`);
  for (const { site, fault } of wrong)
    lines.failed(site, fault ?? "", "setpointd site put of a file that setpointd site check accepts");
}

async function tryFloor(floor: LiveFloor, config: Config, lines: Trials): Promise<void> {
  const trials = await floor.trials();
  if (typeof trials === "string") {
    lines.failed("brokers", trials, "a daemon of this version, asked by its own user or root");
    return;
  }
  printTrials(trials, config, lines);
  lines.about("chargers");
  lines.by(`messages to ${floor.by} within ${CHARGERS_WITHIN_MS / 1000} s`);
  const away = new Set(trials.filter(({ connected }) => !connected).map(({ name }) => name));
  const reachable = config.chargers.filter(({ broker }) => !away.has(broker));
  for (const { id, broker } of config.chargers)
    if (away.has(broker)) lines.untried(id, "its broker is not connected");
  await waitForChargers(
    floor,
    reachable.map(({ id }) => id),
    lines,
  );
}

/** Prints each charger at its first message, and those without one at the end. */
async function waitForChargers(floor: LiveFloor, ids: readonly string[], lines: Trials): Promise<void> {
  const open = new Set(ids);
  let signs: ReadonlyMap<string, Sign> = new Map();
  const waitedFrom = performance.now();
  let printedAt = waitedFrom;
  while (open.size > 0) {
    signs = await floor.signs();
    for (const id of open) {
      const sign = signs.get(id);
      if (sign?.kind !== "live") continue;
      open.delete(id);
      lines.ok(id, sign.text);
    }
    const now = performance.now();
    if (open.size === 0 || now - waitedFrom >= CHARGERS_WITHIN_MS) break;
    if (now - printedAt >= PROGRESS_EVERY_MS || printedAt === waitedFrom) {
      printedAt = now;
      lines.waiting(`waiting for ${open.size} of ${ids.length} chargers: ${namesOf([...open])}`);
    }
    await sleep(POLL_MS);
  }
  for (const id of open) {
    const sign = signs.get(id);
    const found = sign === undefined || sign.kind === "nothing" ? "" : `: ${sign.text}`;
    lines.failed(
      id,
      `no message within ${CHARGERS_WITHIN_MS / 1000} s${found}`,
      sign?.kind === "unreadable"
        ? "messages of the make that the profile describes: setpointd profile show lists its topics and payloads"
        : "switched on, connected to this broker, with these params, and allowed by its access list (setpointd acl)",
    );
  }
}

const namesOf = (ids: readonly string[]): string =>
  ids.length <= MAX_NAMED ? ids.join(", ") : `${ids.slice(0, MAX_NAMED).join(", ")} ...`;
