import { factOf, type Json, numberOf, textOf } from "../../domain/audit.ts";
import { type Instant, fromIso } from "../../domain/units.ts";
import { type WallClock, wallClock } from "../../platform/clock.ts";
import { verbConfiguration } from "../configuration.ts";
import { askApi } from "../daemonClient.ts";
import { type ExitCode, inZone, listIn, printAnswer, type Verb, writeLine } from "../output.ts";

/** `handover`: what the next shift has to know, from the running daemon. */
async function handover(
  named: string | undefined,
  { since, json }: HandoverOptions,
  now: () => Instant,
): Promise<ExitCode> {
  const site = verbConfiguration(named);
  if (site === null) return 2;
  const { state, site: place } = site.config;
  const query = since === undefined ? "" : `?since=${encodeURIComponent(since)}`;
  const answer = await askApi(
    state,
    { method: "GET", path: `/handover${query}` },
    "setpointd does not run: setpointd audit shows what is on record",
  );
  const { timezone } = place;
  const clock = wallClock(timezone, now);
  return printAnswer(answer, json, (value) => print(value, clock, timezone), inZone(timezone, now));
}

interface HandoverOptions {
  readonly since?: string;
  readonly json: boolean;
}

function print(value: Json, clock: WallClock, zone: string): void {
  const time = (at: string | null): string => (at === null ? "-" : clock(fromIso(at)));
  const at = (row: Json, member: string): string => time(textOf(row, member));
  writeLine(`${of(value, "site")}, ${at(value, "since")} to ${at(value, "now")}; times in ${zone}`);
  writeLine(of(value, "sentence"));
  const section = (
    title: string,
    member: string,
    lines: (row: Json) => string | readonly string[],
    within = value,
  ): void => {
    const found = listIn(within, member).flatMap(lines);
    writeLine(`${title}: ${found.length === 0 ? "none" : ""}`.trimEnd());
    for (const each of found) writeLine(`  ${each}`);
  };
  section("events", "events", (event) => `${eventLine(event, at)}${resultOf(event)}`);
  section("withdrawn by the partner", "withdrawn", (event) => `${of(event, "id")}, ${at(event, "at")}`);
  section("overrides", "holds", (hold) => holdLine(hold, at));
  section("alarms", "alarms", (alarm) => {
    const isOver = textOf(alarm, "clearedAt") !== null;
    const line = `${of(alarm, "severity")} ${of(alarm, "key")} (${of(alarm, "state")}, since ${at(alarm, "since")}${isOver ? `, cleared ${at(alarm, "clearedAt")}` : ""}): ${of(alarm, "message")}`;
    return isOver ? line : withRemedy(line, alarm);
  });
  section("leaving short", "short", (row) => `${of(row, "name")}, ${at(row, "at")}: ${of(row, "because")}`);
  section("unreachable", "unreachable", (problem) =>
    withRemedy(`since ${at(problem, "since")}: ${of(problem, "message")}`, problem),
  );
  section("due next", "due", (row) => `${at(row, "at")} ${of(row, "message")}`);
  section(
    "mode changes",
    "changes",
    (change) => `${at(change, "at")} ${of(change, "message")}`,
    factOf(value, "mode"),
  );
}

const of = (row: Json, member: string): string => textOf(row, member) ?? "";

const withRemedy = (line: string, row: Json): readonly string[] => [line, `  do: ${of(row, "action")}`];

const names = (result: Json): readonly string[] =>
  listIn(result, "vehicles").flatMap((vehicle) => (typeof vehicle === "string" ? [vehicle] : []));

type Time = (row: Json, member: string) => string;

function eventLine(event: Json, at: Time): string {
  const name = textOf(event, "name") ?? "";
  return `${textOf(event, "id")}${name === "" ? "" : ` "${name}"`} (${textOf(event, "state")}), ${textOf(event, "asked")}, ${at(event, "start")} to ${at(event, "end")}, last changed by the partner ${at(event, "modified")}: `;
}

function resultOf(event: Json): string {
  const count = (member: string): number => numberOf(factOf(event, member), "count") ?? 0;
  const named = (member: string, title: string): readonly string[] =>
    count(member) === 0 ? [] : [`${count(member)} ${title} (${names(factOf(event, member)).join(", ")})`];
  const open = numberOf(event, "notJudged") ?? 0;
  return [
    `${count("followed")} of ${numberOf(event, "vehicles")} vehicles followed`,
    ...named("notFollowed", "not followed"),
    ...named("held", "overridden"),
    ...named("missed", "missed"),
    ...(open === 0 ? [] : [`${open} not judged`]),
  ].join(", ");
}

function holdLine(hold: Json, at: Time): string {
  const ended = factOf(hold, "ended");
  const end =
    ended === null
      ? "STILL OPEN"
      : `ended ${at(ended, "at")} by ${textOf(ended, "by")}: ${textOf(ended, "why")}`;
  const costs = listIn(hold, "costs").map((cost) => `; ${of(cost, "sentence")}`);
  return `since ${at(hold, "since")}, ${textOf(hold, "sentence")}; ${textOf(hold, "reason")}; ${end}${costs.join("")}`;
}

export const handoverVerb: Verb = (verb, { config, now, done }) => {
  verb
    .option(
      "--since <beginning>",
      "beginning of the shift, at most 24 h back: 22:00 at the site, 8h, or an ISO moment; default 12h",
    )
    .option("--json", "print one JSON object, as /api/v1/handover", false)
    .action(async (options: HandoverOptions) => {
      done(await handover(config(), options, now));
    });
};
