import { hostname } from "node:os";

import type { Fleet } from "../../config/fleet.ts";
import { iso } from "../../domain/units.ts";
import {
  fleetPage,
  fleetRoutes,
  type FleetViews,
  SiteOfRequest,
  viewsOfSites,
} from "../../operator/http/fleet.ts";
import type { OperatorViews } from "../../operator/http/views.ts";
import type { Metrics } from "../../operator/metrics.ts";
import { messageOf } from "../../platform/text.ts";
import { faultOf } from "../../store/postgres/database.ts";
import type { FleetList, ReportedState } from "../../store/postgres/fleetList.ts";
import type { FleetWork } from "../../store/postgres/fleetWork.ts";
import type { Machine } from "../edges.ts";
import { type Act, recordInFleet } from "../offline.ts";
import { operatorListener } from "../real.ts";
import { reachablePage } from "../standIn.ts";
import type { LedSite, SiteAccess } from "./siteEdges.ts";

/** Puts what people change for the whole fleet on its record: who signs in, users and tokens. */
export class FleetRecord implements AsyncDisposable {
  readonly #fleet: Pick<Fleet, "shared">;
  readonly #machine: Machine;
  #waiting: Act[] = [];
  #running: Promise<void> | null = null;

  constructor(fleet: Pick<Fleet, "shared">, machine: Machine) {
    this.#fleet = fleet;
    this.#machine = machine;
  }

  /** Logs this now, and stores it soon. */
  add(message: string, facts: Act["facts"]): void {
    const { log, now } = this.#machine;
    log.info(facts, message);
    this.#waiting.push({ at: now(), message, facts });
    this.#running ??= this.#store().finally(() => (this.#running = null));
  }

  async #store(): Promise<void> {
    while (this.#waiting.length > 0) {
      const acts = this.#waiting;
      this.#waiting = [];
      const reason = await recordInFleet(this.#fleet.shared, this.#machine, acts).catch(messageOf);
      if (reason === null) continue;
      for (const { message, facts } of acts)
        this.#machine.log.error({ ...facts, reason }, `not on record: ${message}`);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#running;
  }
}

interface Shown {
  readonly record: FleetRecord;
  /** Name of this process. */
  readonly name: string;
  readonly list: FleetList;
  readonly work: Pick<FleetWork, "snapshot">;
  readonly led: ReadonlyMap<string, SiteAccess>;
  readonly metrics: Metrics;
}

/** The operator's listener of a fleet: the list of sites, and under `/sites/ID` each site that this process leads. */
export function fleetOperator(
  { shared }: Fleet,
  machine: Machine,
  shown: Shown,
): ReturnType<typeof operatorListener> {
  const { list, led, metrics, record } = shown;
  const request = new SiteOfRequest();
  const ready = (): boolean => [...led.values()].every(({ views }) => views !== null);
  const own: Partial<OperatorViews> = {
    ready,
    health: () => ({ fit: true, status: `leads ${led.size} sites` }),
    metrics: {
      contentType: metrics.contentType,
      text: async () => {
        // Left out while the database is away: an old number would hide sites that no process leads.
        const all = await list.counts().then(
          ({ sites }) => `${ALL}${sites}\n`,
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
  return operatorListener(
    shared,
    machine,
    Promise.resolve(views),
    {
      now: machine.now,
      record: (message, facts) => record.add(message, facts),
      fleet: { request, routes: fleetRoutes(fleetViews(machine, shown)) },
    },
    fleetPage,
  );
}

const fleetViews = (
  { now }: Pick<Machine, "now">,
  { name, list, work, led }: Omit<Shown, "metrics" | "record">,
): FleetViews => ({
  fleet: async () => {
    const [counts, { processes }] = await Promise.all([list.counts(), work.snapshot()]);
    return {
      now: iso(now()),
      ...counts,
      processes: processes.map((each) => ({ ...each, self: each.process === name })),
    };
  },
  sites: async (query) => {
    const rows = await list.list(query);
    return rows.map(({ state, page, ...row }) => {
      const { site, leader } = row;
      const views = led.get(site)?.views ?? null;
      const reached = leader === null ? null : reachablePage({ page, process: leader }, hostname());
      return {
        ...row,
        self: views !== null,
        ready: views?.ready() ?? null,
        chargers: state?.chargers ?? null,
        live: state?.live ?? null,
        alarms: state?.alarms ?? null,
        worst: state?.worst ?? null,
        stateAt: state?.at ?? null,
        page: reached === null ? null : `${reached}/sites/${encodeURIComponent(site)}/`,
      };
    });
  },
});

/** Longest time until a state is reported again that did not change, ms. */
const REPORT_AGAIN_MS = 60_000;

/** Reports the states of the sites of this process, those that changed. */
export class StateReports {
  readonly #list: Pick<FleetList, "report">;
  readonly #led: ReadonlyMap<string, LedSite>;
  readonly #monotonic: () => number;
  readonly #last = new WeakMap<LedSite, { readonly state: string; readonly at: number }>();

  constructor(list: Pick<FleetList, "report">, led: ReadonlyMap<string, LedSite>, monotonic: () => number) {
    this.#list = list;
    this.#led = led;
    this.#monotonic = monotonic;
  }

  async report(): Promise<void> {
    const at = this.#monotonic();
    const changed = [...this.#led.values()].flatMap((own) => {
      const state = stateOf(own);
      if (state === null) return [];
      const last = this.#last.get(own);
      const text = JSON.stringify(state);
      return last?.state === text && at - last.at < REPORT_AGAIN_MS ? [] : [{ own, state, text }];
    });
    await this.#list.report(changed.map(({ state }) => state));
    for (const { own, text } of changed) this.#last.set(own, { state: text, at });
  }
}

/** Null: it is not evaluated yet. */
function stateOf({ site, lease, app, views, failed }: LedSite): ReportedState | null {
  if (app?.state === undefined || views?.ready() !== true) return null;
  try {
    return { site, epoch: lease.epoch, ...app.state() };
  } catch (error) {
    failed.resolve(error);
    return null;
  }
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
