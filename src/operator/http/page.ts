import type { FastifyReply, FastifyRequest } from "fastify";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import * as z from "zod";

import { answers } from "./answers.ts";
import { Refusal, valueOf } from "./problem.ts";
import { route, type Route } from "./route.ts";
import type { OperatorViews } from "./views.ts";

/** The page for people on site, as it was built. */
export interface PageFiles {
  /** HTML of every address of the page. */
  readonly html: string;
  /** Scripts, styles and images, by name. The names contain a hash of the content. */
  readonly assets: ReadonlyMap<string, Asset>;
}

interface Asset {
  readonly type: string;
  readonly plain: Buffer;
  /** Null: no browser has loaded it yet. */
  gzip: Buffer | null;
}

const TYPES: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
};

/** Addresses that show the page. What they show is decided in the browser. */
export const PAGE_PATHS = [
  "/",
  "/bays",
  "/vehicles/:id",
  "/events/:id",
  "/timeline",
  "/log",
  "/system",
  "/handover",
] as const;

/** Reads the built page. Null: it was not built. */
export function readPage(folder: string): PageFiles | null {
  try {
    const html = readFileSync(join(folder, "index.html"), "utf8");
    const assets = readdirSync(folder).flatMap((name) => {
      const type = TYPES[name.slice(name.lastIndexOf(".") + 1)];
      if (type === undefined) return [];
      return [[name, { type, plain: readFileSync(join(folder, name)), gzip: null }] as const];
    });
    return { html, assets: new Map(assets) };
  } catch {
    return null;
  }
}

/** Text as the content of an element, or of an attribute in quotes. */
export const escapeHtml = (text: string): string =>
  text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

const NOT_BUILT =
  '<!doctype html><html lang="en"><meta charset="utf-8"><title>setpointd</title><h1>setpointd</h1><p>The page is not built: npm run page. The API is at <a href="/api/v1/status">/api/v1/status</a>.</p></html>';

/** Sends the HTML of the page. `inside`: its content until the script runs. */
export function sendPage(page: PageFiles | null, reply: FastifyReply, inside: string | null): FastifyReply {
  const html = page?.html ?? NOT_BUILT;
  const start = html.indexOf("<noscript>");
  const end = html.indexOf("</noscript>") + "</noscript>".length;
  const whole = inside === null || start < 0 ? html : html.slice(0, start) + inside + html.slice(end);
  return reply.type("text/html; charset=utf-8").header("cache-control", "no-cache").send(whole);
}

/** The page and its files. They hold no data of the site, so they need no session. */
export const pageRoutes = (page: PageFiles | null, hasLogin: boolean): readonly Route[] => [
  ...[...PAGE_PATHS, ...(hasLogin ? [] : ["/login"])].map((path) =>
    route({
      method: "GET",
      path,
      role: null,
      summary: "The page for people on site.",
      query: z.looseObject({}),
      isPage: true,
      handle: ({ reply }) => sendPage(page, reply, null),
    }),
  ),
  route({
    method: "GET",
    path: "/assets/:name",
    role: null,
    summary: "Scripts, styles and images of the page.",
    isPage: true,
    handle: ({ params, request, reply }) => {
      const asset = page?.assets.get(params["name"] ?? "");
      if (asset === undefined) throw new Refusal(404, "not found");
      const isPacked = acceptsGzip(request);
      reply
        .type(asset.type)
        .header("cache-control", "public, max-age=31536000, immutable")
        .header("vary", "accept-encoding");
      if (isPacked) reply.header("content-encoding", "gzip");
      return reply.send(isPacked ? (asset.gzip ??= gzipSync(asset.plain, { level: 9 })) : asset.plain);
    },
  }),
];

const acceptsGzip = ({ headers }: FastifyRequest): boolean =>
  /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/.test(headers["accept-encoding"] ?? "");

const readingsQuery = z.strictObject({
  charger: z.string().exactOptional().describe("Id of a charger. Either this or vehicle."),
  vehicle: z.string().exactOptional().describe("Id of a vehicle."),
  from: z.string().exactOptional().describe("ISO 8601. Absent: a day before until."),
  until: z.string().exactOptional().describe("ISO 8601. Absent: now. At most 3 days after from."),
});

/** Requests of one address in a minute: each reads the readings of all chargers. */
const MAX_POWER = 30;

/** Readings for the charts of the page. */
export const chartRoutes = (views: Promise<OperatorViews>): readonly Route[] => [
  route({
    method: "GET",
    path: "/api/v1/readings",
    role: "viewer",
    summary:
      "Readings of a charger or a vehicle for a chart: at most 1440 of each kind, the largest of each stretch, as [ms, value].",
    query: readingsQuery,
    answer: answers.readings,
    handle: async ({ query }) => valueOf(await (await views).readings(query)),
  }),
  route({
    method: "GET",
    path: "/api/v1/power",
    role: "viewer",
    summary:
      "Power of the site in the past, in 121 samples: measured, and the most that the setpoints of then allowed.",
    query: readingsQuery.pick({ from: true, until: true }),
    answer: answers.sitePower,
    rateLimit: MAX_POWER,
    handle: async ({ query }) => valueOf(await (await views).sitePower(query)),
  }),
];

/** Support archives of one address in a minute: each takes seconds of CPU, and its doctor asks the partner. */
const MAX_ARCHIVES = 6;

/** The support archive, as `setpointd bundle` writes it. */
export const supportRoutes = (views: Promise<OperatorViews>): readonly Route[] => [
  route({
    method: "GET",
    path: "/api/v1/bundle",
    role: "integrator",
    summary:
      "A support archive without secrets (.tar.gz), as setpointd bundle writes it. Takes up to a minute.",
    answerType: "application/gzip",
    rateLimit: MAX_ARCHIVES,
    handle: async ({ person, reply }) => {
      const archive = await (await views).bundle(person.name);
      if (typeof archive === "string") throw new Refusal(503, archive);
      return reply
        .type("application/gzip")
        .header("content-disposition", 'attachment; filename="setpointd-bundle.tar.gz"')
        .send(archive);
    },
  }),
];
