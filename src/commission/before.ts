import { type Desired, inWords } from "../core/control/setpoint.ts";
import type { Charger } from "../core/site/charger.ts";

/** How a charger stood before it was tried, which is how it is left. */
export interface Before {
  readonly desired: Desired;
  /** Who knows: our own record, the charger, or nobody, and then it is released. */
  readonly source: "record" | "charger" | "nobody";
}

/** `standing`: the limit of ours that it is under; `shown`: the level that it shows, whoever told it. Null: none. */
export function beforeOf(standing: Desired | null, shown: Desired | null, charger: Charger): Before {
  if (standing !== null) return { desired: standing, source: "record" };
  if (shown === null) return { desired: { kind: "release" }, source: "nobody" };
  const isFree =
    shown.kind === "current" && charger.maxCurrent !== null && shown.amperes >= charger.maxCurrent;
  return { desired: isFree ? { kind: "release" } : shown, source: "charger" };
}

/** For people: after the name of the charger. */
export function beforeInWords({ desired, source }: Before): string {
  switch (source) {
    case "record":
      return `told ${inWords(desired)} before`;
    case "charger":
      return desired.kind === "release" ? "free before" : `at ${inWords(desired)} before, not by us`;
    case "nobody":
      return "what held before is not known, so it is released";
  }
}
