import { type Json, textOf } from "../../domain/audit.ts";
import { unknownTarget, verbConfiguration } from "../configuration.ts";
import { type ApiRequest, askApi, personHere } from "../daemonClient.ts";
import { type ExitCode, fail, printAnswer, type Verb, writeLine } from "../output.ts";

interface BindOptions {
  readonly takeBack: boolean;
  readonly reason?: string;
  readonly json: boolean;
}

const NO_DAEMON = "setpointd does not run: it has no chargers, so no vehicle can be bound to one";

/** `bind`: a person names the vehicle on a charger that cannot identify it, or takes that back. */
async function bind(
  named: string | undefined,
  charger: string,
  vehicle: string | undefined,
  { takeBack, reason = "", json }: BindOptions,
): Promise<ExitCode> {
  if ((vehicle === undefined) !== takeBack)
    return fail(2, `bind which vehicle to ${charger}? Name one, or use --take-back`);
  if (reason.trim() === "") return fail(2, "--reason is missing: it is on record with your name");
  const site = verbConfiguration(named);
  if (site === null) return 2;
  const unknown = [charger, vehicle ?? charger].map((name) => unknownTarget(name, site.config));
  const mistake = unknown.find((reason) => reason !== null) ?? null;
  if (mistake !== null) return fail(2, mistake);
  const by = personHere();
  const request: ApiRequest = takeBack
    ? { method: "POST", path: "/vehicle/end", body: { charger, body: { reason }, by } }
    : { method: "POST", path: "/vehicle", body: { charger, body: { vehicle, reason }, by } };
  return printAnswer(await askApi(site.config.state, request, NO_DAEMON), json, (answer: Json) =>
    writeLine(textOf(answer, "sentence") ?? ""),
  );
}

export const bindVerb: Verb = (verb, { config, done }) => {
  verb
    .argument("<charger>", "id of the charger")
    .argument("[vehicle]", "VTN id or name of the vehicle that stands there")
    .option("--take-back", "end what a person said: what the charger reports counts again", false)
    .option("--reason <text>", "why, for the record, with your name; needed")
    .option("--json", "print the answer as JSON", false)
    .action(async (charger: string, vehicle: string | undefined, options: BindOptions) => {
      done(await bind(config(), charger, vehicle, options));
    });
};
