import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { Command, CommanderError, Option } from "commander";

import { instant } from "../domain/units.ts";
import { shipped } from "../platform/packageRoot.ts";
import { acl } from "./commands/acl.ts";
import { audit, auditVerify } from "./commands/audit.ts";
import { backup } from "./commands/backup.ts";
import { check } from "./commands/check.ts";
import { commission } from "./commands/commission.ts";
import { plan } from "./commands/plan.ts";
import { poll } from "./commands/poll.ts";
import { prices } from "./commands/prices.ts";
import { profileCommands } from "./commands/profile.ts";
import { proof, proofKey, proofVerify } from "./commands/proof.ts";
import { release } from "./commands/release.ts";
import { reports, reportsResend, reportsShow } from "./commands/reports.ts";
import { run } from "./commands/run.ts";
import { status } from "./commands/status.ts";
import { webhookTest } from "./commands/webhookTest.ts";
import { misplaced } from "./configuration.ts";
import { OVERVIEW, VERIFY_HELP } from "./help.ts";
import type { ExitCode } from "./output.ts";

const now = () => instant(Date.now());

const version = (): string => {
  const manifest: unknown = JSON.parse(readFileSync(shipped("package.json"), "utf8"));
  return typeof manifest === "object" && manifest !== null && "version" in manifest
    ? String(manifest.version)
    : "?";
};

interface AuditFlags {
  readonly json: boolean;
  readonly event?: string;
  readonly charger?: string;
  readonly since?: string;
  readonly until?: string;
  readonly problems: boolean;
}

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
      "the configuration (YAML); default $SETPOINTD_CONFIG, else /etc/setpointd/config.yaml, but for run",
    )
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError("(setpointd --help tells more)")
    .exitOverride()
    .addHelpText("after", OVERVIEW);
  const named = (): string | undefined => program.opts<{ config?: string }>().config;

  program
    .command("run", { isDefault: true })
    .description(
      "the daemon, until SIGTERM or Ctrl-C; SIGHUP has it read certificates again; without a configuration, in a checkout, a demo with a simulated depot",
    )
    // What is no verb ends up here, as the default has it.
    .allowExcessArguments()
    .action(async (_options: object, { args: [unknown] }: Command) => {
      code = unknown === undefined ? await run(named()) : misplaced("run", unknown);
    });
  program
    .command("check")
    .description("explain every mistake in the configuration: where, what was found, what would be right")
    .option(
      "--live",
      "then try it: token, events, webhook, brokers, topics, clock, each charger heard within 30 s; commands nobody, and leaves a running daemon alone",
      false,
    )
    .allowExcessArguments()
    .action(async ({ live }: { live: boolean }, { args: [file] }: Command) => {
      code = file === undefined ? await check(named(), live, now()) : misplaced("check", file);
    });
  program
    .command("acl")
    .description("the access list that each broker of this site needs, all makes, for mosquitto")
    .action(() => {
      code = acl(named());
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
      "plan as of this moment (ISO 8601; without a zone the site's); windows that ended before it are left out; default now",
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
    .option(
      "--since <moment>",
      "only rows from then on: 2026-11-21T05:30, or 05:30 for today; the site's zone",
    )
    .option("--until <moment>", "only rows before then")
    .option("--problems", "only rows that the log shows as a warning or worse", false)
    .action(async (options: AuditFlags) => {
      const { json, event, charger, since, until, problems } = options;
      code = await audit({ config: named(), json, event, charger, since, until, problems }, now);
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
      "where to; FILE.key gets the site key, a secret. docs/backup.md describes how to restore them",
    )
    .action(async (file: string) => {
      code = await backup(named(), file, now);
    });
  const proven = program
    .command("proof")
    .usage("<event> [--format json|csv], or show <event>, or verify <file>, or key")
    .description(
      "what became of one event, sealed with the site's key and signed, and whether such a file is as it was written",
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
    .option(
      "--public-key <file>",
      "the site's public key, as proof key prints it: for a partner, who has no other",
    )
    .addHelpText("after", VERIFY_HELP)
    .action(async (file: string, { key, publicKey }: { key?: string; publicKey?: string }) => {
      code = await proofVerify(file, named(), key, publicKey);
    });
  proven
    .command("key")
    .description("print the public key (PEM) that a partner verifies proofs of this site with")
    .action(() => {
      code = proofKey(named(), randomBytes);
    });
  program
    .command("status")
    .description(
      "how the running daemon and its site are doing: counts, and every open problem with what to do; needs neither root nor secrets",
    )
    .option("--json", "one JSON object, as in /api/v1/status", false)
    .action(async ({ json }: { json: boolean }) => {
      code = await status(named(), json, now);
    });
  program
    .command("poll")
    .description("have the running daemon ask the partner for its events now, outage or not")
    .action(async () => {
      code = await poll(named());
    });
  program
    .command("webhook")
    .description("the listener for the partner's deliveries")
    .command("test")
    .description(
      "post one signed event to this machine's own listener, as the partner would, and tell what the running daemon made of it",
    )
    .option(
      "--event <file>",
      "post this body (JSON) as it is, and have it acted on; - reads standard input; default an event that asks nothing of anyone",
    )
    .action(async ({ event }: { event?: string }) => {
      code = await webhookTest(named(), event, now, randomBytes);
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
    .argument("[charger]", "which one: its id, or VTN id or name of the vehicle on it")
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

  profileCommands(program, named, now, (done) => (code = done));

  try {
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? 0 : 2;
  }
  return code;
}
