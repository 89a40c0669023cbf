import { millis } from "../../src/domain/units.ts";
import { wireEvent, type WireEvent } from "../../src/sim/events.ts";
import type { SimulatedPartnerOptions } from "../../src/sim/partner.ts";
import { now, silent } from "./clock.ts";

export const CREDENTIALS = { clientId: "depot-north", clientSecret: "not-a-real-secret" };
export const START: SimulatedPartnerOptions = {
  ...CREDENTIALS,
  host: "127.0.0.1",
  port: 0,
  webhook: null,
  now,
  log: silent,
  retryAfter: millis(5),
};
export const anEvent = (id: string): WireEvent =>
  wireEvent({ id, start: now(), durationMs: 60_000, ask: { amperes: 16 }, vehicles: ["bus-201"] }, now());
