import { type SiteConfiguration, unknownTarget, verbConfiguration } from "../configuration.ts";
import { askDaemon, type Done, personHere } from "../daemonClient.ts";
import { complain, fail, type ExitCode, say, type Verb } from "../output.ts";

/**
 * `release`: releases one charger, or all. The target is a charger's id, or the VTN id or name of the vehicle on it. The
 * running daemon does it; without one this verb does.
 */
async function release(
  named: string | undefined,
  target: string | undefined,
  all: boolean,
): Promise<ExitCode> {
  if ((target === undefined) === !all) return fail(2, "release which charger? Name one, or use --all");
  const site = verbConfiguration(named);
  if (site === null) return 2;
  const { config } = site;
  const unknown = target === undefined ? null : unknownTarget(target, config);
  if (unknown !== null) return fail(2, unknown);
  const answer = await askDaemon(config.state, "POST", "/release", {
    charger: target ?? null,
    by: personHere(),
  });
  if (answer.kind === "failed") return fail(1, answer.reason);
  const done = answer.kind === "answered" ? (answer.body as Done) : await withoutDaemon(site, target ?? null);
  (done.ok ? say : complain)(done.words);
  return done.ok ? 0 : 1;
}

/** Imports the drivers of chargers only if no daemon runs. */
async function withoutDaemon(site: SiteConfiguration, target: string | null) {
  const { releaseOffline } = await import("../../daemon/releaseOffline.ts");
  const { realMachine } = await import("../../daemon/real.ts");
  const { logger } = await import("../logger.ts");
  return releaseOffline(site, target, personHere(), realMachine(logger(2, "error")));
}

export const releaseVerb: Verb = (verb, { config, done }) => {
  verb
    .argument("[charger]", "id of the charger, or VTN id or name of the vehicle on it")
    .option("--all", "release all chargers", false)
    .action(async (charger: string | undefined, { all }: { all: boolean }) => {
      done(await release(config(), charger, all));
    });
};
