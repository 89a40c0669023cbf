import { releaseOffline } from "../releaseOffline.ts";
import { surroundings } from "../app.ts";
import { siteConfiguration } from "./configuration.ts";
import { askDaemon } from "./daemon.ts";
import { logger } from "./logger.ts";
import { complain, type ExitCode, say } from "./outcome.ts";

/** `release`: frees one charger, or all, by hand; the running daemon does it, or without one this verb itself. */
export async function release(
  named: string | undefined,
  charger: string | undefined,
  all: boolean,
): Promise<ExitCode> {
  if ((charger === undefined) === !all) {
    complain("release which charger? Name one, or say --all");
    return 2;
  }
  const site = siteConfiguration(named);
  if (site === null) return 2;
  const { config } = site;
  if (charger !== undefined && !config.chargers.some(({ id }) => id === charger)) {
    complain(
      `there is no charger ${charger}; the configuration has ${config.chargers.map(({ id }) => id).join(", ")}`,
    );
    return 2;
  }
  const answer = await askDaemon(config.state, "POST", "/release", { charger: charger ?? null });
  if (answer.kind === "failed") {
    complain(answer.reason);
    return 1;
  }
  const done =
    answer.kind === "answered"
      ? (answer.body as { readonly ok: boolean; readonly words: string })
      : await releaseOffline(site, charger ?? null, surroundings(logger(2, "error")));
  (done.ok ? say : complain)(done.words);
  return done.ok ? 0 : 1;
}
