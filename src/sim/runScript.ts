import { setTimeout as sleep } from "node:timers/promises";
import { after, between, type Instant } from "../core/units.ts";
import { wireEvent, type EventPlan, type WireEvent } from "./events.ts";
import type { Operation, SimulatedPartner } from "./partner.ts";
import type { Script, ScriptEvent, ScriptStep } from "./script.ts";

/** What a running script needs. `tell` hears each step as a sentence. */
export interface ScriptStage {
  readonly now: () => Instant;
  readonly signal: AbortSignal;
  readonly tell: (sentence: string) => void;
}

const meaning = (plan: EventPlan): string => {
  const level = "amperes" in plan.ask ? `${plan.ask.amperes} A` : `${plan.ask.kilowatts} kW`;
  return `${plan.id} "${plan.name ?? plan.id}", ${level} for ${plan.vehicles?.join(", ") ?? "everybody"}, priority ${plan.priority ?? 5}`;
};

const askOf = (event: ScriptEvent): EventPlan["ask"] | null => {
  if (event.amperes !== undefined) return { amperes: event.amperes };
  return event.kilowatts === undefined ? null : { kilowatts: event.kilowatts };
};

/** The members that a step names, over what was there before. */
function planned(id: string, event: ScriptEvent, before: EventPlan | undefined, now: Instant): EventPlan {
  const start = event.startIn === undefined ? (before?.start ?? now) : after(now, event.startIn);
  return {
    ...before,
    id,
    start,
    durationMs: event.duration ?? before?.durationMs ?? 0,
    ask: askOf(event) ?? before?.ask ?? { amperes: 0 },
    ...(event.name !== undefined && { name: event.name }),
    ...(event.randomizeStart !== undefined && { randomizeStartMs: event.randomizeStart }),
    ...(event.priority !== undefined && { priority: event.priority }),
    ...(event.vehicles !== undefined && { vehicles: event.vehicles }),
    ...(event.programId !== undefined && { programId: event.programId }),
    ...(event.reports !== undefined && { reportDescriptors: event.reports }),
  };
}

/** Plays a script on a partner until it ends or `signal` aborts; deliveries still under way are waited for. */
export async function runScript(
  script: Script,
  partner: SimulatedPartner,
  stage: ScriptStage,
): Promise<void> {
  const deliveries = new Set<Promise<void>>();
  let number = script.firstId;

  const send = (sent: string | WireEvent, operation: Operation, id: string): void => {
    // Not awaited: a daemon that does not answer must not hold up the story.
    const delivery = partner.deliver(sent, { operation }).then(({ status, attempts }) => {
      deliveries.delete(delivery);
      if (stage.signal.aborted) return;
      const answer = status === null ? "no answer" : `HTTP ${status}`;
      if (status === null || status >= 300)
        stage.tell(`${id} was not taken: ${answer} after ${attempts} tries`);
    });
    deliveries.add(delivery);
  };

  const play = (step: ScriptStep, round: Map<string, EventPlan>): void => {
    const now = stage.now();
    const { key } = step.event;
    const before = round.get(key);
    const id = before?.id ?? `${script.idPrefix}${number++}`;
    switch (step.do) {
      case "put":
      case "change": {
        const plan = planned(id, step.event, before, now);
        round.set(key, plan);
        const stored = partner.put(wireEvent(plan, now));
        const verb = step.do === "put" ? "new" : "changed";
        const way = step.via === "webhook" ? "delivered by webhook" : "left to be found by polling";
        stage.tell(`${verb}: ${meaning(plan)}; ${way}`);
        if (step.via === "webhook") send(stored, step.do === "put" ? "CREATE" : "UPDATE", id);
        return;
      }
      case "deliver":
        stage.tell(`${id} is delivered once more`);
        return send(id, "UPDATE", id);
      case "withdraw":
        partner.withdraw(id);
        stage.tell(
          `${id} is withdrawn; ${step.via === "webhook" ? "told by webhook" : "left to be missed by polling"}`,
        );
        if (step.via === "webhook") send(id, "DELETE", id);
        return;
    }
  };

  const until = async (due: Instant): Promise<void> => {
    await sleep(Math.max(0, between(stage.now(), due)), undefined, { signal: stage.signal }).catch(
      () => undefined,
    );
  };

  let previous: ReadonlyMap<string, EventPlan> = new Map();
  for (;;) {
    // Not the planned moment: after a machine slept, missed rounds are not made up for.
    const begun = stage.now();
    const round = new Map<string, EventPlan>();
    for (const step of script.steps) {
      await until(after(begun, step.at));
      if (stage.signal.aborted) break;
      play(step, round);
    }
    if (script.repeatEvery === undefined || stage.signal.aborted) break;
    await until(after(begun, script.repeatEvery));
    // A round is kept for one more, then forgotten: a demo may go on for ever.
    for (const { id } of previous.values()) partner.forget(id);
    previous = round;
  }
  await Promise.all(deliveries);
}
