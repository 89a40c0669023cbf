import { join } from "node:path";

import { addressOf, sectionOf } from "../../chargers/broker/address.ts";
import type { Fleet } from "../../config/fleet.ts";
import type { Config } from "../../config/schema.ts";
import { loadProfiles } from "../../daemon/loadProfiles.ts";
import { realMachine } from "../../daemon/real.ts";
import { stateFolderProblem } from "../../daemon/stateFolder.ts";
import { type Instant, iso } from "../../domain/units.ts";
import {
  configFile,
  fleetConfiguration,
  isFleetFile,
  type SiteConfiguration,
  verbConfiguration,
} from "../configuration.ts";
import { tryFleet, trySite } from "../live/checkLive.ts";
import { runProgram, tryCertificates, tryDisk, tryTimeService } from "../live/machine.ts";
import { type Destination, endpointOf, tryReach } from "../live/reach.ts";
import { tryDaemon } from "../live/running.ts";
import { type Finding, Trials } from "../live/trials.ts";
import { logger } from "../logger.ts";
import { type ExitCode, say, writeLine, type Verb } from "../output.ts";

/** The answer of `doctor --json`. */
export interface Diagnosis {
  readonly site: string;
  /** ISO. */
  readonly at: string;
  readonly ok: boolean;
  readonly counts: Readonly<Record<Finding["result"], number>>;
  readonly steps: readonly Finding[];
}

/** Tries everything that a site needs, step by step. Commands no charger, and does not disturb a running daemon. */
export async function diagnose(
  { config, profiles }: SiteConfiguration,
  file: string,
  now: Instant,
  onStep: (finding: Finding) => void,
  onWait?: (message: string) => void,
): Promise<Diagnosis> {
  const steps: Finding[] = [];
  const trials = new Trials((finding) => {
    steps.push(finding);
    onStep(finding);
  }, onWait);
  const isRunning = await tryDaemon(config, file, now, trials);
  tryDisk(config, stateFolderProblem(config.state), trials);
  tryTimeService(runProgram, trials);
  tryCertificates(config, now, trials);
  for (const [area, destination] of destinationsOf(config)) {
    trials.about(area);
    await tryReach(destination, trials);
  }
  await trySite(config, profiles, isRunning, realMachine(logger(2, "silent")), trials);
  return { site: config.site.id, at: iso(now), ok: trials.failures === 0, counts: trials.counts, steps };
}

/** Tries everything that the processes of a fleet need on this machine, and looks at its sites in the database. */
async function diagnoseFleet(
  fleet: Fleet,
  now: Instant,
  onStep: (finding: Finding) => void,
): Promise<Diagnosis> {
  const { shared, place } = fleet;
  const steps: Finding[] = [];
  const trials = new Trials((finding) => {
    steps.push(finding);
    onStep(finding);
  });
  const denied = stateFolderProblem(shared.state);
  trials.about("disk");
  trials.by(`the rights on ${shared.state}`);
  if (denied === null) trials.ok("state", `${shared.state} can be used for users and tokens`);
  else trials.failed("state", denied, "the folder of the user that runs setpointd, mode 0700");
  tryTimeService(runProgram, trials);
  tryCertificates(shared, now, trials);
  for (const [area, destination] of destinationsOf(shared)) {
    trials.about(area);
    await tryReach(destination, trials);
  }
  const profiles = loadProfiles(join(place.directory, "profiles"));
  await tryFleet(fleet, profiles, realMachine(logger(2, "silent")), trials);
  return {
    site: shared.site.id,
    at: iso(now),
    ok: trials.failures === 0,
    counts: trials.counts,
    steps,
  };
}

/** Token server, partner and brokers, each address once. */
function destinationsOf({
  vtn,
  mqtt,
  brokers,
}: Config): readonly (readonly ["partner" | "brokers", Destination])[] {
  const partner: readonly Destination[] = [
    { key: "vtn.tokenUrl", url: vtn.tokenUrl },
    { key: "vtn.baseUrl", url: vtn.baseUrl },
  ];
  const outside = [["", mqtt] as const, ...brokers].flatMap(([name, broker]): Destination[] =>
    broker.reach.kind === "url"
      ? [
          {
            key: `${sectionOf(name)}.url`,
            url: broker.reach.url,
            tls: addressOf(broker, null).tls?.() ?? {},
          },
        ]
      : [],
  );
  const seen = new Set<string>();
  return [
    ...partner.map((each) => ["partner", each] as const),
    ...outside.map((each) => ["brokers", each] as const),
  ].filter(([, { url }]) => {
    const { host, port } = endpointOf(url);
    const isNew = !seen.has(`${host} ${port}`);
    seen.add(`${host} ${port}`);
    return isNew;
  });
}

/** `doctor`: reports for each step the finding, its evidence and the remedy. */
async function doctor(named: string | undefined, json: boolean, now: Instant): Promise<ExitCode> {
  const diagnosed = await diagnoseFile(named, json, now);
  if (diagnosed === null) return 2;
  const { ok, counts, ...diagnosis } = diagnosed;
  if (json) say(JSON.stringify({ ...diagnosis, ok, counts }));
  else
    say(
      ok
        ? `nothing is wrong: ${counts.ok} steps ok, ${counts.skipped} skipped`
        : `${counts.wrong} ${counts.wrong === 1 ? "step is" : "steps are"} wrong, ${counts.ok} ok, ${counts.skipped} skipped`,
    );
  return ok ? 0 : 1;
}

/** Null: the configuration has mistakes, which have been printed. */
async function diagnoseFile(
  named: string | undefined,
  json: boolean,
  now: Instant,
): Promise<Diagnosis | null> {
  const file = configFile(named);
  const show = json ? () => {} : printStep;
  if (file !== undefined && isFleetFile(file)) {
    const loaded = await fleetConfiguration(file);
    return loaded === null ? null : diagnoseFleet(loaded.fleet, now, show);
  }
  const loaded = verbConfiguration(named);
  if (loaded === null || file === undefined) return null;
  return diagnose(loaded, file, now, show, json ? () => {} : (message) => writeLine(`...      ${message}`));
}

const MARKS = { ok: "ok      ", wrong: "WRONG   ", skipped: "skipped " } as const;

function printStep({ area, name, result, found, how, remedy }: Finding): void {
  const source = result === "ok" ? ` (known from ${how})` : "";
  writeLine(`${MARKS[result]} ${area}, ${name}: ${found}${source}`);
  if (result === "wrong") writeLine(`         known from: ${how}`);
  if (remedy !== null) writeLine(`         remedy: ${remedy}`);
}

export const doctorVerb: Verb = (verb, { config, now, done }) => {
  verb
    .option("--json", "print one JSON object: ok, counts, and each step with its remedy", false)
    .action(async ({ json }: { json: boolean }) => {
      done(await doctor(config(), json, now()));
    });
};
