import type { Instant } from "../domain/units.ts";
import type { Counted } from "./stationCounts.ts";
import type { Station } from "./station.ts";
import { amperesOf } from "./wire/profiles.ts";

/** Kinds of problems, as the metric names them. */
type ProblemKind =
  | "absent"
  | "clock"
  | "duplicateIdentity"
  | "flood"
  | "ignoresLimit"
  | "malformed"
  | "messageRefused"
  | "meterOrder"
  | "noSmartCharging"
  | "otherConnector"
  | "profilesOfUpstream"
  | "refusedLogin"
  | "restarts"
  | "tooLarge"
  | "unanswered"
  | "upstreamAway";

interface Problem {
  readonly kind: ProblemKind;
  /** A sentence, with the remedy where one is known. */
  readonly text: string;
}

type Subject = Pick<Station, "life" | "counts" | "outlets" | "absentFor">;

/** Repeated this often, a fault is not chance. */
const OFTEN = 3;
/** A charger that restarts is away for less, ms. */
const AWAY_AFTER = 5 * 60_000;
/** Rounding of a charger, A. */
const TOLERANCE_A = 0.5;

const OF_COUNTS: readonly [Counted, ProblemKind, least: number, text: (count: number) => string][] = [
  [
    "replaced",
    "duplicateIdentity",
    OFTEN,
    (n) =>
      `its connection was replaced ${n} times by a newer one: check that no two chargers have this identity`,
  ],
  [
    "refusedLogins",
    "refusedLogin",
    1,
    (n) => `${n} logins were refused: compare its password and its OCPP version`,
  ],
  [
    "bootsAfterProfile",
    "restarts",
    OFTEN,
    (n) =>
      `it restarted ${n} times within a minute after a charging profile: ask the vendor for a newer firmware`,
  ],
  ["unanswered", "unanswered", 1, (n) => `it left ${n} requests unanswered`],
  ["clockWrong", "clock", 1, (n) => `its clock was wrong in ${n} messages; our time is sent to it`],
  ["outOfOrder", "meterOrder", 1, (n) => `${n} meter values came out of order and were not used`],
  ["flooded", "flood", 1, (n) => `it sent too many messages ${n} times and was slowed down`],
  ["malformed", "malformed", 1, (n) => `${n} of its messages could not be read`],
  ["tooLarge", "tooLarge", 1, (n) => `${n} of its messages were over 256 KiB and ended its connection`],
  [
    "otherConnectors",
    "otherConnector",
    1,
    (n) => `${n} of its messages name a connector that the configuration lacks: add it to connectors`,
  ],
];

/** Problems of a station in the last hour. */
export function problemsOf({ life, counts, outlets, absentFor }: Subject, now: Instant): readonly Problem[] {
  const all: Problem[] = [];
  const add = (kind: ProblemKind, text: string): void => void all.push({ kind, text });
  const away = absentFor(now);
  if (away > AWAY_AFTER) add("absent", `it has not been connected for ${Math.floor(away / 60_000)} min`);
  if (life.kind === "ready" && life.capabilities.smartCharging === false)
    add(
      "noSmartCharging",
      "it has no Smart Charging: every setpoint is refused. Ask the vendor for a firmware with the feature profile SmartCharging",
    );
  for (const [counted, kind, least, text] of OF_COUNTS) {
    const count = counts.recent(counted);
    if (count >= least) add(kind, text(count));
  }
  for (const { connector, config } of outlets) {
    const { reported } = connector.applied;
    const { amperes } = connector;
    const applied = reported === null ? null : amperesOf(reported, config);
    if (applied !== null && amperes !== null && applied > amperes + TOLERANCE_A)
      add(
        "ignoresLimit",
        `connector ${config.id} accepted ${amperes} A and reports that it applies ${applied} A: another profile wins, or its clock is wrong`,
      );
  }
  const upstream = life.kind === "absent" ? null : life.on.upstream;
  if (upstream !== null && !upstream.isUp)
    add("upstreamAway", `the central system (upstream) is away; ${upstream.waiting} messages wait for it`);
  if (upstream !== null && upstream.counts.refused > 0)
    add(
      "messageRefused",
      `the central system (upstream) refused ${upstream.counts.refused} stored messages: see the log`,
    );
  if (upstream !== null && outlets.some(({ connector }) => connector.isOutranked))
    add(
      "profilesOfUpstream",
      "a charging profile of the central system (upstream) has the highest stackLevel that the charger allows, so ours cannot be above it: lower its stackLevel there",
    );
  return all;
}
