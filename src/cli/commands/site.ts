import { join } from "node:path";
import pino from "pino";
import { stringify } from "yaml";

import { explain } from "../../config/explain.ts";
import type { Fleet } from "../../config/fleet.ts";
import { profileChecks } from "../../daemon/chargerModels.ts";
import {
  type PutRefused,
  readSiteFiles,
  SiteFiles,
  type SiteFileRead,
} from "../../daemon/fleet/siteFiles.ts";
import { loadProfiles } from "../../daemon/loadProfiles.ts";
import { recordInFleet } from "../../daemon/offline.ts";
import { type Instant, instant } from "../../domain/units.ts";
import { stateFolderProblem } from "../../daemon/stateFolder.ts";
import { counted, listed } from "../../platform/text.ts";
import { environmentOf, fleetConfiguration, printMistakes } from "../configuration.ts";
import { personHere } from "../daemonClient.ts";
import { logger } from "../logger.ts";
import { complain, fail, type ExitCode, say, type Verb } from "../output.ts";

type RandomBytes = (count: number) => Buffer;

const now = (): Instant => instant(Date.now());

/** Does the work with the sites of the fleet. `named`: value of `--config`. `makes` false: a missing schema is not made. */
async function withSites(
  named: string | undefined,
  randomBytes: RandomBytes,
  work: (sites: SiteFiles, fleet: Fleet) => Promise<ExitCode>,
  makes = false,
): Promise<ExitCode> {
  const loaded = await fleetConfiguration(named);
  if (loaded === null) return 2;
  const log = pino({ level: "silent" });
  await using sites = await openSites(loaded.fleet, randomBytes, log, makes);
  return sites.files === null ? 1 : await work(sites.files, loaded.fleet);
}

async function openSites(fleet: Fleet, randomBytes: RandomBytes, log: pino.Logger, makes = false) {
  const files = await SiteFiles.open(fleet, { now, randomBytes, log }, makes);
  if (typeof files === "string") complain(files);
  const opened = typeof files === "string" ? null : files;
  return { files: opened, [Symbol.asyncDispose]: async () => opened?.[Symbol.asyncDispose]() };
}

/** Sites without a leader that are listed. */
const MOST_LISTED = 20;

/** `check` of the configuration of a fleet. `live`: also of its database, with the sites that no process leads. */
export async function checkFleet(file: string, live: boolean, randomBytes: RandomBytes): Promise<ExitCode> {
  const { loadFleet } = await import("../../config/fleet.ts");
  const loaded = loadFleet(file, environmentOf(file, process.env));
  if (!loaded.ok) {
    printMistakes(loaded.mistakes, file, { wanted: "fleet" });
    return 2;
  }
  if (loaded.warnings.length > 0) complain(`Works, but was it meant?\n\n${explain(loaded.warnings, file)}`);
  const { shared, database, sitesAtMost } = loaded.fleet;
  say(
    `${file} is fine: a fleet, at most ${sitesAtMost} sites in this process, state in PostgreSQL (schema ${database.schema}), users in ${shared.state}`,
  );
  const denied = stateFolderProblem(shared.state);
  if (denied !== null) complain(denied);
  if (!live) return 0;
  await using opened = await openSites(loaded.fleet, randomBytes, pino({ level: "silent" }));
  if (opened.files === null) return 1;
  const sites = await opened.files.list();
  if (typeof sites === "string") return fail(1, sites);
  const unled = sites.filter(({ leader }) => leader === null).map(({ site }) => site);
  const leaders = new Set(sites.flatMap(({ leader }) => leader ?? []));
  say(`the database answers: sites: ${sites.length}, processes that lead them: ${leaders.size}`);
  if (unled.length === 0) return 0;
  complain(`no process leads ${listed(unled, MOST_LISTED)}`);
  return 0;
}

const readAll = (fleet: Fleet, files: readonly string[]): readonly SiteFileRead[] =>
  readSiteFiles(fleet, files, profileChecks(loadProfiles(join(fleet.place.directory, "profiles"))));

function showRefused(refused: readonly PutRefused[]): void {
  for (const each of refused)
    if (each.kind === "reason") complain(each.reason);
    else printMistakes(each.mistakes, each.file, { wanted: "site of a fleet" });
}

function showWarnings(read: readonly SiteFileRead[]): void {
  for (const { file, loaded } of read)
    if (loaded.ok && loaded.warnings.length > 0)
      complain(`Works, but was it meant?\n\n${explain(loaded.warnings, file)}`);
}

const put = (
  named: string | undefined,
  randomBytes: RandomBytes,
  files: readonly string[],
): Promise<ExitCode> =>
  withSites(
    named,
    randomBytes,
    async (sites, fleet) => {
      const read = readAll(fleet, files);
      const refused = await sites.put(read);
      showRefused(refused);
      if (refused.length > 0) {
        complain("no site was changed");
        return refused.some(({ kind }) => kind === "mistakes") ? 2 : 1;
      }
      showWarnings(read);
      const stored = read.flatMap(({ file, loaded }) =>
        loaded.ok ? { file, id: loaded.config.site.id } : [],
      );
      for (const { file, id } of stored)
        say(`${file}: site ${id} is stored; a running fleet follows within seconds`);
      await putOnRecord(
        fleet,
        randomBytes,
        stored.map(({ id }) => ({ did: "stored", id })),
      );
      return 0;
    },
    true,
  );

/** Puts what a person did to sites on the record of the fleet. A failure is printed. */
async function putOnRecord(
  fleet: Fleet,
  randomBytes: RandomBytes,
  acts: readonly { readonly did: "stored" | "removed"; readonly id: string }[],
): Promise<void> {
  const by = personHere();
  const rows = acts.map(({ did, id }) => ({
    at: now(),
    message: `${by} ${did} the site ${id}`,
    facts: { by, [did]: "site", name: id },
  }));
  const fault = await recordInFleet(fleet.shared, { now, randomBytes, log: logger(2, "error") }, rows);
  if (fault !== null) complain(`this change is not on record: ${fault}`);
}

async function check(named: string | undefined, file: string): Promise<ExitCode> {
  const loaded = await fleetConfiguration(named);
  if (loaded === null) return 2;
  const read = readAll(loaded.fleet, [file]);
  showWarnings(read);
  const [site] = read;
  if (site?.loaded.ok !== true) {
    if (site !== undefined) printMistakes(site.loaded.mistakes, file, { wanted: "site of a fleet" });
    return 2;
  }
  const {
    site: { id, timezone },
    chargers,
    vehicles,
  } = site.loaded.config;
  say(
    `${file} is fine: site ${id} (${timezone}), chargers: ${chargers.length}, vehicles: ${vehicles.length}`,
  );
  return 0;
}

export const siteVerb: Verb = (verb, { config, randomBytes, done }) => {
  verb
    .command("put <file...>")
    .description(
      "store the files of sites in the database, all or none; a running fleet follows without a restart",
    )
    .action(async (files: readonly string[]) => done(await put(config(), randomBytes, files)));
  verb
    .command("list")
    .description("list the sites: who leads each, since when, and its vehicles")
    .option("--json", "print JSON", false)
    .action(async ({ json }: { json: boolean }) =>
      done(
        await withSites(config(), randomBytes, async (sites) => {
          const rows = await sites.list();
          if (typeof rows === "string") return fail(1, rows);
          if (json) say(JSON.stringify(rows, null, 2));
          else if (rows.length === 0) say("no sites; setpointd site put FILE stores one");
          else
            for (const { site, leader, since, vehicles } of rows)
              say(
                `${site}: ${counted(vehicles, "vehicle")}, ${leader === null ? "no process leads it" : `led by ${leader} since ${since}`}`,
              );
          return 0;
        }),
      ),
    );
  verb
    .command("show <id>")
    .description("print the file of a site")
    .action(async (id: string) =>
      done(
        await withSites(config(), randomBytes, async (sites) => {
          const shown = await sites.show(id);
          if (!shown.ok || shown.file === null)
            return fail(1, shown.ok ? `there is no site ${id}` : shown.reason);
          say(stringify(JSON.parse(shown.file)).trimEnd());
          return 0;
        }),
      ),
    );
  verb
    .command("remove <id>")
    .description("remove a site from the fleet; its record and its keys stay in the database")
    .action(async (id: string) =>
      done(
        await withSites(config(), randomBytes, async (sites, fleet) => {
          const reason = await sites.remove(id);
          if (reason !== null) return fail(1, `the site ${id} is not removed: ${reason}`);
          say(`the site ${id} is removed; its record stays in the database`);
          await putOnRecord(fleet, randomBytes, [{ did: "removed", id }]);
          return 0;
        }),
      ),
    );
  verb
    .command("check <file>")
    .description("explain every mistake in the file of a site")
    .action(async (file: string) => done(await check(config(), file)));
};
