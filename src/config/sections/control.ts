import * as z from "zod";

import type { RampSettings, ControlSettings } from "../../control/ports.ts";
import type { AtEnd } from "../../domain/charger.ts";
import { amperes, millis, minutes } from "../../domain/units.ts";
import { duration, kilowatts, quantity } from "../fields/quantities.ts";

/** Behaviour of a charger after its last event, as in the file. */
export const atEnd = z.union(
  [
    z.enum(["release", "pause"]).transform((kind): AtEnd => ({ kind })),
    z
      .strictObject({ current: quantity(1, 1000, "amperes", 10) })
      .transform(({ current }): AtEnd => ({ kind: "current", amperes: amperes(current) })),
    z
      .strictObject({ power: kilowatts(0.1) })
      .transform(({ power }): AtEnd => ({ kind: "power", watts: power })),
  ],
  { error: "release, pause, { current: A } or { power: kW }, e.g. { current: 10 }" },
);

/** A shorter silence is not worth an alarm. */
const LEAST_SILENCE = minutes(5);

export const minInterval = duration("0s", "1h");
export const deadband = quantity(0, 100, "amperes", 1);

/** Fastest common rise of the site's levels, as in the file. */
const releaseRamp = z.union(
  [
    z
      .strictObject({ current: quantity(0.1, 1_000_000, "amperes", 64) })
      .transform(({ current }): RampSettings => ({ unit: "A", perMinute: current })),
    z
      .strictObject({ power: kilowatts(0.1) })
      .transform(({ power }): RampSettings => ({ unit: "W", perMinute: power })),
  ],
  { error: "{ current: A } or { power: kW } a minute, e.g. { power: 100 }" },
);

export const controlSection = z.strictObject({
  mode: z
    .enum(["drive", "observe"])
    .prefault("drive")
    .describe(
      "drive commands the chargers; observe decides, logs and explains everything but publishes no command. Default drive. Use observe while commissioning.",
    ),
  onObserve: z
    .enum(["release", "keep"])
    .prefault("release")
    .describe(
      "What a start in observe does with chargers that an earlier run in drive limited: release them once, or keep the limits. Default release.",
    ),
  units: z
    .strictObject({
      current: z
        .enum(["A"])
        .prefault("A")
        .describe("Unit of a current in an event: A, per phase. Default A."),
      power: z
        .enum(["kW", "W"])
        .prefault("kW")
        .describe(
          "Unit of a power in an event, per vehicle: kW or W. Default kW. Change it when the partner confirms the other.",
        ),
    })
    .prefault({})
    .describe("Units of the levels in events. The contract does not name them: ask the partner."),
  priority: z
    .enum(["lower", "higher"])
    .prefault("lower")
    .describe(
      "Which priority number wins if events overlap: lower (as in OpenADR 3) or higher. Default lower.",
    ),
  priorityZero: z
    .enum(["highest", "unset"])
    .prefault("highest")
    .describe(
      "What priority 0 means: highest, or unset (loses to any other). Default highest. Use unset when the partner sends 0 for no priority.",
    ),
  ties: z
    .enum(["newest", "mostRestrictive"])
    .prefault("newest")
    .describe("Which event wins at equal priority: newest or mostRestrictive. Default newest."),
  randomizedEnd: z
    .enum(["shift", "clip"])
    .prefault("shift")
    .describe(
      "shift moves the end along with the random start, so releases are spread too; clip ends at start plus duration for all. Default shift.",
    ),
  untargeted: z
    .enum(["ignore", "all"])
    .prefault("ignore")
    .describe(
      "What an event without targets applies to: ignore (nothing, with a warning) or all vehicles. Default ignore.",
    ),
  vehicleTargetTypes: z
    .array(z.string().min(1).max(64).toLowerCase())
    .min(1)
    .max(16)
    .prefault(["vehicle"])
    .describe(
      "Types of the targets that name vehicles, in any case. Default [vehicle]. Add the partner's own spelling.",
    ),
  atEnd: atEnd
    .prefault("release")
    .describe(
      "When the last event on a charger ends: release it to its own default, pause, or hold a level, e.g. { current: 10 } in A or { power: 22 } in kW. Default release.",
    ),
  releaseRamp: releaseRamp
    .optional()
    .describe(
      "Largest increase of all chargers together per minute, at releases and higher limits: { power: 100 } in kW or { current: 64 } in A per phase. The charger that waits longest is next. Reductions never wait. This is not a protective function. Left out: no limit.",
    ),
  onStop: z
    .enum(["keep", "release", "pause"])
    .prefault("keep")
    .describe(
      "What an orderly stop of setpointd does with limited chargers: keep the limit, release or pause. Default keep.",
    ),
  refresh: duration("1s", "1h")
    .prefault("60s")
    .describe(
      "How often an active command is sent again, 1s to 1h; a charger's lease is three times this. Default 60s.",
    ),
  silentAfter: duration("10s", "7d")
    .optional()
    .describe(
      "A charger without a message for this long is shown as unreachable. Its command is sent again at its next message. Left out: three times refresh, at least 5m.",
    ),
  verdict: z
    .strictObject({
      ramp: duration("1s", "1h")
        .prefault("30s")
        .describe(
          "Time for a charger and its vehicle to follow a command, before their telemetry counts against it. Default 30s.",
        ),
      amperes: quantity(0, 100, "amperes", 0.5)
        .prefault(0.5)
        .describe("How far above its limit a charger may draw or report, in A per phase. Default 0.5."),
      percent: quantity(0, 100, "percent", 5)
        .prefault(5)
        .describe("The same in percent of the level; the larger of the two counts. Default 5."),
    })
    .prefault({})
    .describe("When a command counts as followed or not followed, by the charger's telemetry."),
  minInterval: minInterval
    .prefault("0s")
    .describe(
      "Least time between two commands to one charger, to protect its hardware; a reduction never waits. Default 0s.",
    ),
  deadband: deadband
    .prefault(0)
    .describe(
      "Smallest increase worth a command, in A per phase, to protect the hardware; reductions are always sent. Default 0.",
    ),
});

/** Settings of the whole site. Those of single chargers are in `Config.chargers`. */
export interface ControlConfig extends ControlSettings {
  readonly onStop: "keep" | "release" | "pause";
}

export const controlConfig = (section: z.infer<typeof controlSection>): ControlConfig => ({
  mode: section.mode,
  onObserve: section.onObserve,
  powerUnit: section.units.power,
  priority: section.priority,
  priorityZero: section.priorityZero,
  ties: section.ties,
  randomizedEnd: section.randomizedEnd,
  untargeted: section.untargeted,
  vehicleTargetTypes: section.vehicleTargetTypes,
  refresh: section.refresh,
  silentAfter: section.silentAfter ?? millis(Math.max(3 * section.refresh, LEAST_SILENCE)),
  verdict: section.verdict,
  releaseRamp: section.releaseRamp ?? null,
  onStop: section.onStop,
});
