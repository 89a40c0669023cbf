import { commandId, type CommandRecord, leaseOf, type Decision } from "../domain/command.ts";
import type { ChargerId, Instant } from "../domain/units.ts";
import { elapsed, until } from "../platform/scheduling.ts";
import { decide } from "./decide/evaluate.ts";
import { unclaimed } from "./decide/verdict.ts";
import type { ControlPorts } from "./ports.ts";
import { recordOutcome } from "./send/outcome.ts";
import { limited, formatStays } from "./send/release.ts";
import type { ControlState } from "./state.ts";

/** Interval between checks whether the last publishes are over, ms. */
const CHECK_EVERY = 10;
/** Longest wait for a broker that hangs, ms. The service manager is about to end the process. */
const PATIENCE = 2_500;

interface StopLog {
  readonly info: (message: string) => void;
  readonly warn: (message: string) => void;
}

/**
 * Action of an orderly stop on limited chargers: keeps, releases or pauses them. Logs those that stay
 * limited.
 */
export async function standDown(
  state: ControlState,
  ports: ControlPorts,
  onStop: "keep" | "release" | "pause",
  log: StopLog,
): Promise<void> {
  const atStop = limited(state);
  if (onStop === "keep" || state.barTo("plan", null) !== null) {
    for (const record of atStop) logStays(state, record, ports.now(), log);
    return;
  }
  const now = ports.now();
  for (const { command } of atStop) {
    const charger = state.chargers.get(command.charger);
    if (charger === undefined || command.desired.kind === onStop) continue;
    const decision: Decision = {
      desired: { kind: onStop },
      until: null,
      vehicle: command.vehicle,
      event: command.event,
      cause: "stop",
    };
    ports.write(decide(state, unclaimed(state.verdictOn(charger, now)), decision, now));
  }
  const committed = await ports.durable();
  if (!committed.ok) {
    log.warn(`the stop could not be recorded: ${committed.reason}`);
    for (const record of atStop) logStays(state, record, ports.now(), log);
    return;
  }
  const stopped = new Set<ChargerId>();
  let isLate = false;
  const allSent = Promise.all(
    decidedSince(state, atStop).map(async ({ command, replaces }) => {
      if (state.barTo("stop", command.charger) !== null) return;
      // A publish in flight must not overtake the last command. Every publish has its deadline.
      const isQuiet = (): boolean => !state.sendQueue.isInFlight(command.charger);
      await until(isQuiet, CHECK_EVERY);
      if (isLate) return;
      const from = ports.now();
      const sent = await ports.send(command, leaseOf(state.settings.refresh), replaces, false);
      if (isLate) return;
      ports.write(recordOutcome(state, command, sent, { from, until: ports.now() }, ports.random()));
      if (sent.ok) stopped.add(command.charger);
    }),
  );
  await Promise.race([allSent, elapsed(PATIENCE)]);
  isLate = true;
  await ports.durable();
  log.info(`${stopped.size} chargers were sent the command to ${onStop}`);
  for (const record of atStop) {
    const { charger, desired } = record.command;
    const isDone = stopped.has(charger) || (desired.kind === onStop && record.sentAt !== null);
    if (!isDone) logStays(state, record, ports.now(), log);
  }
}

function logStays(state: ControlState, record: CommandRecord, now: Instant, log: StopLog): void {
  const message = formatStays(state, record, now);
  if (message !== null) log.warn(message);
}

/** The commands that replaced these. */
const decidedSince = (state: ControlState, before: readonly CommandRecord[]): readonly CommandRecord[] =>
  before.flatMap(({ command }) => {
    const now = state.commands.get(command.charger);
    return now === undefined || commandId(now.command) === commandId(command) ? [] : [now];
  });
