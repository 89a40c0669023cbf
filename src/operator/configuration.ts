import { z } from "zod";

import { limited } from "../control/send/release.ts";
import type { ControlState } from "../control/state.ts";
import type { Json } from "../domain/audit.ts";
import type { Stored } from "../domain/changes.ts";
import { after, type Instant, iso } from "../domain/units.ts";
import {
  type Answer,
  conflict,
  type InputError,
  invalid,
  notStored,
  starting,
  mistakesIn,
} from "./answer.ts";
import { holdSchema } from "./holdRequest.ts";
import { type Candidate, configurationSentence, type SiteConfigurations } from "./siteConfigurations.ts";

const { reason } = holdSchema.shape;
const print = z
  .string()
  .regex(/^[0-9a-f]{12}$/, "12 hexadecimal digits, as setpointd rollback and GET configuration show them");
const force = z
  .boolean()
  .default(false)
  .describe("Also while an event is in force, a charger is on trial, or a limited charger would leave.");

/** The body of `POST configuration/apply`. */
export const applySchema = z.strictObject({
  reason,
  fingerprint: print
    .exactOptional()
    .describe("Of the file that was previewed: 409 if the file has changed since."),
  force,
});

/** The body of `POST configuration/rollback`. */
export const rollbackSchema = z.strictObject({
  reason,
  fingerprint: print.describe("Of a configuration that ran, see kept of GET configuration."),
  force,
});

/** Questions of a person about the configuration of the site: from the API and the command line. */
export interface ConfigurationApi {
  readonly get: () => Promise<Json>;
  /** The file is put in force. Answered before the restart. */
  readonly apply: (body: unknown, by: string) => Promise<Answer<Json>>;
  /** A configuration that ran is put in force again. */
  readonly rollback: (body: unknown, by: string) => Promise<Answer<Json>>;
}

interface ConfigurationParts {
  /** Undefined: the site has no file of its own. */
  readonly configurations: SiteConfigurations | undefined;
  readonly state: ControlState;
  readonly onStop: "keep" | "release" | "pause";
  /** Commits a row of the record. */
  readonly record: (message: string, facts: Json) => Promise<Stored>;
  readonly now: () => Instant;
  /** The first evaluation is done. */
  readonly isReady: () => boolean;
}

/** A thing that a restart cuts, or during which it would surprise. */
interface Interrupted {
  readonly kind: "event" | "trial" | "leaving";
  readonly subject: string;
  readonly sentence: string;
}

/** Events in force, trials that would be cut, and limited chargers that would leave. */
function interruptedNow(
  state: ControlState,
  leaving: readonly string[],
  now: Instant,
): readonly Interrupted[] {
  const found: Interrupted[] = [];
  for (const known of state.known.values()) {
    if (known.kind !== "live" || known.revision.start > now) continue;
    const { event, start } = known.revision;
    if (state.agenda.ofEvent(event.id).length === 0) continue;
    const name = event.name === "" ? "" : ` (${event.name})`;
    const end = state.wallClock(after(start, event.duration));
    found.push({
      kind: "event",
      subject: event.id,
      sentence: `event ${event.id}${name} is in force until ${end}`,
    });
  }
  for (const charger of state.locks.keys())
    found.push({ kind: "trial", subject: charger, sentence: `the trial of ${charger} would be cut` });
  for (const { command } of limited(state).filter(({ command }) => leaving.includes(command.charger))) {
    const sentence = `${command.charger} would leave the configuration while it is limited`;
    found.push({ kind: "leaving", subject: command.charger, sentence });
  }
  return found;
}

const MOST_SHOWN = 20;

/** Answers requests about the configuration of the site. */
export function configurationApi(parts: ConfigurationParts): ConfigurationApi {
  const { configurations } = parts;
  return {
    get: async () => (configurations === undefined ? NO_CONFIGURATION : await view(configurations, parts)),

    async apply(body, by) {
      const checked = applySchema.safeParse(body);
      if (!checked.success) return invalid(...mistakesIn(body, applySchema, EXPECTED));
      const own = changeable(parts);
      if ("ok" in own) return own;
      const candidate = own.candidate(null);
      if (candidate === null) return unreadable(own);
      const { fingerprint: previewed, ...asked } = checked.data;
      if (previewed !== undefined && previewed !== candidate.fingerprint)
        return conflict(
          "nothing was changed: the file has changed since it was previewed",
          "look at the differences again",
          { path: "fingerprint", found: previewed, expected: candidate.fingerprint },
        );
      return change(own, parts, candidate, { kind: "apply", ...asked, by });
    },

    async rollback(body, by) {
      const checked = rollbackSchema.safeParse(body);
      if (!checked.success) return invalid(...mistakesIn(body, rollbackSchema, EXPECTED));
      const own = changeable(parts);
      if ("ok" in own) return own;
      // Without the file the next start would know nothing of the rollback.
      if (own.fileFingerprint() === null) return unreadable(own);
      const { fingerprint, ...asked } = checked.data;
      const candidate = own.candidate(fingerprint);
      if (candidate !== null) return change(own, parts, candidate, { kind: "rollback", ...asked, by });
      const kept = await own.kept();
      return conflict("nothing was changed: this configuration is not kept", "", {
        path: "fingerprint",
        found: fingerprint,
        expected: `one of ${kept.map((each) => each.fingerprint).join(", ")}`,
      });
    },
  };
}

/** The answer to `GET configuration`. */
async function view(
  configurations: SiteConfigurations,
  { state, onStop, now }: ConfigurationParts,
): Promise<Json> {
  const { changes, mistakes, leaving, needsRestart, ...found } = configurations.file();
  const interrupts = interruptedNow(state, leaving, now());
  const { since, beside: _beside, ...running } = configurations.running();
  const last = configurations.last();
  return {
    ...found,
    paths: changes?.map(({ path }) => path) ?? null,
    changes: changes?.map((each) => ({ ...each })) ?? null,
    mistakes: mistakes.map(({ path, line, expected }) => ({ path, line, expected })),
    needsRestart: [...needsRestart],
    running: { ...running, since: iso(since), sentence: configurationSentence(configurations, state) },
    kept: (await configurations.kept()).map(({ at, paths, ...kept }) => ({
      ...kept,
      at: iso(at),
      paths: paths === null ? null : [...paths],
    })),
    interrupts: interrupts.slice(0, MOST_SHOWN).map((each) => ({ ...each })),
    onStop,
    limited: limited(state).length,
    restartMs: configurations.restartMs(),
    last: last === null ? null : { ...last, at: iso(last.at) },
  };
}

/** The configurations of the site, or why no other one can be put in force now. */
function changeable({ configurations, isReady }: ConfigurationParts): SiteConfigurations | Answer<Json> {
  if (configurations === undefined) return noFile;
  if (!isReady()) return starting;
  return configurations.last()?.result === "underWay" ? underWay : configurations;
}

/** A person asks for a configuration. */
interface AskedChange {
  readonly kind: "apply" | "rollback";
  readonly reason: string;
  readonly force: boolean;
  readonly by: string;
}

/** Puts a checked configuration in force. A text: the reason why not. */
async function change(
  configurations: SiteConfigurations,
  { state, record, now }: ConfigurationParts,
  candidate: Candidate,
  { kind, reason: why, force: forced, by }: AskedChange,
): Promise<Answer<Json>> {
  const { fingerprint, leaving } = candidate;
  const { fingerprint: from } = configurations.running();
  const interrupts = interruptedNow(state, leaving, now());
  const refusal = refusalOf(candidate, from, interrupts, forced);
  if (refusal !== null) return refusal;
  const did = kind === "apply" ? "applies the configuration file" : "goes back to the configuration";
  const stored = await record(`${by} ${did} ${fingerprint} in place of ${from}: ${why}`, {
    by,
    reason: why,
    configuration: kind,
    fingerprint,
    from,
    forced,
    interrupts: interrupts.slice(0, MOST_SHOWN).map(({ subject }) => subject),
  });
  if (!stored.ok) return notStored({ reason: stored.reason });
  const notBegun = candidate.begin({ kind, by, reason: why, at: now() });
  if (notBegun !== null) return notStored({ reason: notBegun });
  return {
    ok: true,
    value: {
      kind,
      fingerprint,
      from,
      restartMs: configurations.restartMs(),
      sentence: `setpointd starts again with configuration ${fingerprint}; if that does not start, ${from} runs again`,
    },
  };
}

/** Why a configuration is not put in force. Null: it is. `running`: fingerprint of the one that runs. */
function refusalOf(
  { fingerprint, mistakes, needsRestart }: Candidate,
  running: string,
  interrupts: readonly Interrupted[],
  forced: boolean,
): Answer<Json> | null {
  if (fingerprint === running && !forced)
    return conflict(
      "nothing was changed: this configuration runs already",
      "with force it starts again, and reads its profiles and secrets anew",
    );
  if (mistakes.length > 0)
    return conflict(
      "nothing was changed: the configuration has mistakes",
      `${mistakes.length} of them; setpointd check explains each`,
      ...mistakes.map(({ path, line, found, expected }): InputError => ({
        path: line === null ? path : `${path} (line ${line})`,
        found,
        expected,
      })),
    );
  if (needsRestart.length > 0)
    return conflict(
      "nothing was changed: the state cannot be moved while setpointd runs",
      "stop setpointd, move the state (setpointd state move), and start it again",
      ...needsRestart.map((path) => ({ path, found: "another one", expected: "the state that runs" })),
    );
  if (interrupts.length === 0 || forced) return null;
  return conflict(
    `nothing was changed: ${interrupts[0]?.sentence ?? ""}`,
    "wait until then, or send force: true",
    ...interrupts.slice(0, MOST_SHOWN).map(({ subject, sentence }) => ({
      path: "force",
      found: subject,
      expected: `true, as ${sentence}`,
    })),
  );
}

const unreadable = (configurations: SiteConfigurations): Answer<Json> =>
  conflict("nothing was changed: the configuration file cannot be read", configurations.file().file);

const noFile = conflict(
  "this site has no configuration file of its own",
  "a site of a fleet takes a new file without a restart: setpointd site put FILE -c fleet.yaml; the demo has none",
);

const underWay = conflict("another change of the configuration is under way", "wait for its result");

/** A site without a file of its own. */
const NO_CONFIGURATION: Json = {
  file: null,
  fingerprint: null,
  state: "same",
  paths: [],
  changes: [],
  mistakes: [],
  needsRestart: [],
  running: null,
  kept: [],
  interrupts: [],
  onStop: "keep",
  limited: 0,
  restartMs: null,
  last: null,
};

/** Sentences that explain a mistake, by member. */
const EXPECTED: Readonly<Record<string, string>> = {
  reason: "why, in 1 to 200 characters",
  fingerprint: "12 hexadecimal digits, as setpointd rollback and GET configuration show them",
  force: "true or false",
};
