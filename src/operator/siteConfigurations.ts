import type { ControlState } from "../control/state.ts";
import type { Json } from "../domain/audit.ts";
import { type Instant, iso } from "../domain/units.ts";

/** The configuration file as it is now, compared with what runs. No values: they may be secrets. */
export interface ConfigurationFile {
  readonly file: string;
  /** Fingerprint of its text. Null: it cannot be read. */
  readonly fingerprint: string | null;
  /** `broken`: it differs and has mistakes, so it cannot be applied. */
  readonly state: "same" | "differs" | "broken" | "unreadable";
  /** Some of the places that differ. Null: not compared. */
  readonly changes:
    | readonly { readonly path: string; readonly change: "added" | "removed" | "changed" }[]
    | null;
  readonly mistakes: readonly Pick<Mistake, "path" | "line" | "found" | "expected">[];
  /** Chargers that run and that it lacks. */
  readonly leaving: readonly string[];
  /** Differing paths that only a restart of the process can put in force. */
  readonly needsRestart: readonly string[];
}

interface Mistake {
  readonly path: string;
  readonly line: number | null;
  readonly found: string;
  readonly expected: string;
}

/** A configuration in force. */
export interface RunningConfiguration {
  readonly fingerprint: string;
  readonly since: Instant;
  /** Null: it runs since a start, no person applied it. */
  readonly by: string | null;
  readonly reason: string | null;
  /** `file`: a restart takes the file. Otherwise it stays in force until the file changes, or is applied. */
  readonly because: "file" | "rollback" | "fallback";
  /** Fingerprint of the file that does not end it. Null: it is the file. */
  readonly beside: string | null;
}

/** The last time that a person changed the configuration. */
export interface LastConfigurationChange {
  readonly kind: "apply" | "rollback";
  readonly fingerprint: string;
  readonly from: string;
  /** Fingerprint of the file at that time. */
  readonly file: string;
  readonly result: "underWay" | "running" | "fellBack";
  readonly failure: string | null;
  /** Ms without control. Null: not measured. */
  readonly tookMs: number | null;
  readonly at: Instant;
  readonly by: string;
  readonly reason: string;
}

/** A configuration that ran. */
export interface KeptConfiguration {
  readonly fingerprint: string;
  readonly at: Instant;
  readonly by: string | null;
  readonly reason: string | null;
  /** Some of the paths that differ from what runs. Null: not compared. */
  readonly paths: readonly string[] | null;
}

/** A configuration that was read and checked whole, to be put in force. */
export interface Candidate {
  readonly fingerprint: string;
  readonly mistakes: readonly Mistake[];
  /** Chargers that run and that it lacks. */
  readonly leaving: readonly string[];
  /** Differing paths that only a restart of the process can put in force. */
  readonly needsRestart: readonly string[];
  /** Puts it in force. Returns at once; a text is the reason why it cannot be stored, and nothing happens. */
  readonly begin: (change: Pick<LastConfigurationChange, "kind" | "by" | "reason" | "at">) => string | null;
}

/** The configuration file of a site, and the configurations that ran. */
export interface SiteConfigurations {
  readonly file: () => ConfigurationFile;
  /** Fingerprint of the file now. Null: it cannot be read. */
  readonly fileFingerprint: () => string | null;
  readonly running: () => RunningConfiguration;
  /** The newest first, the running one included. */
  readonly kept: () => Promise<readonly KeptConfiguration[]>;
  readonly last: () => LastConfigurationChange | null;
  /** Ms without control that a change takes, as measured. Null: not yet. */
  readonly restartMs: () => number | null;
  /** `fingerprint` null: the file. The answer is null where there is none to read. */
  readonly candidate: (fingerprint: string | null) => Candidate | null;
}

/** The configuration that runs, and what a restart will take, in a sentence. */
export function configurationSentence(
  configurations: SiteConfigurations,
  { wallClock }: Pick<ControlState, "wallClock">,
): string {
  const { fingerprint, because, by, since, beside } = configurations.running();
  const file = configurations.fileFingerprint();
  const runs = `configuration ${fingerprint} runs since ${wallClock(since)}`;
  if (file === null) return `${runs}; the file cannot be read, so a restart would fail`;
  if (file === fingerprint) return `${runs}, as the file has it`;
  if (because === "file") return `${runs}; the file differs: apply it, or a restart takes it`;
  const why =
    because === "rollback"
      ? `${by ?? "a person"} went back to it`
      : `${configurations.last()?.fingerprint ?? "the one of the file"} did not start`;
  return file === beside
    ? `${runs}: ${why}; the file differs, and a restart keeps ${fingerprint} until the file changes or is applied`
    : `${runs}: ${why}; the file has changed since: apply it, or a restart takes it`;
}

/** Row of the status. Null: the site has no file of its own. */
export function configurationStatus(
  configurations: SiteConfigurations | undefined,
  state: Pick<ControlState, "wallClock">,
): Json {
  if (configurations === undefined) return null;
  const { fingerprint, since } = configurations.running();
  const file = configurations.fileFingerprint();
  return {
    fingerprint,
    since: iso(since),
    file: file === null ? "unreadable" : file === fingerprint ? "same" : "differs",
    sentence: configurationSentence(configurations, state),
  };
}

/** A configuration that did not start, while its file is still there. Null: none. */
export function configurationFault(
  configurations: SiteConfigurations | undefined,
): { readonly since: Instant; readonly message: string } | null {
  const last = configurations?.last() ?? null;
  if (last?.result !== "fellBack" || configurations?.fileFingerprint() !== last.file) return null;
  return {
    since: last.at,
    message: `configuration ${last.fingerprint} did not start, so ${last.from} runs again: ${last.failure ?? ""}`,
  };
}
