import { z } from "zod";

import { BAR_TEXTS } from "../control/decide/gate.ts";
import type { HoldRequest } from "../control/holds/lifecycle.ts";
import type { ControlState } from "../control/state.ts";
import { auditRow, type Json } from "../domain/audit.ts";
import type { Change, Committed, Stored } from "../domain/changes.ts";
import { commandId } from "../domain/command.ts";
import { formatLevel, viewOf } from "../domain/setpoint.ts";
import { chargerId, type Instant, iso } from "../domain/units.ts";
import { type Answer, asJson, conflict, invalid, notStored, starting } from "./answer.ts";
import { holdSchema } from "./holdRequest.ts";

/** The body of `POST chargers/ID/resend`. */
export const resendSchema = z.strictObject({ reason: holdSchema.shape.reason });

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
    const words = `brokers tried by ${by}: ${brokers.map(brokerSentence).join("; ")}`;
    write([auditRow("operator", at, words, { facts: result })]);
    const stored = await committed();
    return stored.ok ? { ok: true, value: { at: iso(at), ...result } } : notStored(stored.reason);
  };
}

function brokerSentence({ broker, passed, trouble, topics: { refused, untold } }: BrokerFinding): string {
  if (trouble !== null) return `${broker} failed, ${trouble}`;
  const open = untold === 0 ? "" : `, ${untold} cannot be told`;
  return `${broker} ${passed ? "passed" : "failed"}, ${refused === 1 ? "1 topic" : `${refused} topics`} refused${open}`;
}

interface ResendParts {
  readonly state: ControlState;
  /** Hands a change to the control flow. */
  readonly request: (request: HoldRequest) => void;
  /** The first evaluation is done. */
  readonly isReady: () => boolean;
}

export function resendApi({ state, request, isReady }: ResendParts): ResendApi {
  return async (name, body, by) => {
    const checked = resendSchema.safeParse(body);
    if (!checked.success)
      return invalid({ path: "reason", found: asJson(body), expected: "why, in 1 to 200 characters" });
    if (!isReady()) return starting;
    const id = chargerId(name);
    const charger = state.chargers.get(id);
    if (charger === undefined) return noSuchCharger(name);
    const bar = state.barTo("queue", id);
    if (bar !== null) return conflict(`nothing was sent to ${id}`, BAR_TEXTS[bar]);
    const last = state.commands.get(id);
    if (last === undefined)
      return conflict(`nothing was sent to ${id}`, "it has had no command yet, so it decides by itself");
    const { command, progress } = last;
    if (command.desired.kind === "release" && !charger.refreshesRelease && isDone(progress))
      return conflict(`nothing was sent to ${id}`, "its last command was a release, and it has followed it");
    const { promise, resolve } = Promise.withResolvers<Committed>();
    const level = formatLevel(command.desired);
    const facts = { by, reason: checked.data.reason, resend: commandId(command) };
    request({
      apply: (_state, at) => ({
        changes: [
          auditRow("operator", at, `${id} is sent ${level} again by ${by}: ${facts.reason}`, {
            charger: id,
            vehicle: command.vehicle,
            facts,
          }),
        ],
        affectedChargers: [id],
        isRepeat: true,
      }),
      settle: resolve,
    });
    const committed = await promise;
    if (!committed.ok) return notStored(committed.reason);
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

const isDone = (progress: string): boolean => progress === "followed" || progress === "accepted";

export const noSuchCharger = (name: string): Answer<Json> => ({
  ok: false,
  problem: {
    status: 404,
    title: `there is no charger ${name}`,
    detail: "",
    errors: [{ path: "id", found: name, expected: "the id of a charger of this site" }],
  },
});
