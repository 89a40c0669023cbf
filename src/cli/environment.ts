import { complain } from "./outcome.ts";

/** As pino names them. */
const LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"];

/** A variable of the environment; an empty one counts as unset. */
export function setting(name: string): string | undefined {
  const found = process.env[name];
  return found === "" ? undefined : found;
}

/** `$LOG_LEVEL`; what is wrong with it has been explained when the answer is null. */
export function logLevel(): string | null {
  const level = setting("LOG_LEVEL") ?? "info";
  if (LEVELS.includes(level)) return level;
  complain(`LOG_LEVEL is ${JSON.stringify(level)}, which is no level; there are ${LEVELS.join(", ")}`);
  return null;
}
