import type { Window } from "../units.ts";
import { type Finding, nothing } from "./cause.ts";
import type { Evidence } from "./evidence.ts";
import { last, within } from "./series.ts";

/** Below this a charger is idle, whatever it says: standby electronics draw less, W. */
const RUNNING = 100;

/**
 * OpenADR's word for how the vehicle was at the end of a window: IDLE or RUNNING, NORMAL, CURTAILED while we hold it
 * to a level, OPTED_OUT while the site holds it out of the event; ERROR where the charger says so.
 */
export function operatingState(
  { state, power, commanded, outages }: Evidence,
  window: Window,
): Finding<string> {
  const said = last(within(state.steps, window));
  const drawn = last(within(power.steps, window));
  if (said === null && drawn === null) return nothing("no readings");
  const value = said === "error" ? "ERROR" : `${isRunning(said, drawn) ? "RUNNING" : "IDLE"}_${mode()}`;
  return { value, quality: "OK", causes: [] };

  function mode(): "OPTED_OUT" | "CURTAILED" | "NORMAL" {
    const isOut = outages.some(
      ({ cause, from, until }) =>
        cause === "opted out by the site" && from < window.until && until >= window.until,
    );
    if (isOut) return "OPTED_OUT";
    const told = last(within(commanded, window));
    return told === null || told.kind === "release" ? "NORMAL" : "CURTAILED";
  }
}

const isRunning = (said: string | null, drawn: number | null): boolean =>
  drawn === null ? said === "charging" : Math.abs(drawn) >= RUNNING;
