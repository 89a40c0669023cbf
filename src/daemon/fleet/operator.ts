import type { Fleet } from "../../config/fleet.ts";
import { SiteOfRequest, siteListRoute, viewsOfSites } from "../../operator/http/fleet.ts";
import type { OperatorViews } from "../../operator/http/views.ts";
import type { Metrics } from "../../operator/metrics.ts";
import { faultOf } from "../../store/postgres/database.ts";
import type { FleetSites } from "../../store/postgres/fleetSites.ts";
import type { Machine } from "../edges.ts";
import { operatorListener } from "../real.ts";
import type { SiteAccess } from "./siteEdges.ts";

interface Shown {
  readonly sites: FleetSites;
  readonly led: ReadonlyMap<string, SiteAccess>;
  readonly metrics: Metrics;
}

/** The operator's listener of a fleet: the list of sites, and under `/sites/ID` each site that this process leads. */
export function fleetOperator(
  { shared }: Fleet,
  machine: Machine,
  { sites, led, metrics }: Shown,
): ReturnType<typeof operatorListener> {
  const request = new SiteOfRequest();
  const ready = (): boolean => [...led.values()].every(({ views }) => views !== null);
  const own: Partial<OperatorViews> = {
    ready,
    health: () => ({ fit: true, words: `leads ${led.size} sites` }),
    metrics: {
      contentType: metrics.contentType,
      text: async () => {
        // Left out while the database is away: an old number would hide sites that no process leads.
        const all = await sites.count().then(
          (count) => `${ALL}${count}\n`,
          (error: unknown) => faultText(error),
        );
        return `${await metrics.text()}\n${LED}${led.size}\n${all}`;
      },
    },
  };
  const views = viewsOfSites(
    request,
    own,
    (site) =>
      led.get(site)?.views ?? `this process does not lead the site ${site}: GET /api/v1/sites shows who does`,
  );
  const list = async () => {
    const all = await sites.list();
    return all.map((row) => {
      const known = led.get(row.site)?.views ?? null;
      return {
        ...row,
        self: known !== null,
        ready: known?.ready() ?? null,
        alarms: known === null ? null : openAlarms(known),
      };
    });
  };
  return operatorListener(shared, machine, Promise.resolve(views), {
    now: machine.now,
    record: (message, facts) => machine.log.info(facts, message),
    fleet: { request, routes: [siteListRoute(list)] },
  });
}

function openAlarms({ alarms }: OperatorViews): number {
  const open = alarms.list({ state: "open" });
  return open.ok && Array.isArray(open.value) ? open.value.length : 0;
}

/** No lines for an error of the database. A bug is thrown. */
const faultText = (error: unknown): string => {
  faultOf(error);
  return "";
};

const ALL =
  "# HELP setpointd_fleet_sites Sites of the fleet in the database.\n# TYPE setpointd_fleet_sites gauge\nsetpointd_fleet_sites ";
const LED =
  "# HELP setpointd_sites_led Sites that this process leads.\n# TYPE setpointd_sites_led gauge\nsetpointd_sites_led ";
