import { z } from "zod";

import { type Bar, BAR_TEXTS } from "../control/decide/gate.ts";
import { progressed } from "../control/observe/recordRestarts.ts";
import { BACK_WITHIN, isOpen, type Reboot, rebootSentence } from "../control/observe/reboots.ts";
import { type RequestedChange, reevaluationsOf } from "../control/stage.ts";
import type { ControlState } from "../control/state.ts";
import { auditRow, type Json } from "../domain/audit.ts";
import type { Change, Committed, Stored } from "../domain/changes.ts";
import { commandId, type Sent } from "../domain/command.ts";
import { formatLevel, viewOf } from "../domain/setpoint.ts";
import { chargerId, type ChargerId, type Instant, iso, isoOrNull, type VehicleId } from "../domain/units.ts";
import { type Answer, asJson, conflict, invalid, mistakesIn, noSuch, notStored, starting } from "./answer.ts";
import { holdSchema } from "./holdRequest.ts";

/** The body of `POST chargers/ID/resend`. */
export const resendSchema = z.strictObject({ reason: holdSchema.shape.reason });

/** A reason as it is expected. */
export const WHY = { reason: "why, in 1 to 200 characters" } as const;

/** Has the last command of a charger sent again. `by`: name of the person. */
export type ResendApi = (charger: string, body: unknown, by: string) => Promise<Answer<Json>>;

/** The body of `POST chargers/ID/trial`. */
export const trialSchema = z.strictObject({
  silence: z
    .boolean()
    .default(false)
    .describe("Also try what it does without messages. It takes the time-out of the charger longer."),
  reason: holdSchema.shape.reason,
});

/** Trials of chargers with real setpoints. */
export interface TrialApi {
  /** Levels that a trial would try, reasons against it now, and the last trial since the start. */
  readonly get: (charger: string) => Answer<Json>;
  /** Starts one, and does not wait for its end. `by`: name of the person. `key`: a repeated one gets the first answer. */
  readonly start: (
    charger: string,
    asked: z.output<typeof trialSchema>,
    by: string,
    key: string | null,
  ) => Promise<Answer<Json>>;
  /** Ends it early: the charger gets back what it had. */
  readonly stop: (charger: string, by: string) => Answer<Json>;
  /** Tries login and access list of each broker. No charger is commanded. */
  readonly brokers: (reason: string, by: string) => Promise<Answer<Json>>;
}

/** The body of `POST broker/trial`. */
export const brokerTrialSchema = z.strictObject({ reason: holdSchema.shape.reason });

/** The part of a verdict on a broker that the record names. The rest is recorded as it is. */
interface BrokerFinding {
  readonly broker: string;
  readonly passed: boolean;
  readonly trouble: string | null;
  readonly topics: { readonly refused: number; readonly untold: number };
}

interface BrokerTrialParts {
  readonly tryBrokers: () => Promise<readonly BrokerFinding[]>;
  readonly now: () => Instant;
  readonly write: (changes: readonly Change[]) => void;
  readonly committed: () => Promise<Stored>;
}

/** Trials at the same time share one: each publishes at every native charger. */
export function brokerTrials({ tryBrokers, now, write, committed }: BrokerTrialParts): TrialApi["brokers"] {
  let running: Promise<readonly BrokerFinding[]> | null = null;
  return async (reason, by) => {
    running ??= tryBrokers().finally(() => (running = null));
    const brokers = await running;
    const at = now();
    const result = { by, reason, passed: brokers.every(({ passed }) => passed), brokers: asJson(brokers) };
    const message = `brokers tried by ${by}: ${brokers.map(brokerSentence).join("; ")}`;
    write([auditRow("operator", at, message, { facts: result })]);
    const stored = await committed();
    return stored.ok ? { ok: true, value: { at: iso(at), ...result } } : notStored(stored, "the log");
  };
}

function brokerSentence({ broker, passed, trouble, topics: { refused, untold } }: BrokerFinding): string {
  if (trouble !== null) return `${broker} failed, ${trouble}`;
  const open = untold === 0 ? "" : `, ${untold} cannot be known`;
  return `${broker} ${passed ? "passed" : "failed"}, ${refused === 1 ? "1 topic" : `${refused} topics`} refused${open}`;
}

interface ResendParts {
  readonly state: ControlState;
  /** The broker of this charger is connected. */
  readonly isLinked: (charger: ChargerId) => boolean;
  /** Hands a change to control. Resolves after its commit. */
  readonly request: (change: RequestedChange) => Promise<Committed>;
  /** The first evaluation is done. */
  readonly isReady: () => boolean;
}

/** The reason before all bars: a broker that stops publishes the last will of each charger, and all count as offline. */
const NOT_LINKED = "its broker is not connected";

/** Answers requests to send the last command again, after the commit of their row. */
export function resendApi({ state, request, isReady, isLinked }: ResendParts): ResendApi {
  return async (name, body, by) => {
    const checked = resendSchema.safeParse(body);
    if (!checked.success) return invalid(...mistakesIn(body, resendSchema, WHY));
    if (!isReady()) return starting;
    const id = chargerId(name);
    const charger = state.chargers.get(id);
    if (charger === undefined) return noSuchCharger(state, name);
    const bar = isLinked(id) ? state.barTo("queue", id) : "broker";
    if (bar !== null)
      return conflict(`nothing was sent to ${id}`, bar === "broker" ? NOT_LINKED : BAR_TEXTS[bar]);
    const last = state.commands.get(id);
    if (last === undefined)
      return conflict(`nothing was sent to ${id}`, "it has had no command yet, so it decides by itself");
    const { command, progress } = last;
    if (command.desired.kind === "release" && !charger.refreshesRelease && isDone(progress))
      return conflict(`nothing was sent to ${id}`, "its last command was a release, and it has followed it");
    const level = formatLevel(command.desired);
    const facts = { by, reason: checked.data.reason, resend: commandId(command) };
    const committed = await request((_state, at) => ({
      changes: [
        auditRow("operator", at, `${id} is sent ${level} again by ${by}: ${facts.reason}`, {
          charger: id,
          vehicle: command.vehicle,
          facts,
        }),
      ],
      reevaluations: reevaluationsOf([id], true),
    }));
    if (!committed.ok) return notStored(committed);
    return {
      ok: true,
      value: {
        charger: id,
        vehicle: command.vehicle,
        command: commandId(command),
        level: viewOf(command.desired),
        sentence: `${id} is sent ${level} again`,
      },
    };
  };
}

/** Reboots of chargers. */
export interface RebootApi {
  /** Effect of a reboot now, the reason against it, and the last one. */
  readonly get: (charger: string) => Answer<Json>;
  /** Asks for one, and does not wait for its end. `by`: name of the person. */
  readonly start: (charger: string, body: unknown, by: string) => Promise<Answer<Json>>;
}

interface RebootParts extends ResendParts {
  readonly now: () => Instant;
  /** The chargers at their brokers. */
  readonly chargers: {
    /** Reason why its make cannot be rebooted. Null: it can. */
    readonly cannotReboot: (charger: ChargerId) => string | null;
    readonly reboot: (charger: ChargerId, id: string) => Promise<Sent>;
  };
}

/** A bar as it stops a reboot, where `BAR_TEXTS` speaks of a level. */
const REBOOT_BARS: Readonly<Partial<Record<Bar, string>>> = {
  observing: "mode observe: nothing is sent to a charger",
  offline: "the charger is offline: a reboot cannot reach it",
};

/** Answers requests to reboot a charger, after the broker has the command or has refused it. */
export function rebootApi({ state, request, isReady, isLinked, now, chargers }: RebootParts): RebootApi {
  const hindrance = (id: ChargerId): string | null => {
    const bar = state.barTo("reboot", id);
    const last = state.reboots.of(id);
    const impossible = chargers.cannotReboot(id);
    if (impossible !== null) return impossible;
    if (!isLinked(id)) return NOT_LINKED;
    if (bar !== null) return REBOOT_BARS[bar] ?? BAR_TEXTS[bar];
    return last === null || !isOpen(last) ? null : `a reboot is under way: ${rebootSentence(last)}`;
  };
  const shown = (id: ChargerId): Answer<Json> => ({
    ok: true,
    value: {
      charger: id,
      vehicle: vehicleAt(state, id),
      hindrance: hindrance(id),
      will: rebootWill(state, id),
      last: rebootView(state.reboots.of(id)),
    },
  });
  return {
    get: (name) =>
      state.chargers.has(chargerId(name)) ? shown(chargerId(name)) : noSuchCharger(state, name),
    start: async (name, body, by) => {
      const checked = resendSchema.safeParse(body);
      if (!checked.success) return invalid(...mistakesIn(body, resendSchema, WHY));
      if (!isReady()) return starting;
      const id = chargerId(name);
      if (!state.chargers.has(id)) return noSuchCharger(state, name);
      const refusal = hindrance(id);
      if (refusal !== null) return conflict(`${id} was not rebooted`, refusal);
      const { reason } = checked.data;
      const at = now();
      const asked = { id: state.nextRebootId(), charger: id, by, reason, at, because: null } as const;
      const reboot: Reboot = { ...asked, progress: "asked", changedAt: at };
      // Recorded at once: a second request must find it.
      progressed(state, reboot, "asked", at);
      const facts = { by, reason, reboot: reboot.id };
      const about = { charger: id, vehicle: vehicleAt(state, id), facts };
      const message = `reboot of ${id} by ${by}: ${reason}`;
      const committed = await written(request, [auditRow("operator", at, message, about)]);
      const sent: Sent = committed.ok
        ? await chargers.reboot(id, reboot.id)
        : { ok: false, retry: false, reason: committed.reason };
      // The charger may have answered by now, or be away.
      const present = state.reboots.of(id) ?? reboot;
      if (sent.ok && present.progress === "asked") progressed(state, present, "sent", now());
      if (sent.ok) return shown(id);
      // The reboot has failed also where the request is refused: it would count as under way.
      const failed = await written(request, progressed(state, present, "failed", now(), sent.reason));
      // Nothing was sent, whether or not the row is stored.
      if (!committed.ok) return notStored({ reason: committed.reason });
      return failed.ok ? conflict(`${id} was not rebooted`, sent.reason) : notStored(failed);
    },
  };
}

/** Hands rows to control. Resolves after their commit. */
const written = (request: ResendParts["request"], changes: readonly Change[]): Promise<Committed> =>
  request(() => ({ changes, reevaluations: [] }));

const vehicleAt = ({ occupancy }: ControlState, id: ChargerId): VehicleId | null => {
  const occupant = occupancy.at(id);
  return occupant.kind === "vehicle" ? occupant.vehicle : null;
};

/** Consequences of a reboot now, as sentences. */
function rebootWill(state: ControlState, id: ChargerId): readonly string[] {
  const { telemetry } = state.presence.of(id);
  const last = state.commands.get(id)?.command.desired;
  const vehicle = vehicleAt(state, id);
  const who = vehicle === null ? "A vehicle" : (state.vehicles.get(vehicle)?.name ?? vehicle);
  const power = telemetry?.powerW ?? 0;
  const isCharging = power > 0 || telemetry?.state === "charging";
  return [
    isCharging
      ? `${who} charges there now${power > 0 ? ` with ${(power / 1000).toFixed(1)} kW` : ""}: that is interrupted.`
      : telemetry?.state === undefined || telemetry.state === "unknown"
        ? "Whether a vehicle charges there is not known. If one does, that is interrupted."
        : telemetry.state === "unplugged"
          ? "No vehicle is plugged in."
          : `${who} is plugged in and does not charge now.`,
    "A charger with several outlets reboots as a whole.",
    last === undefined || last.kind === "release"
      ? "When it is back, it decides by itself how much it charges with, as now."
      : `When it is back, it is sent its level again: ${formatLevel(last)}. Until then its own settings apply.`,
  ];
}

/** A reboot as the API shows it. */
const rebootView = (reboot: Reboot | null): Json =>
  reboot === null
    ? null
    : {
        id: reboot.id,
        by: reboot.by,
        reason: reboot.reason,
        at: iso(reboot.at),
        progress: reboot.progress,
        changedAt: iso(reboot.changedAt),
        withinS: BACK_WITHIN / 1000,
        sentence: rebootSentence(reboot),
      };

/** Restarts of a charger, and its firmware, as the API shows them. */
export function reportedFacts(state: ControlState, id: ChargerId): { readonly [member: string]: Json } {
  const { telemetry } = state.presence.of(id);
  const { counted, count, lastAt } = state.reboots.restartsOf(id);
  return {
    soc: telemetry?.soc ?? null,
    firmware: telemetry?.firmware ?? null,
    restarts: { counted, count, lastAt: isoOrNull(lastAt) },
    reboot: rebootView(state.reboots.of(id)),
  };
}

const isDone = (progress: string): boolean => progress === "followed" || progress === "accepted";

export const noSuchCharger = ({ chargers }: ControlState, name: string): Answer<Json> =>
  noSuch("charger", name, [...chargers.keys()]);
