import { AsyncLocalStorage } from "node:async_hooks";
import * as z from "zod";

import { SEVERITIES } from "../../domain/alarm.ts";
import type { Json } from "../../domain/audit.ts";
import { count, moment, named } from "./holdAnswers.ts";
import type { PageFiles } from "./page.ts";
import { Refusal } from "./problem.ts";
import { pageQuery, route, type Route } from "./route.ts";
import { type OperatorViews, viewsBy } from "./views.ts";

const PATH = /^\/sites\/([^/?]+)(\/[^?]*)?(\?.*)?$/;

/** Null: it cannot be decoded. */
function decoded(part: string): string | null {
  try {
    return decodeURIComponent(part);
  } catch {
    return null;
  }
}

/** The site that a request names by the first part of its path, `/sites/ID/api/v1/...`. */
export class SiteOfRequest {
  readonly #storage = new AsyncLocalStorage<string>();

  /** The path without the site. A path that cannot be decoded stays as it is, and is refused by the listener. */
  readonly rewrite = (url: string): { readonly site: string | null; readonly url: string } => {
    const [, name, path = "/", query = ""] = PATH.exec(url) ?? [];
    const site = name === undefined ? null : decoded(name);
    return site === null ? { site, url } : { site, url: `${path}${query}` };
  };

  run(site: string, request: () => void): void {
    this.#storage.run(site, request);
  }

  get site(): string | null {
    return this.#storage.getStore() ?? null;
  }
}

/** Views of the site that a request names. `fleet`: of requests without a site. `find`: a text names the process with the site. */
export const viewsOfSites = (
  request: Pick<SiteOfRequest, "site">,
  fleet: Partial<OperatorViews>,
  find: (site: string) => OperatorViews | string,
): OperatorViews =>
  viewsBy((name) => {
    const { site } = request;
    if (site === null) {
      if (fleet[name] !== undefined) return fleet[name];
      throw new Refusal(404, "name a site: /sites/ID and then the path");
    }
    const found = find(site);
    if (typeof found === "string") throw new Refusal(404, found);
    return found[name];
  });

/** The sites of a fleet, for the list of its operator. */
export interface FleetViews {
  readonly fleet: () => Promise<Json>;
  readonly sites: (query: z.output<typeof sitesQuery>) => Promise<readonly Json[]>;
}

const sitesQuery = pageQuery.extend({
  text: z.string().exactOptional().describe("A part of the id of a site, or of the name of its leader."),
  state: z
    .enum(["unled", "alarms"])
    .exactOptional()
    .describe("unled: only sites that no process leads. alarms: only sites with open alarms."),
});

const fleet = named("Fleet", {
  now: moment,
  sites: count,
  unled: count.describe("Sites that no process leads."),
  alarms: count.describe("Sites with open alarms."),
  processes: z.array(
    named("FleetProcess", {
      process: z.string().describe("Host and process id."),
      self: z.boolean().describe("The process that answers."),
      led: count.describe("Sites that it leads."),
      most: count.describe("Sites that it may lead."),
      room: count.describe("Sites that it can start now."),
    }),
  ),
});

const fleetSite = named("FleetSite", {
  site: z.string(),
  leader: z.string().nullable().describe("Host and process id. null: no process leads the site."),
  since: moment.nullable().describe("Since when it leads."),
  epoch: count.describe("Number of its term."),
  vehicles: count.describe("Vehicles of the site."),
  rows: count.describe("Rows of the record."),
  putAt: moment.describe("Last put of the site file."),
  self: z.boolean().describe("True: the process that answers leads it."),
  ready: z
    .boolean()
    .nullable()
    .describe(
      "True: its chargers were evaluated since the start of the term. null: another process leads the site.",
    ),
  chargers: count.nullable(),
  live: count.nullable().describe("Chargers that are online and not silent."),
  alarms: count.nullable().describe("Open alarms."),
  worst: z.enum(SEVERITIES).nullable().describe("Severity of the gravest open alarm. null: there is none."),
  stateAt: moment
    .nullable()
    .describe(
      "Last report of chargers, live, alarms and worst by a leader: at least once a minute. null: none yet.",
    ),
  page: z
    .string()
    .nullable()
    .describe("Address of the page of the site at its leader. null: this machine reaches none."),
});

/** Routes of the listener of a fleet, beside those of each site. */
export const fleetRoutes = (views: FleetViews): readonly Route[] => [
  route({
    method: "GET",
    path: "/api/v1/fleet",
    role: "viewer",
    summary: "Only setpointd fleet: its processes and the number of its sites.",
    answer: fleet,
    handle: () => views.fleet(),
  }),
  route({
    method: "GET",
    path: "/api/v1/sites",
    role: "viewer",
    summary:
      "Only setpointd fleet: every site by id, which process leads it, since when, and how it is. The API of a site is under /sites/ID.",
    query: sitesQuery,
    answer: z.array(fleetSite),
    handle: ({ query }) => views.sites(query),
  }),
];

/** The page of a fleet: `/` is the list of its sites, and `/sites/ID/` the page of one. */
export const fleetPage = (built: PageFiles | null): PageFiles | null =>
  built === null ? null : { ...built, html: built.html.replace("<html ", "<html data-fleet ") };
