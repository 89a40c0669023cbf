import { setTimeout as sleep } from "node:timers/promises";

import type { Profile } from "../../chargers/profile/schema.ts";
import type { Config } from "../../config/schema.ts";
import type { Machine } from "../../daemon/edges.ts";
import { inspectDatabase } from "../../daemon/offline.ts";
import { realMachine } from "../../daemon/real.ts";
import { askDaemon } from "../daemonClient.ts";
import { logger } from "../logger.ts";
import { type ExitCode, say, writeLine } from "../output.ts";
import { daemonFloor, type LiveFloor, ownFloor, type Sign, printTrials, standInReason } from "./floor.ts";
import { tryPartner, tryWebhook } from "./partner.ts";
import { type Finding, Trials } from "./trials.ts";
import { messageOf } from "../../platform/errors.ts";

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
  const lines = new Trials(printFinding, (words) => writeLine(`...     ${words}`));
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
      lines.ok(id, sign.words);
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
    const found = sign === undefined || sign.kind === "nothing" ? "" : `: ${sign.words}`;
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
