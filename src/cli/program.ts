import { Command, CommanderError, Help } from "commander";

import { instant } from "../domain/units.ts";
import { version } from "../platform/packageRoot.ts";
import type { ExitCode, Verb } from "./output.ts";

interface Row {
  /** Name, then whether it has options, then its arguments. */
  readonly synopsis: string;
  readonly description: string;
  /** Imports the verb: a verb costs the start of no other. */
  readonly load: () => Promise<Verb>;
}

/** Verbs in the order of `--help`. A verb is a file in `commands/` and a row here. The first is the default. */
export const VERBS: readonly Row[] = [
  {
    synopsis: "run",
    description:
      "run the daemon until SIGTERM or Ctrl-C; SIGHUP reloads the certificates; without a configuration, in a checkout, run a demo with a simulated depot",
    load: async () => (await import("./commands/run.ts")).runVerb,
  },
  {
    synopsis: "ocpp",
    description: "run the central system for OCPP chargers, beside the daemon, with its own configuration",
    load: async () => (await import("./commands/ocpp.ts")).ocppVerb,
  },
  {
    synopsis: "fleet",
    description:
      "lead many sites from one database, with a configuration of its own; several such processes share the sites",
    load: async () => (await import("./commands/fleet.ts")).fleetVerb,
  },
  {
    synopsis: "site",
    description: "sites of a fleet: put, list, show, remove, check",
    load: async () => (await import("./commands/site.ts")).siteVerb,
  },
  {
    synopsis: "check [options]",
    description: "explain every mistake in the configuration: the key, the value found, a value that works",
    load: async () => (await import("./commands/check.ts")).checkVerb,
  },
  {
    synopsis: "doctor [options]",
    description:
      "try everything that a site needs, step by step: the result, its source, and the remedy; commands no charger and does not disturb a running daemon",
    load: async () => (await import("./commands/doctor.ts")).doctorVerb,
  },
  {
    synopsis: "bundle [options] <file>",
    description:
      "write a support archive without secrets: configuration, versions, status, alarms, metrics, doctor, the last day of log and record",
    load: async () => (await import("./commands/bundle.ts")).bundleVerb,
  },
  {
    synopsis: "acl",
    description: "print the access list that each broker of this site needs, for mosquitto",
    load: async () => (await import("./commands/acl.ts")).aclVerb,
  },
  {
    synopsis: "plan [options]",
    description: "show the setpoints for a list of events, by the configuration alone; sends none",
    load: async () => (await import("./commands/plan.ts")).planVerb,
  },
  {
    synopsis: "audit [options]",
    description: "print the record, oldest row first, of the running daemon or of the stored state",
    load: async () => (await import("./commands/audit.ts")).auditVerb,
  },
  {
    synopsis: "backup <file>",
    description: "copy the stored state and its site key into files; a running daemon continues",
    load: async () => (await import("./commands/backup.ts")).backupVerb,
  },
  {
    synopsis: "state",
    description: "move the stored state of a stopped site between a folder and PostgreSQL",
    load: async () => (await import("./commands/state.ts")).stateVerb,
  },
  {
    synopsis: "proof",
    description: "print the history of one event, sealed and signed, or verify such a file",
    load: async () => (await import("./commands/proof.ts")).proofVerb,
  },
  {
    synopsis: "status [options]",
    description: "show counts and every open problem with its remedy; needs neither root nor secrets",
    load: async () => (await import("./commands/status.ts")).statusVerb,
  },
  {
    synopsis: "explain [options] <target>",
    description: "show why a charger or a vehicle has its setpoint: every claim on it, the winner first",
    load: async () => (await import("./commands/explain.ts")).explainVerb,
  },
  {
    synopsis: "hold [options] [target]",
    description:
      "override the events on a charger, on a vehicle wherever it is, or on the site, until an end; on record with your name",
    load: async () => (await import("./commands/hold.ts")).holdVerb,
  },
  {
    synopsis: "bind [options] <charger> [vehicle]",
    description: "name the vehicle on a charger that cannot tell; on record with your name",
    load: async () => (await import("./commands/bind.ts")).bindVerb,
  },
  {
    synopsis: "reboot [options] <charger>",
    description: "reboot a charger and wait until it is back; on record with your name",
    load: async () => (await import("./commands/reboot.ts")).rebootVerb,
  },
  {
    synopsis: "alarms [options]",
    description: "show the open alarms with their remedies, and acknowledge one",
    load: async () => (await import("./commands/alarms.ts")).alarmsVerb,
  },
  {
    synopsis: "departures [options]",
    description: "show who leaves when, with how much, and who will be short; set, import from CSV, or clear",
    load: async () => (await import("./commands/departures.ts")).departuresVerb,
  },
  {
    synopsis: "handover [options]",
    description: "show what the next shift has to know: events, overrides, alarms, what is due next",
    load: async () => (await import("./commands/handover.ts")).handoverVerb,
  },
  {
    synopsis: "poll",
    description: "fetch the partner's events now, even while the daemon waits after a failure",
    load: async () => (await import("./commands/poll.ts")).pollVerb,
  },
  {
    synopsis: "webhook",
    description: "test the listener for the partner's deliveries",
    load: async () => (await import("./commands/webhookTest.ts")).webhookVerb,
  },
  {
    synopsis: "prices [options]",
    description: "show prices from now on, of the daemon or the stored state; they do not affect charging",
    load: async () => (await import("./commands/prices.ts")).pricesVerb,
  },
  {
    synopsis: "reports [options]",
    description:
      "list reports to the partner, newest first: planned, waiting, sent, flagged; from the running daemon, or the stored state",
    load: async () => (await import("./commands/reports.ts")).reportsVerb,
  },
  {
    synopsis: "release [options] [charger]",
    description:
      "release a charger from the events that limit it now, until they end; later events still apply",
    load: async () => (await import("./commands/release.ts")).releaseVerb,
  },
  {
    synopsis: "mode [options] [mode]",
    description: "show the mode of the site; have it observe until an end, or end that",
    load: async () => (await import("./commands/mode.ts")).modeVerb,
  },
  {
    synopsis: "apply [options]",
    description: "start the daemon again with the changed configuration; on record with your name",
    load: async () => (await import("./commands/apply.ts")).applyVerb,
  },
  {
    synopsis: "rollback [options] [fingerprint]",
    description: "list the configurations that ran, and go back to one until the file changes",
    load: async () => (await import("./commands/apply.ts")).rollbackVerb,
  },
  {
    synopsis: "commission [options] <charger>",
    description:
      "try a real charger with three setpoints and compare its telemetry; afterwards it is left as it was before, at once if an event needs it",
    load: async () => (await import("./commands/commission.ts")).commissionVerb,
  },
  {
    synopsis: "profile [options]",
    description: "show charger profiles: how a make speaks MQTT, its set-up, its limits",
    load: async () => (await import("./commands/profile.ts")).profileVerb,
  },
  {
    synopsis: "user",
    description: "users who may sign in at the operator's listener (operator.access: login)",
    load: async () => (await import("./commands/user.ts")).userVerb,
  },
  {
    synopsis: "token",
    description: "tokens for programs and wall screens, sent as Bearer (operator.access: login)",
    load: async () => (await import("./commands/user.ts")).tokenVerb,
  },
];

/** Text of `--help` below the verbs. */
const OVERVIEW = `
Try it first, in a checkout of the source:
  npm start                       a demo with a simulated partner, broker and chargers; needs no set-up

Then for real:
  setpointd check -c site.yaml    explain every mistake in a configuration
  setpointd check -c site.yaml --live     then try it: token, events, webhook, brokers, topics, clock, chargers
  setpointd doctor -c site.yaml   find the fault: daemon, partner, brokers, chargers, clock, disk, certificates
  setpointd bundle FILE.tar.gz -c site.yaml     write an archive for support, without secrets
  setpointd plan -c site.yaml --events list.json     show the setpoints for these events, without sending any
  setpointd acl -c site.yaml      print the access list that the broker needs for this site
  setpointd run -c site.yaml      run the daemon; SIGTERM or Ctrl-C stops it, SIGHUP reloads the certificates
  setpointd ocpp -c ocpp.yaml     connect chargers that speak OCPP; ocpp status shows them
  setpointd fleet -c fleet.yaml   lead many sites from one database; site put FILE -c fleet.yaml adds one
  setpointd webhook test -c site.yaml     post a signed event to the running daemon and show its reaction
  setpointd status                show the state of the site, and every open problem with its remedy
  setpointd explain bay-01 -c site.yaml     show why a charger or a vehicle has its setpoint
  setpointd alarms -c site.yaml   show the open alarms; alarms acknowledge KEY silences one
  setpointd departures -c site.yaml     show who leaves when, and who will be short; set, import, clear
  setpointd handover --since 22:00 -c site.yaml     show what the next shift has to know
  setpointd poll -c site.yaml     fetch the partner's events now
  setpointd audit -c site.yaml    print the record of every decision and its outcome
  setpointd backup FILE -c site.yaml     copy the stored state, also while the daemon runs
  setpointd state move --to TARGET -c site.yaml     move the state of a stopped site between a folder and PostgreSQL
  setpointd proof EVENT -c site.yaml     print the history of one event, sealed; proof verify FILE finds edited lines
  setpointd prices -c site.yaml   show the known spot prices
  setpointd reports -c site.yaml  list reports to the partner: sent, waiting, planned
  setpointd release bay-01 -c site.yaml     release a charger now
  setpointd hold bay-01 --exempt --until 05:40 --reason "leaves early" -c site.yaml
                                  override the events on a charger; hold list, hold end ID
  setpointd bind bay-01 "Bus 214" --reason "it stands there" -c site.yaml
                                  name the vehicle on a charger that cannot tell
  setpointd reboot bay-01 -c site.yaml --preview     show what a reboot of a charger would interrupt
  setpointd mode observe --until 06:00 --reason "work on the panel" -c site.yaml
                                  send no command until then; mode shows the mode, mode drive ends it early
  setpointd apply --reason "second panel" -c site.yaml
                                  start again with the changed configuration; rollback goes back
  setpointd commission bay-01 -c site.yaml     try a real charger before the first event
  setpointd profile list          list the supported charger makes; profile show NAME shows the needs of one
  setpointd user add kari --role operator -c site.yaml
                                  let a person sign in; token add makes a token for a program or a wall screen

Exit codes: 0 ok, 1 failed, 2 usage or configuration.`;

/** Runs the command line. Answers the exit code. */
export async function main(args: readonly string[]): Promise<ExitCode> {
  let code: ExitCode = 0;
  /** Verbs that are not imported yet. */
  const rows = new Map<Command, Row>();
  const program = new Command("setpointd")
    .description(
      "Receives energy-coordination events from a partner, gives each vehicle its own random start, commands the depot's chargers over MQTT, and records every decision.",
    )
    .version(version())
    .option(
      "-c, --config <file>",
      "the configuration (YAML); default $SETPOINTD_CONFIG, else /etc/setpointd/config.yaml (not for run)",
    )
    .configureHelp({
      showGlobalOptions: true,
      // The default of a switch, off, needs no text.
      optionDescription: (option) =>
        option.defaultValue ? new Help().optionDescription(option) : option.description,
      // The other options of a verb have no effect in the verbs below it.
      visibleGlobalOptions: ({ parent }) =>
        [parent, parent?.parent ?? null].flatMap((above) =>
          (above?.options ?? []).filter(({ long }) => above?.parent === null || long === "--profiles"),
        ),
      subcommandTerm: (command) => rows.get(command)?.synopsis ?? new Help().subcommandTerm(command),
    })
    .showHelpAfterError("(see setpointd --help)")
    .exitOverride()
    .addHelpText("after", OVERVIEW);
  const load = async (command: Command): Promise<void> => {
    const row = rows.get(command);
    if (row === undefined) return;
    rows.delete(command);
    const addTo = await row.load();
    const { randomBytes } = await import("node:crypto");
    addTo(command, {
      config: () => program.opts<{ config?: string }>().config,
      now: () => instant(Date.now()),
      randomBytes,
      done: (result) => {
        code = result;
      },
    });
    const path = `setpointd ${command.name()}`;
    command.showHelpAfterError(`(see ${path} --help)`);
    for (const verb of command.commands) verb.showHelpAfterError(`(see ${path} ${verb.name()} --help)`);
  };
  for (const row of VERBS) {
    const [name = ""] = row.synopsis.split(" ", 1);
    rows.set(program.command(name, { isDefault: row === VERBS[0] }).description(row.description), row);
  }
  // `help VERB` prints its help before any hook.
  if (args.includes("help"))
    for (const [command] of rows) if (args.includes(command.name())) await load(command);
  program.hook("preSubcommand", (_program, command) => load(command));
  try {
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? 0 : 2;
  }
  return code;
}
