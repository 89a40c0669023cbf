import type { Delivery } from "../../domain/delivery.ts";
import type { CoordinationEvent } from "../../domain/event.ts";
import type { ChargerId } from "../../domain/units.ts";
import { type ResumableTask, runCooperatively, runToEnd } from "../../platform/cooperative.ts";
import type { Arrival, ControlPorts, Reevaluation } from "../ports.ts";
import type { ControlState } from "../state.ts";
import { type Ingestion, ingesting, neededWhole } from "./ingest.ts";

/** Chargers to evaluate. A promise: the stage reads first, or takes several turns of the event loop. */
export type Affected = readonly Reevaluation[] | Promise<readonly Reevaluation[]>;

type IngestPorts = Pick<ControlPorts, "write" | "fetchById" | "durable" | "monotonic">;

/**
 * The stage of intake and expansion. Each delivery is settled after the commit, which holds the first evaluations as
 * well. Returns the chargers to evaluate. A promise: the delivery is large and takes several turns of the event loop;
 * until then no other stage may run.
 */
export function ingestStage(
  depot: ControlState,
  ports: IngestPorts,
): (arrivals: readonly Arrival[]) => Affected {
  /** Chargers affected by the parts of a list so far. */
  const waiting = new Set<ChargerId>();

  const finish = (arrivals: readonly Arrival[], ingestion: Ingestion): readonly Reevaluation[] => {
    const { changes, affectedChargers, fetchById, results } = ingestion;
    const stored = arrivals.flatMap(({ delivery }) => delivery.stored ?? []);
    ports.write([
      ...changes,
      ...stored.map((number) => ({ kind: "deliveryTaken", stored: number }) as const),
    ]);
    if (fetchById.length > 0) ports.fetchById(fetchById);
    void ports.durable().then((committed) => {
      results.forEach((ingested, index) => {
        arrivals[index]?.settle(committed.ok ? { ok: true, ingested } : committed);
      });
    });
    for (const charger of affectedChargers) waiting.add(charger);
    if (arrivals.every(({ isPart = false }) => isPart)) return [];
    const reevaluations = [...waiting].map((charger) => ({ charger, reassert: false }));
    waiting.clear();
    return reevaluations;
  };

  return (arrivals) => {
    const deliveries = arrivals.map(({ delivery }) => delivery);
    // Events of which only a summary is in memory are read first.
    const begin = (): ResumableTask<Ingestion> | Promise<ResumableTask<Ingestion>> =>
      depot.known.withWhole(
        () => neededWhole(depot, deliveries),
        (read) => ingesting(depot, deliveries, read),
      );
    const atOnce = (steps: ResumableTask<Ingestion>) => finish(arrivals, runToEnd(steps));
    const inTurns = async (): Promise<readonly Reevaluation[]> => {
      // A commit that fails between two steps would roll back half of them.
      await ports.durable();
      return finish(arrivals, await runCooperatively(await begin(), ports.monotonic));
    };
    if (deliveries.some((delivery) => isLarge(depot, delivery))) return inTurns();
    const steps = begin();
    return steps instanceof Promise ? steps.then(atOnce) : atOnce(steps);
  };
}

/** Targets of a delivery that take more than one turn of the event loop. */
const MANY_TARGETS = 1_000;

/** True: too many targets for one turn, as delivered, or as known until now. */
function isLarge({ known }: ControlState, { notices }: Delivery): boolean {
  let count = 0;
  for (const notice of notices) {
    const id = notice.kind === "event" ? notice.event.id : notice.id;
    const before = id === null ? undefined : known.get(id);
    if (notice.kind === "event") count += targetsIn(notice.event);
    if (before?.kind === "live") count += targetsIn(before.revision.event);
  }
  return count > MANY_TARGETS;
}

const targetsIn = ({ targets }: CoordinationEvent): number =>
  targets.reduce((sum, { values }) => sum + values.length, 0);
