import { factOf, type Json, numberOf, textOf } from "../../domain/audit.ts";
import { formatEnergy, formatNeed, type Need } from "../../domain/departure.ts";
import { type Instant, fromIso } from "../../domain/units.ts";
import { wallClock } from "../../platform/clock.ts";
import { verbConfiguration } from "../configuration.ts";
import { type ApiRequest, askApi, personHere } from "../daemonClient.ts";
import {
  complain,
  type ExitCode,
  inZone,
  printAnswer,
  readText,
  say,
  type Verb,
  writeLine,
} from "../output.ts";

type Clock = (at: Instant) => string;

/** Reads "18kWh", "18000Wh", "80", "80%". Null: not readable. */
export function readEnergy(text: string): number | null {
  const [, value, unit] = /^(\d+(?:\.\d+)?) ?(wh|kwh)$/i.exec(text) ?? [];
  return value === undefined ? null : Number(value) * (unit?.toLowerCase() === "kwh" ? 1000 : 1);
}

/** Percent from `80`, `80%` or `80 %`. Null: none of these. */
export function readPercent(text: string): number | null {
  const [, value] = /^(\d+(?:\.\d+)?) ?%?$/.exec(text) ?? [];
  return value === undefined ? null : Number(value);
}

/** Sends a request and prints its answer, as JSON or by `print`. */
async function ask(
  named: string | undefined,
  request: ApiRequest,
  json: boolean,
  print: (value: Json, clock: Clock) => void,
  now: () => Instant,
): Promise<ExitCode> {
  const site = verbConfiguration(named);
  if (site === null) return 2;
  const answer = await askApi(
    site.config.state,
    request,
    "setpointd does not run: it forecasts no departure",
  );
  const { timezone } = site.config.site;
  const clock = wallClock(timezone, now);
  return printAnswer(answer, json, (value) => print(value, clock), inZone(timezone, now));
}

/** "Bus 214 leaves 05:40:00 with 18 kWh: short (event EV-1 allows 4.1 kW)". */
export function formatDeparture(departure: Json, clock: Clock): string {
  const moment = (member: string): string | null => {
    const at = textOf(departure, member);
    return at === null ? null : clock(fromIso(at));
  };
  const [name, id] = [textOf(departure, "name"), textOf(departure, "vehicle")];
  const charger = textOf(departure, "charger");
  const state = (textOf(departure, "state") ?? "").replace("onTime", "on time");
  const remaining = numberOf(departure, "remainingWh");
  const left = remaining === null || remaining === 0 ? "" : `, ${formatEnergy(remaining)} to go`;
  const who = name === id ? (id ?? "") : `${name} (${id})`;
  return `${who} leaves ${moment("at")} with ${needOf(departure)}${charger === null ? "" : `, at ${charger}`}: ${state.toUpperCase()}${left}; ${textOf(departure, "because")}`;
}

function needOf(departure: Json): string {
  const need = factOf(departure, "need");
  const [wh, percent] = [numberOf(need, "energyWh"), numberOf(need, "soc")];
  const read: Need = wh === null ? { kind: "soc", percent: percent ?? 0 } : { kind: "energy", wh };
  return formatNeed(read);
}

const print = (value: Json, clock: Clock): void => writeLine(formatDeparture(value, clock));

interface SetOptions {
  readonly at: string;
  readonly energy?: string;
  readonly soc?: string;
}

/** The body of a departure. A text: the mistake. */
function bodyOf({ at, energy, soc }: SetOptions): Json | string {
  if ((energy === undefined) === (soc === undefined)) return "either --energy 18kWh or --soc 80";
  if (energy !== undefined) {
    const energyWh = readEnergy(energy);
    return energyWh === null ? `--energy ${energy}: e.g. 18kWh or 18000Wh` : { at, energyWh };
  }
  const percent = readPercent(soc ?? "");
  return percent === null ? `--soc ${soc}: percent, e.g. 80` : { at, soc: percent };
}

const printList = (value: Json, clock: Clock): void => {
  const all = Array.isArray(value) ? value : [];
  if (all.length === 0)
    say(
      "no departure is known: setpointd departures set enters one, and vehicles[].departures has weekly ones",
    );
  else for (const each of all) print(each, clock);
};

const printCounted = (value: Json): void =>
  say(`departures set: ${numberOf(value, "departures")}, vehicles: ${numberOf(value, "vehicles")}`);

const printSkipped = (value: Json, clock: Clock): void => {
  const next = factOf(value, "next");
  const then = next === null ? "no departure is left" : `next: ${formatDeparture(next, clock)}`;
  writeLine(`${textOf(value, "vehicle")} stays on ${textOf(value, "date")}; ${then}`);
};

const printCleared = (value: Json, clock: Clock): void => {
  const next = factOf(value, "next");
  if (next === null) say("cleared; no departure is left");
  else writeLine(`cleared; next: ${formatDeparture(next, clock)}`);
};

export const departuresVerb: Verb = (verb, { config, now, done }) => {
  verb
    .option("--json", "print a JSON array, as GET /api/v1/departures", false)
    .action(async ({ json }: { json: boolean }) => {
      done(await ask(config(), { method: "GET", path: "/departures" }, json, printList, now));
    });
  // The option --json has the same name above: it is read there, wherever it stands.
  const post = (path: string, body: Json, show: (value: Json, clock: Clock) => void): Promise<ExitCode> =>
    ask(config(), { method: "POST", path, body }, verb.opts<{ json: boolean }>().json, show, now);
  verb
    .command("set")
    .description("set the next departure of a vehicle; it replaces the weekly ones of its day")
    .argument("<vehicle>", "VTN id or name of a vehicle")
    .requiredOption("--at <moment>", "05:40, the next one of the site, or an ISO moment with a zone; needed")
    .option("--energy <energy>", "energy since the plug-in that it leaves with: 18kWh; this or --soc")
    .option("--soc <percent>", "state of charge in % that it leaves with: 80; this or --energy")
    .option("--json", "print the answer as JSON", false)
    .action(async (vehicle: string, options: SetOptions) => {
      const body = bodyOf(options);
      if (typeof body === "string") {
        complain(body);
        done(2);
        return;
      }
      done(await post("/departures/set", { vehicle, body, by: personHere() }, print));
    });
  verb
    .command("import")
    .description("set the departures of a CSV file with the header vehicle,at,energyKwh,soc; all or none")
    .argument("<file>", "CSV file; - is standard input")
    .option("--json", "print the answer as JSON", false)
    .action(async (file: string) => {
      const csv = readText(file);
      if (csv === null) {
        done(2);
        return;
      }
      done(await post("/departures/import", { csv, by: personHere() }, printCounted));
    });
  verb
    .command("clear")
    .description("clear what was set for a vehicle; its weekly departures apply again")
    .argument("<vehicle>", "VTN id or name of a vehicle")
    .option("--json", "print the answer as JSON", false)
    .action(async (vehicle: string) => {
      done(await post("/departures/clear", { vehicle, by: personHere() }, printCleared));
    });
  verb
    .command("skip")
    .description(
      "the vehicle stays on one day: no departure of it applies; clear brings the weekly ones back",
    )
    .argument("<vehicle>", "VTN id or name of a vehicle")
    .argument("<date>", "day at the site, e.g. 2026-11-24")
    .option("--json", "print the answer as JSON", false)
    .action(async (vehicle: string, date: string) => {
      done(await post("/departures/skip", { vehicle, date, by: personHere() }, printSkipped));
    });
};
