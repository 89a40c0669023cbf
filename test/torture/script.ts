import { below, oneOf } from "../fuzz/chance.ts";
import type { PlannedAsk, PlannedEvent } from "../simulate/plan.ts";

type Random = () => number;

/** What the partner does, ms after the start of the round; each delivery that many ms after the step. */
export type Step = { readonly at: number; readonly deliveries: readonly number[] } & (
  | { readonly kind: "put"; readonly event: PlannedEvent }
  | { readonly kind: "withdraw"; readonly id: string }
);

const VEHICLES = ["veh-1", "veh-2", "veh-3", "veh-4"];
const LASTING = 600_000;
/** Apart by this, no two revisions of an event ask for the same: what a charger hears tells which one it was. */
const [EVENT_APART, REVISION_APART] = [0.6, 0.1];

/** A round in which events start, overlap, are edited, withdrawn and end within seconds; two still hold at its end. */
export function scriptFrom(length: number, random: Random): readonly Step[] {
  const count = Math.round(length / 900);
  const passing = Array.from({ length: count }, (_, index) =>
    lifeOf(aPassingEvent(index, length, random), index, length, random),
  );
  const lasting = [count, count + 1].map((index) => {
    const event = { ...aPassingEvent(index, length, random), duration: LASTING, priority: 4 };
    return [put(below(length / 2, random), event, random)];
  });
  return [...passing, ...lasting].flat().toSorted((a, b) => a.at - b.at);
}

function aPassingEvent(index: number, length: number, random: Random): PlannedEvent {
  return {
    id: `EV-${index}`,
    start: below(length * 0.8, random),
    duration: oneOf([300, 1_500, 2_500, 3_500, 5_000], random) + below(500, random),
    spread: oneOf([0, 0, 600, 1_500, 2_500], random),
    priority: oneOf([1, 2, 3], random),
    ask: askOf(index, 0),
    vehicles: someOf(random),
    reports: [],
  };
}

const askOf = (index: number, revision: number): PlannedAsk => ({
  kind: "current",
  amperes: Math.round((7 + index * EVENT_APART + revision * REVISION_APART) * 10) / 10,
});

/** From its first word to its last: some are edited before they start, while they hold or after, some withdrawn, some come back. */
function lifeOf(first: PlannedEvent, index: number, length: number, random: Random): readonly Step[] {
  let at = Math.max(0, first.start - oneOf([-400, 100, 600, 1_500, 3_000], random));
  const steps: Step[] = [put(at, first, random)];
  let event = first;
  for (let revision = 1; revision <= below(4, random); revision += 1) {
    at += 50 + below(2_500, random);
    if (at > length) break;
    const isGone = steps.some(({ kind }) => kind === "withdraw");
    if (!isGone && random() < 0.35) {
      steps.push({ kind: "withdraw", at, id: event.id, deliveries: deliveriesFrom(random) });
    } else {
      event = edited(event, index, revision, random);
      steps.push(put(at, event, random));
    }
  }
  return steps;
}

function edited(event: PlannedEvent, index: number, revision: number, random: Random): PlannedEvent {
  const hasPaused = event.ask.kind === "current" && event.ask.amperes === 0;
  const isPause = revision === 1 && !hasPaused && random() < 0.25;
  const next = { ...event, ask: isPause ? { kind: "current" as const, amperes: 0 } : askOf(index, revision) };
  switch (oneOf(["level", "duration", "start", "vehicles", "priority"] as const, random)) {
    case "level":
      return next;
    case "duration":
      return { ...next, duration: Math.max(200, event.duration + oneOf([-1_500, 1_500], random)) };
    case "start":
      return { ...next, start: Math.max(0, event.start + oneOf([-1_000, 1_000, 2_000], random)) };
    case "vehicles":
      return { ...next, vehicles: someOf(random) };
    case "priority":
      return { ...next, priority: oneOf([1, 2, 3], random) };
  }
}

const put = (at: number, event: PlannedEvent, random: Random): Step => ({
  kind: "put",
  at,
  event,
  deliveries: deliveriesFrom(random),
});

/** Mostly at once; sometimes twice, late, or not at all: then the list brings it. */
const deliveriesFrom = (random: Random): readonly number[] =>
  oneOf([[10], [10], [10], [10, 300], [700], []], random);

function someOf(random: Random): readonly string[] {
  const chosen = VEHICLES.filter(() => random() < 0.6);
  return chosen.length > 0 ? chosen : VEHICLES.slice(0, 2);
}
