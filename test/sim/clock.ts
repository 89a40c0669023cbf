import pino from "pino";
import { instant, type Instant } from "../../src/domain/units.ts";

/** Clock of the simulators in tests. */
export const now = (): Instant => instant(Date.now());

export const silent = pino({ level: "silent" });
