import type { Json } from "../domain/audit.ts";
import { formatLeader, type LeaderSeen, type LeaderView, shownLeader } from "../domain/leadership.ts";
import { type Instant, iso } from "../domain/units.ts";
import { escapeHtml, type PageFiles } from "./http/page.ts";
import { Refusal } from "./http/problem.ts";
import { type OperatorViews, viewsBy } from "./http/views.ts";

/** Facts of a process that stands by while another one leads its site. */
export interface StandIn extends LeaderSeen {
  readonly site: string;
  readonly timezone: string;
  /** Since when it stands by. */
  readonly since: Instant;
  /** Leases that it lost before. */
  readonly leasesLost: number;
}

/** E.g. `this gateway stands by: gw-1 4711 leads the site depot since ..., and its page is https://gw-1:8080`. */
export function standInSentence({ site, leader, fault }: StandIn): string {
  const known = leader === null ? null : formatLeader(leader, site);
  const why =
    fault === null
      ? (known ?? `no process leads the site ${site} now`)
      : `the database does not answer (${fault})${known === null ? "" : `; by its last answer ${known}`}`;
  return `this gateway stands by: ${why}`;
}

/** `GET /api/v1/status` of a stand-in. */
export const standInStatus = (now: Instant, standIn: StandIn): Json => {
  const { site, timezone, since, leader, fault } = standIn;
  return {
    site,
    timezone,
    startedAt: iso(since),
    now: iso(now),
    ready: false,
    sentence: standInSentence(standIn),
    leader: leader === null ? null : shownLeader(leader),
    database: fault,
  };
};

/** Text of a refused request. */
export const standInRefusal = (standIn: StandIn): string =>
  `${standInSentence(standIn)}. Only the leader answers this`;

/** Seconds until a client may ask again. A stand-in leads within the length of a lease. */
const RETRY_AFTER = "5";

/** Views of a stand-in: its health, its status and two metrics. Every other request is refused with the leader's name. */
export function standInViews(standIn: () => StandIn, now: () => Instant): OperatorViews {
  const own: Partial<OperatorViews> = {
    ready: () => false,
    health: () => ({ fit: true, status: "standing by" }),
    status: () => standInStatus(now(), standIn()),
    metrics: {
      contentType: "text/plain; version=0.0.4; charset=utf-8",
      text: async () => metricsOf(standIn()),
    },
  };
  return viewsBy((name) => {
    if (own[name] !== undefined) return own[name];
    // 503: a reverse proxy in front of both gateways asks the other one.
    throw new Refusal(503, standInRefusal(standIn()), { headers: { "retry-after": RETRY_AFTER } });
  });
}

const metricsOf = ({ leasesLost }: StandIn): string =>
  [
    "# HELP setpointd_sites_led Sites that this process leads and may command now.",
    "# TYPE setpointd_sites_led gauge",
    "setpointd_sites_led 0",
    "# HELP setpointd_lease_lost_total Leases that this process lost to another one.",
    "# TYPE setpointd_lease_lost_total counter",
    `setpointd_lease_lost_total ${leasesLost}`,
    "",
  ].join("\n");

/** Seconds between two loads of the page. */
const REFRESH = 5;

/** The page of a stand-in at every address: the leader, and a link to its page. It needs no script. */
export const standInPage = (built: PageFiles | null, standIn: () => StandIn): PageFiles => {
  const assets: PageFiles["assets"] = built?.assets ?? new Map();
  const style = [...assets.keys()].find((name) => name.endsWith(".css"));
  return {
    assets,
    // Made for each request.
    get html() {
      const { site, leader } = standIn();
      const link = leader?.page ?? null;
      return [
        `<!doctype html><html lang="en"><head><meta charset="utf-8">`,
        `<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">`,
        `<meta http-equiv="refresh" content="${REFRESH}"><title>${escapeHtml(site)}: stand-in</title>`,
        style === undefined ? "" : `<link rel="stylesheet" href="/assets/${style}">`,
        `</head><body><main><h1>${escapeHtml(site)}: ${escapeHtml(title(leader))}</h1>`,
        `<p>${escapeHtml(sentenceCase(standInSentence(standIn())))}.</p>`,
        link === null
          ? "<p>The page of the site is on the gateway that leads.</p>"
          : `<p><a href="${escapeHtml(link)}">Open the page of the leader</a></p>`,
        `<p>When this gateway leads, the page of the site opens here.</p><noscript></noscript></main></body></html>`,
      ].join("");
    },
  };
};

const title = (leader: LeaderView | null): string =>
  leader === null ? "stand-in" : `stand-in of ${leader.process}`;

const sentenceCase = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
