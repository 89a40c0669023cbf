import { randomUUID } from "node:crypto";

import { type Json, factOf, numberOf, textOf } from "../../domain/audit.ts";
import { formatLevel, levelOf, type LevelView } from "../../domain/setpoint.ts";
import { type Instant, iso } from "../../domain/units.ts";
import type { HoldBody } from "../../operator/holdRequest.ts";
import { unknownTarget, verbConfiguration } from "../configuration.ts";
import { type ApiRequest, askApi, personHere } from "../daemonClient.ts";
import {
  type ExitCode,
  fail,
  inZone,
  listIn,
  NEXT_MOMENT,
  printAnswer,
  readNext,
  say,
  writeLine,
  type Verb,
} from "../output.ts";
import { counted } from "../../platform/text.ts";

interface HoldOptions {
  readonly site: boolean;
  readonly exempt: boolean;
  readonly level?: string;
  readonly until?: string;
  readonly reason?: string;
  readonly preview: boolean;
  readonly json: boolean;
}

const LEVEL = "16A, 7kW, 7000W or pause";
const UNTIL = "05:40, an ISO moment, unplug, 18kWh or events";

/** Reads "16A", "7kW", "7000W", "pause". Null: not a level. */
export function readLevel(text: string): HoldBody["level"] | null {
  if (text.toLowerCase() === "pause") return { pause: true };
  const [, value, unit] = /^(\d+(?:\.\d+)?) ?(a|w|kw)$/i.exec(text) ?? [];
  // A person who types 0 A means a pause.
  if (value === undefined || unit === undefined || Number(value) === 0) return null;
  if (unit.toLowerCase() === "a") return { currentA: Number(value) };
  return { powerW: Number(value) * (unit.toLowerCase() === "kw" ? 1000 : 1) };
}

/** Reads "05:40", "unplug", "18kWh", "events". A time that has passed today is tomorrow's. Null: none of these. */
export function readUntil(text: string, zone: string, now: Instant): HoldBody["until"] | null {
  const word = text.toLowerCase();
  if (word === "unplug" || word === "unplugged") return { unplugged: true };
  if (word === "events") return { events: true };
  const [, value, unit] = /^(\d+(?:\.\d+)?) ?(wh|kwh)$/i.exec(text) ?? [];
  if (value !== undefined && Number(value) === 0) return null;
  if (value !== undefined) return { energyWh: Number(value) * (unit?.toLowerCase() === "kwh" ? 1000 : 1) };
  const at = readNext(text, zone, now);
  return at === null ? null : { at: iso(at) };
}

type Site = NonNullable<ReturnType<typeof verbConfiguration>>;

const ask = (site: Site, request: ApiRequest) =>
  askApi(
    site.config.state,
    request,
    "setpointd does not run: a hold acts only while it does. setpointd release frees chargers without it",
  );

/** `hold`: opens a hold on a charger, a vehicle or the site. */
async function open(
  named: string | undefined,
  target: string | undefined,
  options: HoldOptions,
  now: () => Instant,
): Promise<ExitCode> {
  const wanted = wantedIn(target, options);
  if (typeof wanted === "string") return fail(2, wanted);
  const { level, until: untilText, reason } = wanted;
  const { json } = options;
  const site = verbConfiguration(named);
  if (site === null) return 2;
  const until = readUntil(untilText, site.config.site.timezone, now());
  if (until === null) return fail(2, `--until ${untilText}: ${UNTIL}; a moment is ${NEXT_MOMENT}`);
  const unknown = target === undefined ? null : unknownTarget(target, site.config);
  if (unknown !== null) return fail(2, unknown);
  const body: HoldBody = {
    scope: scopeOf(target, site),
    kind: options.exempt ? "exempt" : "level",
    ...(level === undefined ? {} : { level }),
    until,
    reason,
  };
  const by = personHere();
  const local = inZone(site.config.site.timezone, now);
  if (options.preview) {
    const preview = await ask(site, { method: "POST", path: "/holds/preview", body: { body, by } });
    return printAnswer(preview, json, printPreview, local);
  }
  const sent = { body, by, key: randomUUID() };
  const opened = await ask(site, { method: "POST", path: "/holds", body: sent });
  return printAnswer(opened, json, printOpened, local);
}

function scopeOf(target: string | undefined, { config }: Site): HoldBody["scope"] {
  if (target === undefined) return { site: true };
  return config.chargers.some(({ id }) => id === target) ? { charger: target } : { vehicle: target };
}

/** The options of a new hold, with its level read. A text: the mistake. */
export function wantedIn(
  target: string | undefined,
  { site, exempt, level: levelText, until, reason }: HoldOptions,
): (Pick<HoldBody, "level"> & { readonly until: string; readonly reason: string }) | string {
  if ((target === undefined) === !site) return "hold what? Name a charger or a vehicle, or use --site";
  if (exempt === (levelText !== undefined)) return `either --exempt, or --level with ${LEVEL}`;
  const level = levelText === undefined ? undefined : readLevel(levelText);
  if (level === null) return `--level ${levelText}: a level is ${LEVEL}`;
  if (until === undefined) return `--until is missing: ${UNTIL}`;
  if (reason === undefined || reason.trim() === "")
    return "--reason is missing: it is on record with your name";
  return { ...(level === undefined ? {} : { level }), until, reason };
}

function printOpened(hold: Json): void {
  printHold(hold);
  printOthers(hold);
}

function printPreview(preview: Json): void {
  const chargers = numberOf(preview, "chargers") ?? 0;
  writeLine(`not opened: ${textOf(preview, "sentence") ?? ""}, ${counted(chargers, "charger")}`);
  const costs = printCosts(preview);
  if (costs === 0) writeLine("  takes nothing from an event");
  for (const departure of listIn(preview, "departures"))
    writeLine(`  ${textOf(departure, "name") ?? ""}: ${textOf(departure, "because") ?? ""}`);
  printOthers(preview);
}

function printOthers(hold: Json): void {
  for (const other of listIn(hold, "others")) writeLine(`  also there: ${textOf(other, "sentence") ?? ""}`);
}

/** Prints the energy that a hold takes from each event. Returns the number of events. */
function printCosts(hold: Json): number {
  const costs = listIn(hold, "costs");
  for (const cost of costs) writeLine(`  ${textOf(cost, "sentence") ?? ""}`);
  return costs.length;
}

function printHold(hold: Json): void {
  const ended = factOf(hold, "ended");
  const end = ended === null ? "" : ` (ended by ${textOf(ended, "by")}: ${textOf(ended, "why")})`;
  writeLine(`${textOf(hold, "sentence") ?? ""}; ${textOf(hold, "reason") ?? ""}${end}`);
  printCosts(hold);
  if (ended !== null) return;
  for (const one of listIn(hold, "effect")) writeLine(`  ${effectLine(one)}`);
}

/** Effect of a hold on one charger: what it gets, why it is not what was asked for, and whether it follows. */
export function effectLine(effect: Json): string {
  const [vehicle, waits] = [textOf(effect, "vehicle"), textOf(effect, "waits")];
  const [overrules, limits] = [textsOf(effect, "overrules"), textsOf(effect, "limits")];
  const level = levelOf((factOf(effect, "level") ?? { release: true }) as LevelView);
  return [
    `${textOf(effect, "charger")}${vehicle === null ? "" : ` (${vehicle})`}: `,
    level.kind === "release" ? "its own default" : formatLevel(level),
    factOf(effect, "applies") === false ? ", by another claim" : "",
    limits.length > 0 ? ` (${limits.join("; ")})` : "",
    overrules.length > 0 ? `, instead of ${overrules.join(", ")}` : "",
    `, ${textOf(effect, "verdict")}`,
    waits === null ? "" : `; waits: ${waits}`,
  ].join("");
}

const textsOf = (effect: Json, member: string): readonly string[] => {
  const found = factOf(effect, member);
  return Array.isArray(found) ? found.map(String) : [];
};

async function list(named: string | undefined, all: boolean, json: boolean): Promise<ExitCode> {
  const site = verbConfiguration(named);
  if (site === null) return 2;
  return printAnswer(
    await ask(site, { method: "GET", path: all ? "/holds" : "/holds?state=open" }),
    json,
    (holds) => {
      if (!Array.isArray(holds) || holds.length === 0) say("no hold is open");
      else for (const hold of holds) printHold(hold);
    },
  );
}

async function end(named: string | undefined, id: string, reason: string, json: boolean): Promise<ExitCode> {
  const site = verbConfiguration(named);
  if (site === null) return 2;
  const body = { id, reason, by: personHere() };
  return printAnswer(await ask(site, { method: "POST", path: "/holds/end", body }), json, printHold);
}

export const holdVerb: Verb = (verb, { config, now, done }) => {
  verb
    .argument("[target]", "id of a charger, or VTN id or name of a vehicle")
    .option("--site", "all chargers", false)
    .option("--exempt", "no event applies: the charger gets its own default", false)
    .option("--level <level>", `a level that beats every event, never a limit: ${LEVEL}`)
    .option("--until <end>", `its end, at most 24 h ahead: ${UNTIL}`)
    .option("--reason <text>", "why, for the record; needed")
    .option(
      "--preview",
      "open none: print the energy that it would take from each event, and when its vehicles are ready",
      false,
    )
    .option("--json", "print the answer as JSON, as POST /api/v1/holds", false)
    .action(async (target: string | undefined, options: HoldOptions) => {
      done(await open(config(), target, options, now));
    });
  // The options --json and --reason have the same names above: they are read there, wherever they stand.
  verb
    .command("list")
    .description("show the open holds, with what each charger under them gets and whether it follows")
    .option("--all", "also those that ended within a day", false)
    .option("--json", "print a JSON array, as GET /api/v1/holds", false)
    .action(async ({ all }: { all: boolean }) => {
      done(await list(config(), all, verb.opts<HoldOptions>().json));
    });
  verb
    .command("end")
    .description("end a hold early")
    .argument("<id>", "id of the hold")
    .option("--reason <text>", 'why, for the record; default "ended at the command line"')
    .option("--json", "print the answer as JSON", false)
    .action(async (id: string) => {
      const { reason = "ended at the command line", json } = verb.opts<HoldOptions>();
      done(await end(config(), id, reason, json));
    });
};
