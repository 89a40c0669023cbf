import type { Explanation } from "../../control/decide/explain.ts";
import { offlineControl } from "../../daemon/site.ts";
import { explanationsOf } from "../../daemon/status.ts";
import type { Json } from "../../domain/audit.ts";
import { formatLevel, levelOf, type LevelView } from "../../domain/setpoint.ts";
import { type Instant, iso, fromIso } from "../../domain/units.ts";
import type { Answer } from "../../operator/answer.ts";
import { wallClock } from "../../platform/clock.ts";
import { unknownTarget, verbConfiguration } from "../configuration.ts";
import { type ExitCode, fail, MOMENT, printAnswer, readMoment, writeLine, type Verb } from "../output.ts";
import { askOrRead } from "../storedState.ts";
import { formatDeparture } from "./departures.ts";

interface ExplainOptions {
  readonly at?: string;
  readonly json: boolean;
}

/** `explain`: shows every claim on a charger or a vehicle, the winner first. The running daemon answers, or the stored state. */
async function explain(
  named: string | undefined,
  target: string,
  { at, json }: ExplainOptions,
  now: () => Instant,
): Promise<ExitCode> {
  const site = verbConfiguration(named);
  if (site === null) return 2;
  const { config } = site;
  const zone = config.site.timezone;
  const moment = at === undefined ? undefined : readMoment(at, zone, now());
  if (moment === null) return fail(2, `--at ${at}: a moment is ${MOMENT}`);
  const unknown = unknownTarget(target, config);
  if (unknown !== null) return fail(2, unknown);
  const query = {
    [config.chargers.some(({ id }) => id === target) ? "charger" : "vehicle"]: target,
    ...(moment === undefined ? {} : { at: iso(moment) }),
  };
  const path = `/explain?${new URLSearchParams(query).toString()}`;
  const answer = await askOrRead<Answer<Explained>>(config, path, async (opened) => {
    const control = offlineControl(config, opened, { now });
    // No broker counts without a daemon.
    const explain = explanationsOf(
      control,
      opened.store,
      now,
      () => null,
      () => true,
    );
    return (await explain(query)) as Answer<Explained>;
  });
  return printAnswer(answer, json, (value) => printExplanation(value, wallClock(zone, now)));
}

/** An explanation with the departure of its vehicle. Null: none, or the daemon does not run. */
type Explained = Explanation & { readonly departure: Json };

/** A level as the page shows it. */
const levelText = (level: LevelView): string =>
  level.release === true ? "free" : formatLevel(levelOf(level));

function printExplanation({ sentence, claims, departure }: Explained, clock: (at: Instant) => string): void {
  writeLine(sentence);
  if (departure !== null) writeLine(formatDeparture(departure, clock));
  writeLine("");
  const moment = (at: string | null): string => (at === null ? "" : clock(fromIso(at)));
  const rows = [
    ["STATUS", "KIND", "SOURCE", "LEVEL", "SINCE", "UNTIL", "BECAUSE"],
    ...claims.map(({ status, kind, source, level, since, until, because }) => [
      status,
      kind,
      source,
      level === null ? "" : levelText(level),
      moment(since),
      moment(until),
      because,
    ]),
  ];
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  for (const row of rows) {
    const cells = row.map((cell, column) =>
      column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0),
    );
    writeLine(cells.join("  ").trimEnd());
  }
}

export const explainVerb: Verb = (verb, { config, now, done }) => {
  verb
    .argument("<target>", "id of a charger, or VTN id or name of a vehicle")
    .option(
      "--at <moment>",
      "another moment (ISO 8601, or 05:30): ahead by the plan, behind by the record; default now",
    )
    .option("--json", "print one JSON object, as /api/v1/explain", false)
    .action(async (target: string, options: ExplainOptions) => {
      done(await explain(config(), target, options, now));
    });
};
