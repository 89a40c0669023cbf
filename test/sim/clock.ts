import pino from "pino";
import { instant, type Instant } from "../../src/domain/units.ts";

/** The clock that the tests hand to the simulators. */
export const now = (): Instant => instant(Date.now());

export const silent = pino({ level: "silent" });
