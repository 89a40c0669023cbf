import { setImmediate } from "node:timers/promises";
import type { Logger } from "pino";

import type { Environment } from "../config/fields/secret.ts";
import { loadSite } from "../daemon/chargerModels.ts";
import {
  changing,
  chooseAtStart,
  fallBack,
  fingerprintOf,
  type KeptConfigurations,
  keptText,
  NOTHING_KEPT,
  readKept,
  running,
  storeKept,
  tried,
} from "../daemon/keptConfigurations.ts";
import { type Instant, instant } from "../domain/units.ts";
import type {
  Candidate,
  ConfigurationFile,
  KeptConfiguration,
  LastConfigurationChange,
  RunningConfiguration,
  SiteConfigurations,
} from "../operator/siteConfigurations.ts";
import {
  printMistakes,
  readText,
  UNCHANGED,
  type SiteConfiguration,
  stateFolderIn,
} from "./configuration.ts";
import {
  ComparedFile,
  consequencesOf,
  differencesOf,
  type LoadedConfiguration,
} from "./configurationFile.ts";

interface ConfigurationsOptions {
  /** Absolute path. */
  readonly file: string;
  readonly env: Environment;
  readonly now: () => Instant;
  readonly log: Logger;
}

/** The configurations of a site in one process: the one that runs, the file, those that ran, and a change that is under way. */
export class ProcessConfigurations implements SiteConfigurations {
  readonly #options: ConfigurationsOptions;
  readonly #state: string;
  #kept: KeptConfigurations;
  #onDisk: KeptConfigurations | null = null;
  /** The one that runs, or starts. */
  #site: LoadedConfiguration;
  /** Runs next. Null: no person has changed the configuration. */
  #next: LoadedConfiguration | null = null;
  /** Runs again if the changed one does not start. Null: there is none. */
  #before: LoadedConfiguration | null = null;
  #wanted = Promise.withResolvers<void>();
  /** A change has failed, which is not on record yet. */
  #hasFailed = false;
  #since: Instant;
  readonly #file: ComparedFile;
  /** Differing paths by the fingerprints of both. */
  readonly #paths = new Map<string, readonly string[] | null>();

  private constructor(options: ConfigurationsOptions, site: LoadedConfiguration, kept: KeptConfigurations) {
    this.#options = options;
    this.#site = site;
    this.#state = site.config.state;
    this.#kept = kept;
    this.#since = options.now();
    this.#file = new ComparedFile(options.file, options.env);
  }

  /** The configurations as this process starts with them. */
  static #of(
    options: ConfigurationsOptions,
    site: LoadedConfiguration,
    { known, kept }: { readonly known: KeptConfigurations; readonly kept: KeptConfigurations },
  ): ProcessConfigurations {
    const own = new ProcessConfigurations(options, site, kept);
    own.#onDisk = known;
    own.#hasFailed = known.change !== null && kept.change === null && kept.last !== known.last;
    if (kept !== known) own.#store(kept);
    return own;
  }

  /** The configuration that this process starts with. Null: it has mistakes, which have been printed. */
  static open(options: ConfigurationsOptions): ProcessConfigurations | null {
    const { file, env, log } = options;
    const text = readText(file);
    const fromFile = loadSite(file, env, "needed", null, text);
    const state = fromFile.loaded.ok ? fromFile.loaded.config.state : stateFolderIn(text ?? "", file, env);
    const read = text === null ? NOTHING_KEPT : readKept(state);
    if (typeof read === "string") log.warn({ reason: read }, "earlier configurations are not known");
    const known = typeof read === "string" ? NOTHING_KEPT : read;
    const choice = chooseAtStart(known, fingerprintOf(text ?? ""));
    const held = choice.text === null ? null : loadText(choice.text, options);
    if (held !== null && held.config.state === state) {
      const { change } = choice.kept;
      const about = { configuration: fingerprintOf(held.text), file: fingerprintOf(text ?? "") };
      if (change === null)
        log.warn(about, "another configuration than the file is in force: setpointd status");
      else log.warn(about, "a change of the configuration was interrupted: it is tried again");
      const own = ProcessConfigurations.#of(options, held, { known, kept: choice.kept });
      const before =
        change === null ? null : change.from === change.file ? text : keptText(known, change.from);
      own.#before = before === null ? null : loadText(before, options);
      return own;
    }
    if (choice.text !== null)
      log.error("the configuration in force cannot be used any more: the file is taken");
    const { loaded, profiles } = fromFile;
    if (!loaded.ok || text === null) {
      if (!loaded.ok) printMistakes(loaded.mistakes, file, { note: UNCHANGED });
      return null;
    }
    const kept = choice.text === null ? choice.kept : { ...known, change: null, inForce: null };
    return ProcessConfigurations.#of(options, { ...loaded, profiles, text }, { known, kept });
  }

  /** The configuration to start with. */
  get site(): SiteConfiguration {
    return this.#site;
  }

  /** True: a changed configuration has not proven yet that it runs. */
  get isChanging(): boolean {
    return this.#kept.change !== null;
  }

  /** Resolves when a person has changed the configuration: stop, and start with `site` after `taken`. */
  get wanted(): Promise<void> {
    return this.#wanted.promise;
  }

  /** The configuration that ran has stopped: `site` is the changed one. */
  taken(): void {
    this.#wanted = Promise.withResolvers();
    if (this.#next === null) return;
    [this.#before, this.#site, this.#next] = [this.#site, this.#next, null];
    this.#since = this.#options.now();
    this.#paths.clear();
    this.#store(tried(this.#kept));
  }

  /** The configuration runs. `tookMs`: without control. Returns the change that has ended. Null: none. */
  started(tookMs: number): LastConfigurationChange | null {
    const isEnd = this.#hasFailed || this.isChanging;
    this.#before = null;
    this.#hasFailed = false;
    const next = running(this.#kept, this.#site.text, this.#options.now(), tookMs);
    if (next !== this.#onDisk) this.#store(next);
    return isEnd ? this.last() : null;
  }

  /** The changed configuration did not start: `site` is the one before. Null: there is none. */
  failed(reason: string): LastConfigurationChange | null {
    if (this.#before === null || !this.isChanging) return null;
    this.#store(fallBack(this.#kept, reason));
    this.#hasFailed = true;
    [this.#site, this.#before] = [this.#before, null];
    this.#since = this.#options.now();
    return this.last();
  }

  readonly running = (): RunningConfiguration => {
    const fingerprint = fingerprintOf(this.#site.text);
    const { ran, inForce } = this.#kept;
    const known = ran[0]?.fingerprint === fingerprint ? ran[0] : null;
    const held = inForce?.fingerprint === fingerprint ? inForce : null;
    return {
      fingerprint,
      since: this.#since,
      by: known?.by ?? null,
      reason: known?.reason ?? null,
      because: held?.because ?? "file",
      beside: held?.file ?? null,
    };
  };

  readonly last = (): LastConfigurationChange | null => {
    const { change, last } = this.#kept;
    if (change === null) return last === null ? null : { ...last, at: instant(last.at) };
    const { kind, fingerprint, from, file, at, by, reason } = change;
    const about = { kind, fingerprint, from, file, at: instant(at), by, reason };
    return { ...about, result: "underWay", failure: null, tookMs: null };
  };

  readonly restartMs = (): number | null => this.#kept.last?.tookMs ?? null;

  readonly fileFingerprint = (): string | null => this.#file.read()?.fingerprint ?? null;

  readonly file = (): ConfigurationFile => this.#file.compareWith(this.#site);

  /** Logs the mistakes of the file after a SIGHUP. It puts no configuration in force, so they would show at the next start only. */
  warnOfFile(): void {
    const { log } = this.#options;
    const { state, file, mistakes } = this.file();
    if (state === "unreadable") log.warn({ file }, "SIGHUP: the configuration file cannot be read");
    for (const { path, line, found, expected } of mistakes)
      log.warn(
        { file, line, path },
        `SIGHUP: the configuration file has a mistake, and the next start refuses it: ${path}: found ${found}; expected ${expected}`,
      );
  }

  readonly kept = async (): Promise<readonly KeptConfiguration[]> => {
    const own = this.#site.text;
    const shown: KeptConfiguration[] = [];
    for (const { fingerprint, at, by, reason } of this.#kept.ran) {
      const key = `${fingerprintOf(own)} ${fingerprint}`;
      if (!this.#paths.has(key)) {
        const found = differencesOf(own, keptText(this.#kept, fingerprint) ?? "");
        this.#paths.set(key, found?.map(({ path }) => path) ?? null);
        // Each comparison parses two texts.
        await setImmediate();
      }
      shown.push({ fingerprint, at: instant(at), by, reason, paths: this.#paths.get(key) ?? null });
    }
    return shown;
  };

  readonly candidate = (wanted: string | null): Candidate | null => {
    const seen = this.#file.read();
    const text = wanted === null ? (seen?.text ?? null) : keptText(this.#kept, wanted);
    if (text === null || seen === null) return null;
    const { file, env } = this.#options;
    const { loaded, profiles } = loadSite(file, env, "needed", null, text);
    return {
      fingerprint: fingerprintOf(text),
      mistakes: loaded.ok ? [] : loaded.mistakes,
      ...consequencesOf(this.#site, text, loaded),
      begin: (change) => {
        if (!loaded.ok) return "it has mistakes";
        const from = fingerprintOf(this.#site.text);
        const next = changing(this.#kept, { ...change, text, from, file: seen.fingerprint });
        const refused = storeKept(this.#state, next);
        if (refused !== null) return refused;
        this.#kept = next;
        this.#onDisk = next;
        this.#next = { ...loaded, profiles, text };
        // The answer to the person leaves before the listeners close.
        setTimeout(this.#wanted.resolve, ANSWER_FIRST_MS);
        return null;
      },
    };
  };

  #store(next: KeptConfigurations): void {
    this.#kept = next;
    const refused = storeKept(this.#state, next);
    if (refused === null) this.#onDisk = next;
    else this.#options.log.error({ reason: refused }, "the configurations that ran cannot be stored");
  }
}

/** Time for an answer that is on its way, ms. */
const ANSWER_FIRST_MS = 200;

/** Null: it has mistakes. */
function loadText(
  text: string,
  { file, env }: Pick<ConfigurationsOptions, "file" | "env">,
): LoadedConfiguration | null {
  const { loaded, profiles } = loadSite(file, env, "needed", null, text);
  return loaded.ok ? { ...loaded, profiles, text } : null;
}
