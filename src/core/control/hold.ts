import type { ChargerId, EventId, Instant } from "../units.ts";

/** An operator freed a charger from the events that then held it; later events still apply. */
export interface Hold {
  readonly charger: ChargerId;
  readonly events: readonly EventId[];
  readonly since: Instant;
  /** The latest end of those events' windows on this charger. */
  readonly until: Instant;
}
