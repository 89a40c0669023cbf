import { z } from "zod";

import { beginObserving, endObserving } from "../control/holds/observePeriod.ts";
import { formatPeriod, periodFacts } from "../control/decide/gate.ts";
import { limited } from "../control/send/release.ts";
import { NO_CHANGES, type RequestedChange } from "../control/stage.ts";
import type { ControlState } from "../control/state.ts";
import type { Json } from "../domain/audit.ts";
import type { Committed } from "../domain/changes.ts";
import { LONGEST_HOLD, type ObservePeriod } from "../domain/hold.ts";
import { after, type Instant, iso } from "../domain/units.ts";
import { type Answer, conflict, invalid, momentIn, notStored, starting, mistakesIn } from "./answer.ts";

const EXPECTED = {
  mode: '"observe" or "drive"',
  reason: "why, in 1 to 200 characters",
  until: "a moment, e.g. 2026-11-21T06:00:00Z",
} as const;

const endMoment = z.iso.datetime({ offset: true, local: true, error: EXPECTED.until });

/** The body of `PUT mode`. Its end may also be spelled as that of a hold. */
export const modeSchema = z.strictObject({
  mode: z.enum(["observe", "drive"], { error: EXPECTED.mode }),
  reason: z.string({ error: EXPECTED.reason }).trim().min(1, EXPECTED.reason).max(200, EXPECTED.reason),
  until: z
    .union([endMoment, z.strictObject({ at: endMoment }), z.null()], { error: EXPECTED.until })
    .exactOptional()
    .describe("The end of observe, at most 24 h ahead. Not with drive."),
});

/** Requests about the mode of the site: from the API and the command line. */
export interface ModeApi {
  readonly get: () => { readonly [member: string]: Json };
  readonly put: (body: unknown, by: string) => Promise<Answer<Json>>;
}

interface ModeParts {
  readonly state: ControlState;
  /** Hands a change to control. Resolves after its commit. */
  readonly request: (change: RequestedChange) => Promise<Committed>;
  readonly now: () => Instant;
  /** The first evaluation is done. */
  readonly isReady: () => boolean;
}

/** Answers requests about the mode. A change is answered after its commit. */
export function modeApi({ state, request, now, isReady }: ModeParts): ModeApi {
  return {
    get: () => modeView(state),

    async put(body, by) {
      const checked = modeBody(body);
      if ("ok" in checked) return checked;
      if (!isReady()) return starting;
      const { mode, reason, until = null } = checked.body;
      const { configured } = state.mode;
      if (configured === "observe") return observesByConfiguration(mode);
      const end = until === null || typeof until === "string" ? until : until.at;
      const at = end === null ? null : momentIn(end);
      const last = after(now(), LONGEST_HOLD);
      if (mode === "drive" && at !== null)
        return invalid({ path: "until", found: until, expected: 'no until with mode "drive"' });
      if (mode === "observe" && (at === null || at <= now() || at > last))
        return invalid({
          path: "until",
          found: until,
          expected: `later than ${iso(now())}, at most 24 h ahead: until ${iso(last)}`,
        });
      const before = state.mode.period;
      const standing = limited(state).map(({ command }) => command.charger);
      const committed = await request((state, applied) => {
        if (at !== null) {
          const period = { since: applied, until: at, cap: after(applied, LONGEST_HOLD), by, reason };
          return beginObserving(state, period, applied);
        }
        // Nothing to end: it has ended by itself, or another person was faster.
        const { period } = state.mode;
        return period === null ? NO_CHANGES : endObserving(state, period, by, reason, applied);
      });
      if (!committed.ok) return notStored(committed);
      return {
        ok: true,
        value: {
          ...modeView(state),
          replaced: before === null ? null : shownPeriod(state, before),
          limited: standing,
          onObserve: mode === "observe" ? state.settings.onObserve : null,
        },
      };
    },
  };
}

/** The mode of the site, and the period that a person asked for. */
function modeView(state: ControlState): { readonly [member: string]: Json } {
  const { current, configured, period } = state.mode;
  return {
    mode: current,
    configured,
    onObserve: state.settings.onObserve,
    observing: period === null ? null : shownPeriod(state, period),
    sentence:
      period === null
        ? `mode ${current}${current === "observe" ? ", by the configuration" : ""}`
        : formatPeriod(period, state.wallClock),
  };
}

/** A period of observe as the status and the mode show it. */
export const shownPeriod = ({ wallClock }: ControlState, period: ObservePeriod): Json => ({
  ...periodFacts(period),
  sentence: formatPeriod(period, wallClock),
});

/** Checks the shape of a body. Every mistake is answered with its path. */
function modeBody(body: unknown): Answer<Json> | { readonly body: z.output<typeof modeSchema> } {
  const mistakes = mistakesIn(body, modeSchema, EXPECTED);
  return mistakes.length > 0 ? invalid(...mistakes) : { body: modeSchema.parse(body) };
}

const observesByConfiguration = (wanted: "observe" | "drive"): Answer<Json> =>
  conflict(
    wanted === "drive" ? "this site may not drive its chargers" : "this site observes already",
    "control.mode in the configuration is observe: change it there and restart setpointd",
    { path: "mode", found: wanted, expected: "no change: the configuration decides" },
  );
