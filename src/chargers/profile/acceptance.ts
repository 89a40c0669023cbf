import type { Desired } from "../../core/control/setpoint.ts";
import type { Bound } from "./bind.ts";
import type { Means } from "./means.ts";
import { confirmation, doubts } from "./picture.ts";
import type { Reported } from "./reported.ts";

/** Whether a charger shows by now that it took a command. */
export function isAccepted(desired: Desired, standing: Means, bound: Bound, reported: Reported): boolean {
  const released = desired.kind === "release" ? reported.release(bound) : null;
  return released === null ? confirmation(desired, standing, bound) === true : released.isShown;
}

/** Why a command that was not confirmed in time counts as not taken. Null: it does not, or the make does not show it. */
export function refusalOf(
  desired: Desired,
  standing: Means,
  bound: Bound,
  reported: Reported,
): string | null {
  const { confirmedBy } = bound.profile;
  if (confirmedBy === undefined) return null;
  if (desired.kind === "current") return doubts(desired.amperes, confirmedBy, standing, bound);
  const released = desired.kind === "release" ? reported.release(bound) : null;
  return released === null || released.isShown
    ? null
    : `not confirmed within ${confirmedBy.within / 1000} s, ${released.words}`;
}
