import { type Json, numberOf, textOf } from "../../domain/audit.ts";
import { type Instant, fromIso } from "../../domain/units.ts";
import { type WallClock, wallClock } from "../../platform/clock.ts";
import { verbConfiguration } from "../configuration.ts";
import { type ApiRequest, askApi, personHere } from "../daemonClient.ts";
import { type ExitCode, printAnswer, say, type Verb, writeLine } from "../output.ts";

/** Sends a request and prints its answer, as JSON or by `print` with the times of the site. */
async function ask(
  named: string | undefined,
  request: ApiRequest,
  { json, now }: { readonly json: boolean; readonly now: () => Instant },
  print: (value: Json, clock: WallClock) => void,
): Promise<ExitCode> {
  const site = verbConfiguration(named);
  if (site === null) return 2;
  const ifAbsent = "setpointd does not run: it observes no alarm";
  const { state, site: place } = site.config;
  const clock = wallClock(place.timezone, now);
  return printAnswer(await askApi(state, request, ifAbsent), json, (value) => print(value, clock));
}

function printAlarm(alarm: Json, clock: WallClock): void {
  const time = (member: string): string => clock(fromIso(textOf(alarm, member) ?? ""));
  const [state, cleared] = [textOf(alarm, "state"), textOf(alarm, "clearedAt")];
  const count = numberOf(alarm, "count") ?? 1;
  const end = cleared === null ? "" : ` until ${time("clearedAt")}`;
  const times = count === 1 ? "" : `, ${count} times`;
  writeLine(
    `${textOf(alarm, "severity")} ${textOf(alarm, "key")} (${state}, since ${time("since")}${end}${times}): ${textOf(alarm, "message")}`,
  );
  if (cleared === null) writeLine(`  do: ${textOf(alarm, "action")}`);
}

export const alarmsVerb: Verb = (verb, { config, now, done }) => {
  verb
    .option("--all", "also those that cleared within a day", false)
    .option("--json", "print a JSON array, as GET /api/v1/alarms", false)
    .action(async ({ all, json }: { all: boolean; json: boolean }) => {
      const lasts = (alarm: Json): boolean => all || textOf(alarm, "state") !== "cleared";
      done(
        await ask(config(), { method: "GET", path: "/alarms" }, { json, now }, (alarms, clock) => {
          const shown = (alarms as readonly Json[]).filter(lasts);
          if (shown.length === 0) say("no alarm is open");
          else for (const alarm of shown) printAlarm(alarm, clock);
        }),
      );
    });
  verb
    .command("acknowledge")
    .description("silence an alarm; it stays until its fact ends")
    .argument("<key>", "key of the alarm")
    .option("--note <text>", "for the record, e.g. who is on the way", "")
    .option("--json", "print the answer as JSON", false)
    // The option --json has the same name above: it is read there, wherever it stands.
    .action(async (key: string, { note }: { note: string }) => {
      const { json } = verb.opts<{ json: boolean }>();
      const body = { key, note, by: personHere() };
      done(
        await ask(config(), { method: "POST", path: "/alarms/acknowledge", body }, { json, now }, printAlarm),
      );
    });
};
