import { filter, firstValueFrom, timer } from "rxjs";

import { type CommandRecord, isToBeFreed, leaseOf, reallySent } from "../core/control/command.ts";
import type { Decision } from "../core/control/reconcile.ts";
import { inWords } from "../core/control/setpoint.ts";
import type { Depot } from "../core/depot.ts";
import { decide, listens } from "./look.ts";
import { outcome } from "./outcome.ts";
import type { ControlPorts } from "./ports.ts";

/** The chargers that stand under a command of ours other than a release, or whose release never went out. */
export const limited = (depot: Depot): readonly CommandRecord[] =>
  [...depot.commands.values()].flatMap((record) => {
    const sent = reallySent(record);
    return sent !== null && isToBeFreed(sent) ? [sent] : [];
  });

/** How often it is looked whether the last publishes are over, ms. */
const LOOK = 10;

interface StopLog {
  readonly info: (words: string) => void;
  readonly warn: (words: string) => void;
}

/** What an orderly stop does with chargers that are limited (DESIGN 5.7): keeps, releases or pauses them, and names them. */
export async function standDown(
  depot: Depot,
  ports: ControlPorts,
  onStop: "keep" | "release" | "pause",
  log: StopLog,
): Promise<void> {
  const standing = limited(depot);
  if (onStop === "keep" || depot.settings.mode === "observe") {
    for (const record of standing) stays(depot, record, log);
    return;
  }
  const kind = onStop;
  const now = ports.now();
  for (const { command } of standing) {
    const charger = depot.chargers.get(command.charger);
    if (charger === undefined || command.desired.kind === kind) continue;
    const decision: Decision = {
      desired: { kind },
      until: null,
      vehicle: command.vehicle,
      event: command.event,
      cause: "stop",
    };
    ports.write(
      decide(
        depot,
        { ...depot.verdictOn(charger, now), winner: null, overruled: [], limits: [] },
        decision,
        now,
      ),
    );
  }
  const committed = await ports.durable();
  if (!committed.ok) {
    log.warn(`the stop could not be recorded: ${committed.reason}`);
    for (const record of standing) stays(depot, record, log);
    return;
  }
  const told = await Promise.all(
    limitedBy(depot, standing).map(async ({ command, replaces }) => {
      if (!listens(depot, command.charger)) return false;
      // What is still on its way to it must not overtake what is said now; every publish has its deadline.
      const isQuiet = (): boolean => !depot.inFlight.has(command.charger);
      await firstValueFrom(timer(0, LOOK).pipe(filter(isQuiet)));
      const from = ports.now();
      const sent = await ports.send(command, leaseOf(depot.settings.refresh), replaces, false);
      ports.write(outcome(depot, command, sent, { from, until: ports.now() }, ports.random()));
      return sent.ok;
    }),
  );
  await ports.durable();
  log.info(`${told.filter(Boolean).length} chargers were told to ${onStop}`);
  for (const record of standing) {
    if (depot.commands.get(record.command.charger)?.sentAt === null) stays(depot, record, log);
  }
}

function stays(depot: Depot, { command }: CommandRecord, log: StopLog): void {
  const until = command.until === null ? "its lease ends" : depot.wallClock(command.until);
  const level =
    command.desired.kind === "release" ? "what it was told before its release" : inWords(command.desired);
  log.warn(`${command.charger} stays at ${level} until ${until}`);
}

const limitedBy = (depot: Depot, before: readonly CommandRecord[]): readonly CommandRecord[] =>
  before.flatMap(({ command }) => {
    const now = depot.commands.get(command.charger);
    return now === undefined || now.command === command ? [] : [now];
  });
