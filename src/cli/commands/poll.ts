import { configuration } from "../configuration.ts";
import { askDaemon } from "../daemonClient.ts";
import { writeErrorLine, type ExitCode, fail, writeLine, type Verb } from "../output.ts";

/** `poll`: makes the running daemon fetch the event list now, even while it waits after a failure. */
async function poll(named: string | undefined): Promise<ExitCode> {
  const config = configuration(named);
  if (config === null) return 2;
  const answer = await askDaemon(config.state, "POST", "/poll");
  if (answer.kind !== "answered")
    return fail(
      1,
      answer.kind === "failed"
        ? answer.reason
        : "no daemon runs on this state, and only a running one can poll: setpointd run",
    );
  const { ok, words } = answer.body as { readonly ok: boolean; readonly words: string };
  (ok ? writeLine : writeErrorLine)(words);
  return ok ? 0 : 1;
}

export const pollVerb: Verb = (verb, { config, done }) => {
  verb.action(async () => {
    done(await poll(config()));
  });
};
