import type { Command } from "commander";

import { plannedSchedule, shownReport, shownReports } from "../../daemon/reportsAndPrices.ts";
import { type Instant, fromIso } from "../../domain/units.ts";
import { bodiless, type ReportRow } from "../../operator/listViews.ts";
import { wallClock } from "../../platform/clock.ts";
import { configuration } from "../configuration.ts";
import { askApi, type Done } from "../daemonClient.ts";
import { complain, fail, type ExitCode, say, writeLine, type Verb } from "../output.ts";
import { askOrRead } from "../storedState.ts";

/** Formats a time of the API in the site's zone. */
type Moment = (iso: string) => string;

/** `reports`: lists reports in every state, from the running daemon or the stored state. */
async function reports(named: string | undefined, json: boolean, now: () => Instant): Promise<ExitCode> {
  const config = configuration(named);
  if (config === null) return 2;
  const known = await askOrRead<readonly ReportRow[]>(config, "/reports", async ({ store, storedState }) =>
    shownReports(await plannedSchedule(config, storedState, store), store),
  );
  if (typeof known === "string") return fail(1, known);
  if (json) {
    say(JSON.stringify(known));
    return 0;
  }
  if (known.length === 0) say("no event has asked for a report yet");
  const clock = wallClock(config.site.timezone, now);
  const moment: Moment = (iso) => clock(fromIso(iso));
  const [names, types] = [known.map(({ name }) => name), known.map(({ payloadType }) => payloadType ?? "")];
  const [width, second] = [widest(names), widest(types)];
  for (const row of known) {
    const type = (row.payloadType ?? "").padEnd(second);
    writeLine(
      `${row.state.padEnd(7)}  ${row.name.padEnd(width)}  ${type}  ${formatMoment(row, moment)}`.trimEnd(),
    );
  }
  return 0;
}

/** `reports show`: prints one report with the body that was sent. */
async function reportsShow(
  named: string | undefined,
  name: string,
  json: boolean,
  now: () => Instant,
): Promise<ExitCode> {
  const config = configuration(named);
  if (config === null) return 2;
  const path = `/report?${new URLSearchParams({ name }).toString()}`;
  const known = await askOrRead(config, path, async ({ store, storedState }) => ({
    found: await shownReport(await plannedSchedule(config, storedState, store), store, name),
  }));
  if (typeof known === "string" || known.found === null)
    return fail(
      1,
      typeof known === "string" ? known : `there is no report ${name}: setpointd reports lists them`,
    );
  const { report, body } = known.found;
  if (json) {
    say(JSON.stringify({ ...report, body: body === null ? null : JSON.parse(body) }));
    return 0;
  }
  const clock = wallClock(config.site.timezone, now);
  const moment: Moment = (iso) => clock(fromIso(iso));
  if (report.composedAt === null) {
    writeLine(bodiless(report, moment));
    return 0;
  }
  writeLine(`${report.name}: ${report.payloadType ?? "?"} ${report.state}, ${formatMoment(report, moment)}`);
  for (const flag of report.flags) writeLine(`  ${flag}`);
  if (report.receipt !== null) writeLine(`  receipt: ${report.receipt}`);
  if (body === null) writeLine(bodiless(report, moment));
  else say(JSON.stringify(JSON.parse(body), null, 2));
  return 0;
}

/** `reports resend`: sends the same body again, now. Only a running daemon can send. */
async function reportsResend(named: string | undefined, name: string): Promise<ExitCode> {
  const config = configuration(named);
  if (config === null) return 2;
  const done = await askApi<Done>(
    config.state,
    { method: "POST", path: "/report/resend", body: { name } },
    "no daemon runs on this state, and only a running one can send: setpointd run",
  );
  if (typeof done === "string") return fail(1, done);
  (done.ok ? say : complain)(done.words);
  return done.ok ? 0 : 1;
}

function formatMoment(row: ReportRow, moment: Moment): string {
  const { from, until, due, summary, sentAt, nextTry, attempts, reason } = row;
  const parts = [
    summary,
    from === null || until === null ? null : `${moment(from)} to ${moment(until)}`,
    due === null ? null : `due ${moment(due)}`,
    sentAt === null ? null : `sent ${moment(sentAt)}`,
    reason,
    nextTry === null || attempts === 0 ? null : `next try ${moment(nextTry)}`,
  ];
  return parts.filter((part) => part !== null).join(", ");
}

const widest = (texts: readonly string[]): number =>
  texts.reduce((most, text) => Math.max(most, text.length), 0);

export const reportsVerb: Verb = (verb, { config, now, done }) => {
  const all = verb
    .option("--json", "print one JSON array, as /api/v1/reports", false)
    .action(async ({ json }: { json: boolean }) => {
      done(await reports(config(), json, now));
    });
  all
    .command("show")
    .description("show one report: its body, its outcome and the partner's receipt")
    .argument("<name>", "name as listed by setpointd reports, e.g. EV-7731/0/0")
    .option("--json", "print one JSON object", false)
    .action(async (name: string, _options: object, command: Command) => {
      done(await reportsShow(config(), name, command.optsWithGlobals<{ json: boolean }>().json, now));
    });
  all
    .command("resend")
    .description("send a report again now, with the same body; needs a running daemon")
    .argument("<name>", "name as listed by setpointd reports, e.g. EV-7731/0/0")
    .action(async (name: string) => {
      done(await reportsResend(config(), name));
    });
};
