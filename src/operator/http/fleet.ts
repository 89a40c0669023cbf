import { AsyncLocalStorage } from "node:async_hooks";
import * as z from "zod";

import type { Json } from "../../domain/audit.ts";
import { Refusal } from "./problem.ts";
import { route, type Route } from "./route.ts";
import type { OperatorViews } from "./views.ts";

const PATH = /^\/sites\/([^/?]+)(\/[^?]*)?(\?.*)?$/;

/** The site that a request names by the first part of its path, `/sites/ID/api/v1/...`. */
export class SiteOfRequest {
  readonly #storage = new AsyncLocalStorage<string>();

  /** The path without the site. */
  readonly rewrite = (url: string): { readonly site: string | null; readonly url: string } => {
    const [, name, path = "/", query = ""] = PATH.exec(url) ?? [];
    return name === undefined
      ? { site: null, url }
      : { site: decodeURIComponent(name), url: `${path}${query}` };
  };

  run(site: string, request: () => void): void {
    this.#storage.run(site, request);
  }

  get site(): string | null {
    return this.#storage.getStore() ?? null;
  }
}

/** Views of the site that a request names. `fleet`: of requests without a site. `find`: a text says where the site is. */
export const viewsOfSites = (
  request: Pick<SiteOfRequest, "site">,
  fleet: Partial<OperatorViews>,
  find: (site: string) => OperatorViews | string,
): OperatorViews =>
  new Proxy({} as OperatorViews, {
    get: (_views, key) => {
      const { site } = request;
      if (site === null) {
        const own: unknown = Reflect.get(fleet, key);
        // A promise of the views is awaited, which asks for this member.
        if (own !== undefined || key === "then") return own;
        throw new Refusal(404, "name a site: /sites/ID and then the path");
      }
      const found = find(site);
      if (typeof found === "string") throw new Refusal(404, found);
      return Reflect.get(found, key);
    },
  });

const fleetSite = z.object({
  site: z.string(),
  leader: z.string().nullable().describe("Host and process id. null: no process leads the site."),
  since: z.string().nullable().describe("Since when it leads."),
  epoch: z.number().describe("Number of its term."),
  vehicles: z.number().describe("Vehicles of the site."),
  rows: z.number().describe("Rows of the record."),
  putAt: z.string().describe("When the site file was put last."),
  self: z.boolean().describe("True: the process that answers leads it."),
  ready: z
    .boolean()
    .nullable()
    .describe(
      "True: its chargers were evaluated since the start of the term. null: another process leads the site.",
    ),
  alarms: z.number().nullable().describe("Open alarms. null: another process leads the site."),
});

/** `GET /api/v1/sites`. */
export const siteListRoute = (list: () => Promise<readonly Json[]>): Route =>
  route({
    method: "GET",
    path: "/api/v1/sites",
    role: "viewer",
    summary: "Every site of the fleet: which process leads it, since when, and how it is.",
    answer: z.array(fleetSite),
    handle: list,
  });
