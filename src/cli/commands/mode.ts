import { type Json, factOf, textOf } from "../../domain/audit.ts";
import { type Instant, iso } from "../../domain/units.ts";
import { verbConfiguration } from "../configuration.ts";
import { askApi, personHere } from "../daemonClient.ts";
import {
  type ExitCode,
  fail,
  NEXT_MOMENT,
  inZone,
  printAnswer,
  readNext,
  type Verb,
  writeLine,
} from "../output.ts";

interface ModeOptions {
  readonly until?: string;
  readonly reason?: string;
  readonly json: boolean;
}

const IF_ABSENT = "setpointd does not run: a mode acts only while it does";

/** `mode`: shows the mode of the site, or changes it. */
async function mode(
  named: string | undefined,
  wanted: string | undefined,
  { until: untilText, reason, json }: ModeOptions,
  now: () => Instant,
): Promise<ExitCode> {
  const mistake = mistakeIn(wanted, reason, untilText);
  if (mistake !== null) return fail(2, mistake);
  const site = verbConfiguration(named);
  if (site === null) return 2;
  const { state, site: place } = site.config;
  if (wanted === undefined)
    return printAnswer(await askApi(state, { method: "GET", path: "/mode" }, IF_ABSENT), json, print);
  const until = untilText === undefined ? undefined : readNext(untilText, place.timezone, now());
  if (until === null) return fail(2, `--until ${untilText}: a moment is ${NEXT_MOMENT}`);
  const body = { mode: wanted, reason, ...(until === undefined ? {} : { until: iso(until) }) };
  const answer = await askApi(
    state,
    { method: "POST", path: "/mode", body: { body, by: personHere() } },
    IF_ABSENT,
  );
  return printAnswer(answer, json, print, inZone(place.timezone, now));
}

/** Null: the options go together. */
function mistakeIn(
  wanted: string | undefined,
  reason: string | undefined,
  untilText: string | undefined,
): string | null {
  if (wanted === undefined) return null;
  if (wanted !== "observe" && wanted !== "drive") return `${wanted} is no mode: observe or drive`;
  if (reason === undefined || reason.trim() === "")
    return "--reason is missing: it is on record with your name";
  if ((wanted === "observe") === (untilText === undefined))
    return "--until goes with observe, and observe needs it: its end, at most 24 h ahead";
  return null;
}

function print(answer: Json): void {
  writeLine(textOf(answer, "sentence") ?? "");
  const replaced = textOf(factOf(answer, "replaced"), "sentence");
  if (replaced !== null) writeLine(`  before: ${replaced}`);
  const [limited, onObserve] = [factOf(answer, "limited"), textOf(answer, "onObserve")];
  if (!Array.isArray(limited) || limited.length === 0 || onObserve === null) return;
  const then = onObserve === "release" ? "released once" : "left at their last setpoint";
  writeLine(`  ${limited.join(", ")}: ${then}, as control.onObserve says`);
}

export const modeVerb: Verb = (verb, { config, now, done }) => {
  verb
    .argument("[mode]", "observe: decide and record, send nothing, until an end; drive: end that early")
    .option("--until <moment>", `end of observe, at most 24 h ahead: ${NEXT_MOMENT}`)
    .option("--reason <text>", "why, for the record; needed")
    .option("--json", "print one JSON object, as /api/v1/mode", false)
    .action(async (wanted: string | undefined, options: ModeOptions) => {
      done(await mode(config(), wanted, options, now));
    });
};
