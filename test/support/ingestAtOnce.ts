import { ingest } from "../../src/control/ingest/ingest.ts";
import { NONE_READ } from "../../src/control/ingest/knownEvents.ts";
import type { ControlState } from "../../src/control/state.ts";
import type { Delivery } from "../../src/domain/delivery.ts";
import { runToEnd } from "../../src/platform/cooperative.ts";

/** Ingests deliveries in one go, as the stage does with small ones. No event has to be read first. */
export const ingestAtOnce = (state: ControlState, deliveries: readonly Delivery[]) =>
  runToEnd(ingest(state, deliveries, NONE_READ));
