import { statSync } from "node:fs";

import { differences, readYaml } from "../config/document.ts";
import { pathText } from "../config/explain.ts";
import type { Environment } from "../config/fields/secret.ts";
import { loadSite } from "../daemon/chargerModels.ts";
import { fingerprintOf } from "../daemon/keptConfigurations.ts";
import type { Candidate, ConfigurationFile } from "../operator/siteConfigurations.ts";
import { readText, type SiteConfiguration } from "./configuration.ts";

/** A larger file takes so long to parse that control would wait for it. */
const MOST_COMPARED = 256 * 1024;
const MOST_SHOWN = 20;

/** A configuration with its text. */
export interface LoadedConfiguration extends SiteConfiguration {
  readonly text: string;
}

/** The file as it was read last. `version` changes with it. */
interface FileRead {
  readonly version: string;
  readonly text: string;
  readonly fingerprint: string;
}

/** The configuration file, compared with what runs. It is read and parsed again only after a change. */
export class ComparedFile {
  readonly #file: string;
  readonly #env: Environment;
  #read: FileRead | null = null;
  #compared: { readonly key: string; readonly found: ConfigurationFile } | null = null;

  constructor(file: string, env: Environment) {
    this.#file = file;
    this.#env = env;
  }

  /** Null: it cannot be read. */
  read(): FileRead | null {
    try {
      const { ino, size, mtimeNs } = statSync(this.#file, { bigint: true });
      const version = `${ino} ${size} ${mtimeNs}`;
      if (this.#read?.version === version) return this.#read;
      const text = readText(this.#file);
      this.#read = text === null ? null : { version, text, fingerprint: fingerprintOf(text) };
      return this.#read;
    } catch {
      return null;
    }
  }

  compareWith(running: LoadedConfiguration): ConfigurationFile {
    const read = this.read();
    if (read === null)
      return { ...SAME, file: this.#file, fingerprint: null, state: "unreadable", changes: null };
    const key = `${fingerprintOf(running.text)} ${read.version}`;
    if (this.#compared?.key !== key) this.#compared = { key, found: this.#compare(running, read) };
    return this.#compared.found;
  }

  #compare(running: LoadedConfiguration, { text, fingerprint }: FileRead): ConfigurationFile {
    const same = { ...SAME, file: this.#file, fingerprint };
    if (text === running.text) return same;
    if (text.length > MOST_COMPARED) return { ...same, state: "differs", changes: null };
    const { loaded } = loadSite(this.#file, this.#env, "needed", null, text);
    const mistakes = loaded.ok ? [] : loaded.mistakes.slice(0, MOST_SHOWN);
    const changes = differencesOf(running.text, text);
    // Comments and spaces make no difference.
    if (changes?.length === 0) return { ...same, mistakes };
    return {
      ...same,
      state: mistakes.length > 0 ? "broken" : "differs",
      changes: changes?.slice(0, MOST_SHOWN) ?? [],
      mistakes,
      ...consequencesOf(running, text, loaded),
    };
  }
}

const SAME = { state: "same", changes: [], mistakes: [], leaving: [], needsRestart: [] } as const;

/** Chargers that would leave with another text, and what only a restart of the process can put in force. */
export function consequencesOf(
  running: LoadedConfiguration,
  text: string,
  loaded: ReturnType<typeof loadSite>["loaded"],
): Pick<Candidate, "leaving" | "needsRestart"> {
  if (!loaded.ok) return { leaving: [], needsRestart: [] };
  const stay = new Set(loaded.config.chargers.map(({ id }) => id));
  const leaving = running.config.chargers.map(({ id }) => id).filter((id) => !stay.has(id));
  const isMoved = JSON.stringify(stateOf(text)) !== JSON.stringify(stateOf(running.text));
  return { leaving, needsRestart: isMoved ? ["state"] : [] };
}

/** The section `state`. */
function stateOf(text: string): unknown {
  const read = readYaml(text);
  const value: unknown = read.ok ? read.source.value : null;
  return typeof value === "object" && value !== null ? Reflect.get(value, "state") : null;
}

/** Null: one of them is no YAML, or too long to compare while chargers are controlled. */
export function differencesOf(before: string, after: string): ConfigurationFile["changes"] {
  if (Math.max(before.length, after.length) > MOST_COMPARED) return null;
  const [old, fresh] = [readYaml(before), readYaml(after)];
  if (!old.ok || !fresh.ok) return null;
  return differences(old.source.value, fresh.source.value).map(({ path, change }) => ({
    path: pathText(path),
    change,
  }));
}
