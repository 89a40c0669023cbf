import { setTimeout as sleep } from "node:timers/promises";

import { keptText, readKept } from "../../daemon/keptConfigurations.ts";
import { factOf, type Json, numberOf, textOf } from "../../domain/audit.ts";
import { type Instant, fromIso } from "../../domain/units.ts";
import { wallClock } from "../../platform/clock.ts";
import type { Answer } from "../../operator/answer.ts";
import { verbConfiguration, verbState } from "../configuration.ts";
import { askApi, askDaemon, personHere } from "../daemonClient.ts";
import {
  type ExitCode,
  fail,
  listIn,
  printAnswer,
  saySealed,
  say,
  type Verb,
  writeErrorLine,
  writeLine,
} from "../output.ts";

type SiteOfVerb = Exclude<ReturnType<typeof verbState>, null>;

interface ChangeOptions {
  readonly reason?: string;
  readonly force: boolean;
  readonly json: boolean;
}

const IF_ABSENT = "setpointd does not run: its next start takes the configuration file";
const NO_REASON = "--reason is missing: it is on record with your name";

/** Longest wait for the result, and the time between two looks, ms. */
const RESULT_WITHIN_MS = 60_000;
const LOOK_EVERY_MS = 100;

/** `apply`: has the running daemon start again with the configuration file. */
async function apply(
  named: string | undefined,
  options: ChangeOptions,
  now: () => Instant,
): Promise<ExitCode> {
  if (options.reason === undefined) return fail(2, NO_REASON);
  const site = verbConfiguration(named);
  if (site === null) return 2;
  const { reason, force } = options;
  const { state, site: place } = site.config;
  const own = { state, timezone: place.timezone };
  return change(own, "/configuration/apply", { reason, force }, options, now);
}

/** `rollback`: has it start again with a configuration that ran. Without a fingerprint: lists them. */
async function rollback(
  named: string | undefined,
  fingerprint: string | undefined,
  options: ChangeOptions & { readonly print: boolean },
  now: () => Instant,
): Promise<ExitCode> {
  const { reason, force, json, print } = options;
  const mistake =
    fingerprint === undefined
      ? print && "--print needs a fingerprint"
      : !print && reason === undefined && NO_REASON;
  if (mistake !== false) return fail(2, mistake);
  // A file with mistakes must not stand in the way.
  const site = verbState(named);
  if (site === null) return 2;
  if (fingerprint === undefined)
    return printAnswer(
      await askApi(site.state, { method: "GET", path: "/configuration" }, IF_ABSENT),
      json,
      (answer) => list(answer, site, now),
    );
  if (print) return printKept(site, fingerprint);
  return change(site, "/configuration/rollback", { fingerprint, reason, force }, options, now);
}

async function change(
  { state, timezone }: SiteOfVerb,
  path: string,
  body: Json | Readonly<Record<string, unknown>>,
  { json }: Pick<ChangeOptions, "json">,
  now: () => Instant,
): Promise<ExitCode> {
  const answer = await askApi(state, { method: "POST", path, body: { body, by: personHere() } }, IF_ABSENT);
  if (typeof answer === "string" || !answer.ok) {
    const code = printAnswer(answer, json, () => {});
    if (typeof answer !== "string") printErrors(answer);
    return code;
  }
  if (!json) writeLine(textOf(answer.value, "sentence") ?? "");
  const end = await resultOf(state);
  if (end === null)
    return fail(1, `no result within ${RESULT_WITHIN_MS / 1000} s: setpointd status shows what runs`);
  if (json) say(JSON.stringify(end));
  const last = factOf(end, "last");
  const hasFailed = textOf(last, "result") !== "running";
  if (hasFailed)
    writeErrorLine(
      `${textOf(last, "fingerprint")} did not start: ${textOf(last, "failure")}; configuration ${textOf(last, "from")} runs again`,
    );
  else if (!json) writeLine(formatRunning(factOf(end, "running"), last, wallClock(timezone, now)));
  return hasFailed ? 1 : 0;
}

/** `running` null: another process leads the site meanwhile. */
function formatRunning(running: Json, last: Json, clock: (at: Instant) => string): string {
  const fingerprint = textOf(last, "fingerprint");
  if (running === null)
    return `stands by with configuration ${fingerprint}: another process leads the site now`;
  const since = clock(fromIso(textOf(running, "since") ?? ""));
  const took = ((numberOf(last, "tookMs") ?? 0) / 1000).toFixed(1);
  return `runs since ${since} with configuration ${fingerprint}; ${took} s without control`;
}

/** Each mistake of a refused configuration, with its place. */
function printErrors(answer: Answer<Json>): void {
  if (answer.ok || answer.problem.status === 400) return;
  for (const { path, found, expected } of answer.problem.errors)
    writeErrorLine(
      `  ${path}: found ${typeof found === "string" ? found : JSON.stringify(found)}; expected ${expected}`,
    );
}

/** The configuration once the change has ended. Null: it takes too long. */
async function resultOf(state: string): Promise<Json | null> {
  for (
    const until = performance.now() + RESULT_WITHIN_MS;
    performance.now() < until;
    await sleep(LOOK_EVERY_MS)
  ) {
    const answer = await askDaemon(state, "GET", "/configuration", null, RESULT_WITHIN_MS);
    if (answer.kind === "failed" && answer.isStandIn === true) {
      const known = readKept(state);
      if (typeof known !== "string" && known.change === null) return { last: known.last, running: null };
    }
    if (answer.kind !== "answered") continue;
    const { value } = answer.body as { readonly value: Json };
    if (textOf(factOf(value, "last"), "result") !== "underWay") return value;
  }
  return null;
}

function list(answer: Json, { timezone }: SiteOfVerb, now: () => Instant): void {
  const clock = wallClock(timezone, now);
  writeLine(
    textOf(factOf(answer, "running"), "sentence") ?? "this site has no configuration file of its own",
  );
  for (const kept of listIn(answer, "kept")) {
    const [by, reason] = [textOf(kept, "by"), textOf(kept, "reason")];
    const paths = listIn(kept, "paths").filter((path) => typeof path === "string");
    const at = clock(fromIso(textOf(kept, "at") ?? ""));
    const who = by === null ? "at a start" : `by ${by}: ${reason}`;
    const differs = paths.length === 0 ? "" : `; differs in ${paths.slice(0, MOST_PATHS).join(", ")}`;
    writeLine(`  ${textOf(kept, "fingerprint")}  ${at}  ${who}${differs}`);
  }
}

const MOST_PATHS = 5;

/** The text of a configuration that ran, to be put into the file. */
function printKept({ state }: SiteOfVerb, fingerprint: string): ExitCode {
  const known = readKept(state);
  const text = typeof known === "string" ? null : keptText(known, fingerprint);
  if (text === null)
    return fail(
      1,
      typeof known === "string"
        ? known
        : `configuration ${fingerprint} is not kept: setpointd rollback lists them`,
    );
  saySealed(text.replace(/\n$/, ""));
  return 0;
}

export const applyVerb: Verb = (verb, { config, now, done }) => {
  verb
    .option("--reason <text>", "why, for the record; needed")
    .option("--force", "also while an event is in force or a charger is on trial", false)
    .option("--json", "print one JSON object, as GET /api/v1/configuration, once it runs", false)
    .action(async (options: ChangeOptions) => {
      done(await apply(config(), options, now));
    });
};

export const rollbackVerb: Verb = (verb, { config, now, done }) => {
  verb
    .argument("[fingerprint]", "of a configuration that ran; absent: lists them")
    .option("--reason <text>", "why, for the record; needed")
    .option("--force", "also while an event is in force or a charger is on trial", false)
    .option("--print", "print the text of that configuration, and change nothing", false)
    .option("--json", "print one JSON object, as GET /api/v1/configuration, once it runs", false)
    .action(async (fingerprint: string | undefined, options: ChangeOptions & { readonly print: boolean }) => {
      done(await rollback(config(), fingerprint, options, now));
    });
};
