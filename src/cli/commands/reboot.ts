import { setTimeout as sleep } from "node:timers/promises";

import { factOf, type Json, textOf } from "../../domain/audit.ts";
import type { Answer } from "../../operator/answer.ts";
import { unknownTarget, verbConfiguration } from "../configuration.ts";
import { type ApiRequest, askApi, personHere } from "../daemonClient.ts";
import { type ExitCode, fail, listIn, printAnswer, say, type Verb, writeLine } from "../output.ts";

interface RebootOptions {
  readonly preview: boolean;
  readonly wait: boolean;
  readonly reason?: string;
  readonly json: boolean;
}

/** Ms between two requests for the progress. */
const EVERY = 1_000;
/** Progress whose result is not known yet. */
const OPEN: readonly (string | null)[] = ["asked", "sent", "accepted", "away"];

/** `reboot`: reboots a charger, and waits until it is back. */
async function reboot(
  named: string | undefined,
  charger: string,
  { preview, wait, reason = "", json }: RebootOptions,
): Promise<ExitCode> {
  if (!preview && reason.trim() === "") return fail(2, "--reason is missing: it is on record with your name");
  const site = verbConfiguration(named);
  if (site === null) return 2;
  const unknown = unknownTarget(charger, { ...site.config, vehicles: [] });
  if (unknown !== null) return fail(2, unknown);
  const ask = (request: ApiRequest): Promise<Answer<Json> | string> =>
    askApi(site.config.state, request, "setpointd does not run: it has no connection to a charger");
  const path = `/reboot?charger=${encodeURIComponent(charger)}`;
  if (preview) return printAnswer(await ask({ method: "GET", path }), json, printPreview);
  const body = { charger, body: { reason }, by: personHere() };
  let answer = await ask({ method: "POST", path: "/reboot", body });
  if (!wait || typeof answer === "string" || !answer.ok) return printAnswer(answer, json, printLast);
  let shown = "";
  while (typeof answer !== "string" && answer.ok && OPEN.includes(progressOf(answer.value))) {
    const sentence = sentenceOf(answer.value);
    if (!json && sentence !== shown) say(sentence);
    shown = sentence;
    await sleep(EVERY);
    answer = await ask({ method: "GET", path });
  }
  const code = printAnswer(answer, json, printLast);
  const isBack = typeof answer !== "string" && answer.ok && progressOf(answer.value) === "back";
  return isBack ? code : 1;
}

const lastOf = (answer: Json): Json => factOf(answer, "last");
const progressOf = (answer: Json): string | null => textOf(lastOf(answer), "progress");
const sentenceOf = (answer: Json): string => textOf(lastOf(answer), "sentence") ?? "";
const printLast = (answer: Json): void => writeLine(sentenceOf(answer));

function printPreview(answer: Json): void {
  const hindrance = textOf(answer, "hindrance");
  writeLine(hindrance === null ? "not rebooted, a preview:" : `it cannot be rebooted now: ${hindrance}`);
  for (const line of listIn(answer, "will")) if (typeof line === "string") writeLine(`  ${line}`);
}

export const rebootVerb: Verb = (verb, { config, done }) => {
  verb
    .argument("<charger>", "id of the charger")
    .option("--reason <text>", "why, for the record, with your name; needed")
    .option("--preview", "reboot nothing: print what would happen, and to whom", false)
    .option("--no-wait", "do not wait until the charger is back", true)
    .option("--json", "print the answer as JSON, as GET /api/v1/chargers/ID/reboot", false)
    .action(async (charger: string, options: RebootOptions) => {
      done(await reboot(config(), charger, options));
    });
};
