import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";

import { Command, CommanderError } from "commander";

import { instant } from "../core/units.ts";
import { shipped } from "../shipped.ts";
import { audit, auditVerify } from "./audit.ts";
import { check } from "./check.ts";
import { complain, type ExitCode } from "./outcome.ts";
import { plan } from "./plan.ts";
import { release } from "./release.ts";
import { run } from "./run.ts";

const now = () => instant(Date.now());

const version = (): string => {
  const manifest: unknown = JSON.parse(readFileSync(shipped("package.json"), "utf8"));
  return typeof manifest === "object" && manifest !== null && "version" in manifest
    ? String(manifest.version)
    : "?";
};

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
      "the configuration (YAML); default $SETPOINTD_CONFIG, else /etc/setpointd/config.yaml",
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
  setpointd run -c site.yaml      the daemon; SIGTERM or Ctrl-C stops it
  setpointd audit -c site.yaml    the record of every decision and what became of it
  setpointd release bay-01        free a charger by hand, now

Exit codes: 0 ok, 1 failed, 2 usage or configuration.`,
    );
  const named = (): string | undefined => program.opts<{ config?: string }>().config;

  program
    .command("run", { isDefault: true })
    .description("the daemon, until SIGTERM or Ctrl-C; without a configuration a demo with a simulated depot")
    // What is no verb ends up here, as the default has it.
    .allowExcessArguments()
    .action(async (_options: object, { args: [unknown] }: Command) => {
      if (unknown !== undefined) {
        complain(`there is no verb ${unknown}; setpointd --help lists them`);
        code = 2;
        return;
      }
      code = await run(named());
    });
  program
    .command("check")
    .description("explain every mistake in the configuration: where, what was found, what would be right")
    .action(async () => {
      code = await check(named());
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
    .action(async () => {
      code = await auditVerify(named());
    });
  program
    .command("release")
    .description("free a charger from the events that hold it now, until they end; later events still apply")
    .argument("[charger]", "which one")
    .option("--all", "all of them", false)
    .action(async (charger: string | undefined, { all }: { all: boolean }) => {
      code = await release(named(), charger, all);
    });

  try {
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? 0 : 2;
  }
  return code;
}
