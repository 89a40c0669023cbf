import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";

import { Command, CommanderError, Option } from "commander";

import { instant } from "../core/units.ts";
import { shipped } from "../shipped.ts";
import { audit, auditVerify } from "./audit.ts";
import { backup } from "./backup.ts";
import { check } from "./check.ts";
import { commission } from "./commission.ts";
import { misplaced } from "./configuration.ts";
import type { ExitCode } from "./outcome.ts";
import { plan } from "./plan.ts";
import { profileList, type ProfilePlaces, profileShow, profileTry } from "./profile.ts";
import { prices } from "./prices.ts";
import { proof } from "./proof.ts";
import { proofVerify } from "./proofVerify.ts";
import { release } from "./release.ts";
import { reports, reportsResend, reportsShow } from "./reports.ts";
import { run } from "./run.ts";

const now = () => instant(Date.now());

const version = (): string => {
  const manifest: unknown = JSON.parse(readFileSync(shipped("package.json"), "utf8"));
  return typeof manifest === "object" && manifest !== null && "version" in manifest
    ? String(manifest.version)
    : "?";
};

const TRY_HELP = `
What would be published:
  {"profile":"go-e-v2","params":{"serial":"000001"},"action":"setCurrent","input":{"currentA":13.7}}
  actions: acquire, setCurrent {currentA}, setPower {powerW}, pause, resume {lastCurrentA}, release, setPhases {phases};
  params may have maxCurrentA, phases and nominalV, the charger's own limits. Levels below its minimum become a pause.
  An answer without publishes has a note why none is needed; what a make cannot do is an error.

What a message means:
  {"profile":"go-e-v2","params":{"serial":"000001"},"topic":"go-eCharger/000001/amp","payload":"13"}
  Earlier lines with the same profile and params are remembered, as some values are spread over several messages.

A line that cannot be answered gets {"error":"..."}, and the next one its own answer.`;

const VERIFY_HELP = `
Exit code 0: nothing is wrong in what could be checked, and what could not be is said on standard error; without the
key that is the seal, so that a forger's work would pass. 1: a line is not as it was written, the file or the key
cannot be read, or a running daemon cannot be asked for its record.`;

/** The command line of DESIGN 6.4; answers the exit code. */
export async function main(args: readonly string[]): Promise<ExitCode> {
  let code: ExitCode = 0;
  const program = new Command("setpointd")
    .description(
      "Takes energy-coordination events from a partner, starts each vehicle's share at its own random moment,\ndrives the depot's chargers over MQTT, and keeps a record of every decision.",
    )
    .version(version())
    .option(
      "-c, --config <file>",
      "the configuration (YAML); default $SETPOINTD_CONFIG, else /etc/setpointd/config.yaml, but for run: the demo",
    )
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError("(setpointd --help tells more)")
    .exitOverride()
    .addHelpText(
      "after",
      `
Try it first:
  setpointd                       a demo: partner, broker and chargers simulated, nothing to set up

Then for real:
  setpointd check -c site.yaml    explain every mistake in a configuration
  setpointd plan -c site.yaml --events list.json
                                  what each charger would do for these events, without doing it
  setpointd run -c site.yaml      the daemon; SIGTERM or Ctrl-C stops it, SIGHUP has it read certificates again
  setpointd audit -c site.yaml    the record of every decision and what became of it
  setpointd backup FILE -c site.yaml
                                  a copy of everything stored, while it runs
  setpointd proof EVENT -c site.yaml
                                  all of it for one event, sealed; proof verify FILE finds an edited line
  setpointd prices -c site.yaml   spot prices as they are known
  setpointd reports -c site.yaml  reports to the partner: sent, waiting, due next
  setpointd release bay-01 -c site.yaml
                                  free a charger by hand, now
  setpointd commission bay-01 -c site.yaml
                                  try a real charger before the first event
  setpointd profile list          charger makes it speaks to; profile show NAME tells what one needs

Exit codes: 0 ok, 1 failed, 2 usage or configuration.`,
    );
  const named = (): string | undefined => program.opts<{ config?: string }>().config;

  program
    .command("run", { isDefault: true })
    .description(
      "the daemon, until SIGTERM or Ctrl-C; SIGHUP has it read certificates again; without a configuration a demo with a simulated depot",
    )
    // What is no verb ends up here, as the default has it.
    .allowExcessArguments()
    .action(async (_options: object, { args: [unknown] }: Command) => {
      code = unknown === undefined ? await run(named()) : misplaced("run", unknown);
    });
  program
    .command("check")
    .description("explain every mistake in the configuration: where, what was found, what would be right")
    .allowExcessArguments()
    .action(async (_options: object, { args: [file] }: Command) => {
      code = file === undefined ? await check(named(), now()) : misplaced("check", file);
    });
  program
    .command("plan")
    .description(
      "what each charger would do for a list of events, without doing it: declared limits, fixed bindings, no telemetry",
    )
    .requiredOption(
      "--events <file>",
      "a list of events as the partner serves it (JSON); - reads standard input",
    )
    .option(
      "--at <moment>",
      "plan as of this moment (ISO 8601); windows that ended before it are left out; default now",
    )
    .option("--json", "one JSON array: a row per stretch with one verdict, a gap is a release", false)
    .option(
      "--dispatches",
      "JSON of each vehicle's share of each event, before arbitration and limits",
      false,
    )
    .action((options: { events: string; at?: string; json: boolean; dispatches: boolean }) => {
      code = plan({ config: named(), at: options.at, ...options }, now(), randomBytes);
    });
  const record = program
    .command("audit")
    .description(
      "the record: every event, decision and outcome, oldest first; asks the running daemon, or reads the state",
    )
    .option("--json", "one JSON object a line", false)
    .option("--event <id>", "only what concerns this event")
    .option("--charger <id>", "only what concerns this charger")
    .action(async (options: { json: boolean; event?: string; charger?: string }) => {
      code = await audit(
        { config: named(), json: options.json, event: options.event, charger: options.charger },
        now,
      );
    });
  record
    .command("verify")
    .description(
      "follow the hash chain from the first row to the authenticated head; fails if a row was changed or is missing",
    )
    .option("--json", "one JSON object: ok, and rows and head, or seq and reason", false)
    .action(async (_options: object, command: Command) => {
      code = await auditVerify(named(), command.optsWithGlobals<{ json: boolean }>().json);
    });
  program
    .command("backup")
    .description(
      "copy everything stored into one file, with the site key beside it; a running daemon goes on meanwhile",
    )
    .argument(
      "<file>",
      "where to; FILE.key gets the site key, a secret. The README tells how to restore them",
    )
    .action(async (file: string) => {
      code = await backup(named(), file, now);
    });
  const proven = program
    .command("proof")
    .usage("<event> [--format json|csv], or show <event>, or verify <file>")
    .description(
      "what became of one event, sealed with the site's key, and whether such a file is as it was written",
    );
  proven
    .command("show", { isDefault: true })
    .description(
      "all that is known of one event: what was asked, sent, done, measured and reported, and the rows of the record that say so; proof EVENT for short, but for an event whose id is a verb: proof show verify",
    )
    .argument("<event>", "its id")
    .addOption(
      new Option("--format <format>", "json, or csv for a spreadsheet: the same facts under the same seal")
        .choices(["json", "csv"])
        .default("json"),
    )
    .action(async (event: string, { format }: { format: "json" | "csv" }) => {
      code = await proof(named(), event, format, now);
    });
  proven
    .command("verify")
    .description(
      "find any edited line of a proof: with the site's key also one that was forged, and with the state one whose rows are not those of the record",
    )
    .argument("<file>", "what proof wrote; - reads standard input")
    .option("--key <file>", "the site's key, where there is no configuration at hand")
    .addHelpText("after", VERIFY_HELP)
    .action(async (file: string, { key }: { key?: string }) => {
      code = await proofVerify(file, named(), key);
    });
  program
    .command("prices")
    .description(
      "prices from now on, as the running daemon knows them, or as they are stored; shown, never acted on",
    )
    .option("--json", "one JSON array: all series with all their prices, as in /api/v1/prices", false)
    .action(async ({ json }: { json: boolean }) => {
      code = await prices(named(), json, now);
    });
  const reporting = program
    .command("reports")
    .description(
      "reports to the partner, newest first: planned, waiting, sent, flagged; asks the running daemon, or reads the state",
    )
    .option("--json", "one JSON array, as in /api/v1/reports", false)
    .action(async ({ json }: { json: boolean }) => {
      code = await reports(named(), json, now);
    });
  reporting
    .command("show")
    .description("one report: what was sent, what came of it, and the partner's receipt")
    .argument("<name>", "as setpointd reports lists it, e.g. EV-7731/0/0")
    .option("--json", "one JSON object", false)
    .action(async (name: string, _options: object, command: Command) => {
      code = await reportsShow(named(), name, command.optsWithGlobals<{ json: boolean }>().json, now);
    });
  reporting
    .command("resend")
    .description("send a report again as it was composed, now; the daemon must run")
    .argument("<name>", "as setpointd reports lists it, e.g. EV-7731/0/0")
    .action(async (name: string) => {
      code = await reportsResend(named(), name);
    });
  program
    .command("release")
    .description("free a charger from the events that hold it now, until they end; later events still apply")
    .argument("[charger]", "which one")
    .option("--all", "all of them", false)
    .action(async (charger: string | undefined, { all }: { all: boolean }) => {
      code = await release(named(), charger, all);
    });

  program
    .command("commission")
    .description(
      "try a real charger: three setpoints, what it confirms and draws; then it is left as it was, at once when an event wants it",
    )
    .argument("<charger>", "which one")
    .option("--silence", "try too what it does when it hears no more of us; takes its time-out longer", false)
    .option("--force", "although an event holds on it, or setpointd only observes", false)
    .action(async (charger: string, options: { silence: boolean; force: boolean }) => {
      code = await commission(charger, { config: named(), ...options });
    });

  const profile = program
    .command("profile")
    .description("charger makes: how each speaks MQTT, what it needs, and what it can be held against")
    .option(
      "--profiles <folder>",
      "profiles of your own, one NAME.yaml each; default the folder profiles beside the configuration",
    );
  const own = (): ProfilePlaces => ({
    folder: profile.opts<{ profiles?: string }>().profiles,
    config: named(),
  });
  profile
    .command("list")
    .description("every profile: its name, how far verdicts go (measured, reported, sent), its title")
    .action(() => {
      code = profileList(own());
    });
  profile
    .command("show")
    .description(
      "parameters, set-up on the charger, limits, pace, what happens when the gateway dies, what is uncertain",
    )
    .argument("<name>", "which one")
    .action((name: string) => {
      code = profileShow(own(), name);
    });
  profile
    .command("try")
    .description("hold a profile against traffic, without a broker: a JSON line in, a JSON line out")
    .requiredOption("--stdin", "read the lines from standard input")
    .addHelpText("after", TRY_HELP)
    .action(async () => {
      code = await profileTry(own(), now);
    });

  try {
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? 0 : 2;
  }
  return code;
}
