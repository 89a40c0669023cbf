import { configuration } from "../configuration.ts";
import { askApi, type Done } from "../daemonClient.ts";
import { writeErrorLine, type ExitCode, fail, writeLine, type Verb } from "../output.ts";

/** `poll`: makes the running daemon fetch the event list now, even while it waits after a failure. */
async function poll(named: string | undefined): Promise<ExitCode> {
  const config = configuration(named);
  if (config === null) return 2;
  const done = await askApi<Done>(
    config.state,
    { method: "POST", path: "/poll", body: null },
    "no daemon runs on this state, and only a running one can poll: setpointd run",
  );
  if (typeof done === "string") return fail(1, done);
  (done.ok ? writeLine : writeErrorLine)(done.words);
  return done.ok ? 0 : 1;
}

export const pollVerb: Verb = (verb, { config, done }) => {
  verb.action(async () => {
    done(await poll(config()));
  });
};
