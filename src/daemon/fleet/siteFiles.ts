import type { ProfileChecks } from "../../config/checks.ts";
import type { Mistake } from "../../config/explain.ts";
import { type Fleet, loadSiteFile, type SiteLoaded } from "../../config/fleet.ts";
import type { Config } from "../../config/schema.ts";
import { hasEnded } from "../../control/ingest/absence.ts";
import type { StoredState } from "../../domain/changes.ts";
import { isToBeFreed, reallySent } from "../../domain/command.ts";
import type { Instant } from "../../domain/units.ts";
import { Database, faultOf } from "../../store/postgres/database.ts";
import { FleetList, type SiteRow } from "../../store/postgres/fleetList.ts";
import {
  editedFile,
  FleetSites,
  STORED_MEANWHILE,
  type VehicleTaken,
} from "../../store/postgres/fleetSites.ts";
import { remedyOf } from "../../store/postgres/inspect.ts";
import { migrate, versionOf } from "../../store/postgres/schema.ts";
import type { Machine } from "../edges.ts";

/** A file of a site, checked. */
export interface SiteFileRead {
  readonly file: string;
  readonly loaded: SiteLoaded;
}

/** Reads and checks the files of sites. */
export const readSiteFiles = (
  fleet: Fleet,
  files: readonly string[],
  checks: ProfileChecks,
): readonly SiteFileRead[] => files.map((file) => ({ file, loaded: loadSiteFile(fleet, file, checks) }));

/** Why sites cannot be stored: mistakes of a file, or a sentence. */
export type PutRefused =
  | { readonly kind: "mistakes"; readonly file: string; readonly mistakes: readonly Mistake[] }
  | { readonly kind: "reason"; readonly reason: string };

/** Longest wait of a verb for the database, ms. */
const PATIENCE_MS = 10_000;
/** Tries to remove a site, or chargers of one, whose leader stores something meanwhile. */
const MOST_TRIES = 20;

/** Sites of a fleet for a verb. */
export class SiteFiles implements AsyncDisposable {
  readonly #database: Database;
  readonly #sites: FleetSites;
  readonly #list: FleetList;
  readonly #now: () => Instant;
  /** The database has no schema, and a verb that reads makes none. */
  readonly #isEmpty: boolean;

  private constructor(database: Database, sites: FleetSites, now: () => Instant, isEmpty: boolean) {
    this.#isEmpty = isEmpty;
    this.#database = database;
    this.#sites = sites;
    this.#list = new FleetList(database);
    this.#now = now;
  }

  /** `makes` false: a missing schema is not made. A text: the reason why the database cannot be used. */
  static async open(
    fleet: Fleet,
    machine: Pick<Machine, "now" | "randomBytes" | "log">,
    makes = true,
  ): Promise<SiteFiles | string> {
    const { url, schema } = fleet.database;
    const database = new Database({ url, schema, patience: PATIENCE_MS, log: machine.log });
    try {
      const isEmpty = !makes && (await versionOf(database)) === null;
      const unusable = isEmpty ? null : await migrate(database, schema);
      if (unusable === null)
        return new SiteFiles(
          database,
          new FleetSites(database, fleet.database.siteKeys, machine.randomBytes),
          machine.now,
          isEmpty,
        );
      await database[Symbol.asyncDispose]();
      return unusable;
    } catch (error) {
      await database[Symbol.asyncDispose]();
      const { reason, code } = faultOf(error);
      return `state.postgres.url: ${reason}; expected ${remedyOf(code)}`;
    }
  }

  /** Stores all of these sites or none. */
  async put(read: readonly SiteFileRead[]): Promise<readonly PutRefused[]> {
    for (let tries = 1; ; tries += 1) {
      const refused = await this.#putOnce(read);
      const isLate = refused.some((each) => each.kind === "reason" && each.reason === STORED_MEANWHILE);
      if (!isLate || tries === MOST_TRIES) return refused;
    }
  }

  async #putOnce(read: readonly SiteFileRead[]): Promise<readonly PutRefused[]> {
    const refused: PutRefused[] = [];
    const puts: { readonly file: string; readonly config: Config; readonly value: unknown }[] = [];
    const commitsOf = new Map<string, number>();
    for (const { file, loaded } of read) {
      if (!loaded.ok) refused.push({ kind: "mistakes", file, mistakes: loaded.mistakes });
      else puts.push({ file, config: loaded.config, value: loaded.value });
    }
    const fileOf = new Map<string, string>();
    const ownerOf = new Map<string, string>();
    for (const { file, config } of puts) {
      const { id } = config.site;
      const other = fileOf.get(id);
      if (other !== undefined)
        refused.push(
          mistake(file, "site.id", `${id}, which ${other} has too`, "an id of its own for each site"),
        );
      fileOf.set(id, file);
      config.vehicles.forEach((vehicle, index) => {
        const owner = ownerOf.get(vehicle.id);
        if (owner !== undefined && owner !== id)
          refused.push(takenMistake(file, index, { vehicle: vehicle.id, site: id, other: owner }));
        ownerOf.set(vehicle.id, id);
      });
      const { lacking, commits } = await this.#lacking(file, config);
      refused.push(...lacking);
      if (commits !== null) commitsOf.set(id, commits);
    }
    if (refused.length > 0) return refused;
    const answer = await this.#sites
      .put(
        puts.map(({ config, value }) => ({
          site: config.site.id,
          file: JSON.stringify(value),
          vehicles: config.vehicles.map(({ id }) => id),
          ...leftOut(commitsOf.get(config.site.id)),
        })),
      )
      .catch((error: unknown) => faultOf(error).reason);
    if (answer === null) return [];
    if (typeof answer === "string") return [{ kind: "reason", reason: answer }];
    return answer.map((taken) => {
      const put = puts.find(({ config }) => config.site.id === taken.site);
      const index = put?.config.vehicles.findIndex(({ id }) => id === taken.vehicle) ?? 0;
      return takenMistake(put?.file ?? "", index, taken);
    });
  }

  /**
   * Chargers and vehicles that running events need, and that the new file of their site lacks. `commits`: the last commit
   * before that was read. Null: the file leaves out no charger.
   */
  async #lacking(
    file: string,
    { site, chargers, vehicles }: Config,
  ): Promise<{ readonly lacking: readonly PutRefused[]; readonly commits: number | null }> {
    try {
      const commits = await this.#sites.commitsOf(site.id);
      const state = await this.#sites.stateOf(site.id, this.#now());
      if (state === null) return { lacking: [], commits: null };
      if (typeof state === "string") return because(state);
      const before = await this.#fileOf(site.id);
      const kept = new Set<string>(chargers.map(({ id }) => id));
      const missing = missingIn(
        state,
        {
          chargers: kept,
          vehicles: new Set(vehicles.map(({ id }) => id)),
          vehiclesBefore: new Set(idsIn(before, "vehicles")),
        },
        this.#now(),
      );
      return {
        lacking: missing.map(({ path, found, expected }) => mistake(file, path, found, expected)),
        commits: idsIn(before, "chargers").every((charger) => kept.has(charger)) ? null : commits,
      };
    } catch (error) {
      return because(faultOf(error).reason);
    }
  }

  /** The reason why not. Null: it is removed. */
  async remove(site: string): Promise<string | null> {
    if (this.#isEmpty) return `there is no site ${site}`;
    try {
      for (let tries = 0; tries < MOST_TRIES; tries += 1) {
        const commits = await this.#sites.commitsOf(site);
        const state = await this.#sites.stateOf(site, this.#now());
        if (commits === null || state === null) return `there is no site ${site}`;
        if (typeof state === "string") return state;
        const none: ReadonlySet<string> = new Set();
        const vehiclesBefore = new Set(idsIn(await this.#fileOf(site), "vehicles"));
        const [needed] = missingIn(state, { chargers: none, vehicles: none, vehiclesBefore }, this.#now());
        if (needed !== undefined) return `${needed.found}: ${needed.expected}`;
        // An event that its leader stored meanwhile may limit a charger.
        if (await this.#sites.remove(site, commits)) return null;
      }
      return "its leader stores something all the time: try again";
    } catch (error) {
      return faultOf(error).reason;
    }
  }

  /** The stored file. One without a vehicle where there is none that can be used. */
  async #fileOf(site: string): Promise<string> {
    const stored = (await this.#sites.read([site])).get(site);
    return typeof stored === "object" ? (stored.file ?? "{}") : "{}";
  }

  /** A text: the reason why they cannot be read. */
  async list(): Promise<readonly SiteRow[] | string> {
    if (this.#isEmpty) return [];
    return this.#list.list().catch((error: unknown) => faultOf(error).reason);
  }

  /** The file of a site as JSON. Null: there is no such site. */
  async show(
    site: string,
  ): Promise<
    { readonly ok: true; readonly file: string | null } | { readonly ok: false; readonly reason: string }
  > {
    if (this.#isEmpty) return { ok: true, file: null };
    try {
      const stored = (await this.#sites.read([site])).get(site);
      if (stored === undefined) return { ok: true, file: null };
      if (typeof stored === "string") return { ok: false, reason: stored };
      return stored.file === null ? { ok: false, reason: editedFile(site) } : { ok: true, file: stored.file };
    } catch (error) {
      return { ok: false, reason: faultOf(error).reason };
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#database[Symbol.asyncDispose]();
  }
}

const mistake = (file: string, path: string, found: string, expected: string): PutRefused => ({
  kind: "mistakes",
  file,
  mistakes: [{ path, line: null, column: null, found, expected }],
});

const takenMistake = (file: string, index: number, { vehicle, other }: VehicleTaken): PutRefused =>
  mistake(
    file,
    `vehicles[${index}].id`,
    `${vehicle}, which the site ${other} has too`,
    `a vehicle in one site only: remove it from ${other} first, or put both files at once`,
  );

const idsIn = (file: string, list: "chargers" | "vehicles"): readonly string[] => {
  const { [list]: all = [] } = JSON.parse(file) as {
    readonly [each in typeof list]?: readonly { readonly id: unknown }[];
  };
  return all.map(({ id }) => String(id));
};

const because = (reason: string) => ({ lacking: [{ kind: "reason", reason } as const], commits: null });

const leftOut = (commits: number | undefined) => (commits === undefined ? {} : { commits });

interface NewFile {
  readonly chargers: ReadonlySet<string>;
  readonly vehicles: ReadonlySet<string>;
  /** Vehicles that the site has until now. */
  readonly vehiclesBefore: ReadonlySet<string>;
}

/** Chargers that are limited, and vehicles of open events, that a new file of the site leaves out. */
export function missingIn(
  { commands, events }: Pick<StoredState, "commands" | "events">,
  { chargers, vehicles, vehiclesBefore }: NewFile,
  now: Instant,
): readonly Pick<Mistake, "path" | "found" | "expected">[] {
  const limited = commands
    .map(reallySent)
    .filter((sent) => sent !== null)
    .filter(isToBeFreed)
    .map(({ command }) => command.charger)
    .filter((charger) => !chargers.has(charger))
    .map((charger) => ({
      path: "chargers",
      found: `no ${charger}, which is limited now`,
      expected: `${charger} until it is released: exempt it at the page of the site, or wait for the end of the event`,
    }));
  const targeted = events.flatMap((event) => {
    if (event.kind !== "live" || hasEnded(event, now)) return [];
    return event.revision.event.targets
      .flatMap(({ values }) => values)
      .filter((vehicle) => vehiclesBefore.has(vehicle) && !vehicles.has(vehicle))
      .map((vehicle) => ({
        path: "vehicles",
        found: `no ${vehicle}, a target of the event ${event.id}, which is not over`,
        expected: `${vehicle} until that event is over`,
      }));
  });
  return [...limited, ...targeted];
}
