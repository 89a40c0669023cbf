import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";

import { instant } from "../domain/units.ts";
import { shipped } from "../platform/packageRoot.ts";
import { aclVerb } from "./commands/acl.ts";
import { auditVerb } from "./commands/audit.ts";
import { backupVerb } from "./commands/backup.ts";
import { checkVerb } from "./commands/check.ts";
import { commissionVerb } from "./commands/commission.ts";
import { explainVerb } from "./commands/explain.ts";
import { planVerb } from "./commands/plan.ts";
import { pollVerb } from "./commands/poll.ts";
import { pricesVerb } from "./commands/prices.ts";
import { profileVerb } from "./commands/profile.ts";
import { proofVerb } from "./commands/proof.ts";
import { releaseVerb } from "./commands/release.ts";
import { reportsVerb } from "./commands/reports.ts";
import { runVerb } from "./commands/run.ts";
import { statusVerb } from "./commands/status.ts";
import { webhookVerb } from "./commands/webhookTest.ts";
import type { ExitCode } from "./output.ts";
import type { Verb } from "./verb.ts";

/** Verbs in the order of `--help`. A verb is a file in `commands/` and a row here. */
const VERBS: readonly Verb[] = [
  runVerb,
  checkVerb,
  aclVerb,
  planVerb,
  auditVerb,
  backupVerb,
  proofVerb,
  statusVerb,
  explainVerb,
  pollVerb,
  webhookVerb,
  pricesVerb,
  reportsVerb,
  releaseVerb,
  commissionVerb,
  profileVerb,
];

/** Text of `--help` below the verbs. */
const OVERVIEW = `
Try it first, in a checkout of the source:
  npm start                       a demo with a simulated partner, broker and chargers; needs no set-up

Then for real:
  setpointd check -c site.yaml    explain every mistake in a configuration
  setpointd check -c site.yaml --live
                                  then try it: token, events, webhook, brokers, topics, clock, chargers
  setpointd plan -c site.yaml --events list.json
                                  show the setpoints for these events, without sending any
  setpointd acl -c site.yaml      print the access list that the broker needs for this site
  setpointd run -c site.yaml      run the daemon; SIGTERM or Ctrl-C stops it, SIGHUP reloads the certificates
  setpointd webhook test -c site.yaml
                                  post a signed event to the running daemon and show its reaction
  setpointd status                show the state of the site, and every open problem with its remedy
  setpointd explain bay-01 -c site.yaml
                                  show why a charger or a vehicle has its setpoint
  setpointd poll -c site.yaml     fetch the partner's events now
  setpointd audit -c site.yaml    print the record of every decision and its outcome
  setpointd backup FILE -c site.yaml
                                  copy the stored state, also while the daemon runs
  setpointd proof EVENT -c site.yaml
                                  print the history of one event, sealed; proof verify FILE finds edited lines
  setpointd prices -c site.yaml   show the known spot prices
  setpointd reports -c site.yaml  list reports to the partner: sent, waiting, planned
  setpointd release bay-01 -c site.yaml
                                  release a charger now
  setpointd commission bay-01 -c site.yaml
                                  try a real charger before the first event
  setpointd profile list          list the supported charger makes; profile show NAME shows the needs of one

Exit codes: 0 ok, 1 failed, 2 usage or configuration.`;

const version = (): string => {
  const manifest: unknown = JSON.parse(readFileSync(shipped("package.json"), "utf8"));
  return typeof manifest === "object" && manifest !== null && "version" in manifest
    ? String(manifest.version)
    : "?";
};

/** Runs the command line. Answers the exit code. */
export async function main(args: readonly string[]): Promise<ExitCode> {
  let code: ExitCode = 0;
  const program = new Command("setpointd")
    .description(
      "Receives energy-coordination events from a partner, starts each vehicle's share at its own random time,\ncontrols the depot's chargers over MQTT, and records every decision.",
    )
    .version(version())
    .option(
      "-c, --config <file>",
      "the configuration (YAML); default $SETPOINTD_CONFIG, else /etc/setpointd/config.yaml (not for run)",
    )
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError("(see setpointd --help)")
    .exitOverride()
    .addHelpText("after", OVERVIEW);
  const context = {
    config: () => program.opts<{ config?: string }>().config,
    now: () => instant(Date.now()),
    randomBytes,
    done: (result: ExitCode) => {
      code = result;
    },
  };
  for (const addTo of VERBS) addTo(program, context);
  try {
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? 0 : 2;
  }
  return code;
}
