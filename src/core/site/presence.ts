import type { Instant } from "../units.ts";
import { type OwnClock, type Stamped, UNHEARD } from "./ownClock.ts";
import type { Telemetry } from "./telemetry.ts";

/** What a charger last said. */
export interface Presence {
  /** Null: it never said. */
  readonly online: boolean | null;
  readonly heardAt: Instant | null;
  /** When the voltages were that it told last; null: it never told any. */
  readonly voltagesAt: Instant | null;
  /** Volts that limits use since the last measurement (hysteresis: limits.ts); null: the declared ones. */
  readonly voltage: number | null;
  /** When the currents were that it told last; null: it never told any. */
  readonly currentsAt: Instant | null;
  /** When its telemetry last had its published state renewed; null: never. */
  readonly stateAt: Instant | null;
  /** Of its last live telemetry; null: it told none. */
  readonly stamped: Stamped | null;
  readonly clock: OwnClock;
  /** What was said since its clock is in doubt; null: it is not. */
  readonly unsure: Telemetry | null;
  /** When the newest telemetry was measured; null: it told none. */
  readonly measuredAt: Instant | null;
  /** All members it ever told, the newest of each. */
  readonly telemetry: Telemetry | null;
}

/** Of a charger that never said anything. */
export const ABSENT: Presence = {
  online: null,
  heardAt: null,
  voltagesAt: null,
  voltage: null,
  currentsAt: null,
  stateAt: null,
  stamped: null,
  clock: UNHEARD,
  unsure: null,
  measuredAt: null,
  telemetry: null,
};
