import type { Config } from "../../config/schema.ts";
import type { Opened } from "../../domain/store.ts";
import type { OperatorViews } from "../../operator/http/views.ts";
import type { Metrics } from "../../operator/metrics.ts";
import type { WebhookOptions } from "../../vtn/webhook.ts";
import type { Edges, EventService, Machine, Partner } from "../edges.ts";

/** Edges that the sites of one process share. */
export interface SharedEdges {
  /** Clients of the partner's account. */
  readonly partner: Partner;
  readonly metrics: Metrics;
  readonly webhookPort: number | null;
  readonly operatorPort: number;
  readonly accessFault: () => string | null;
}

/** A site as the fleet reaches it. */
export interface SiteAccess {
  ingest: WebhookOptions["ingest"] | null;
  views: OperatorViews | null;
}

const NOTHING_REFUSED = { refused: () => ({}), refusedDeliveries: () => null };

/**
 * Edges of a site of a fleet: the real ones for time and chargers, and the shared ones for the partner and the
 * listeners. `own`: those of a single site.
 */
export function siteEdges(
  own: Edges,
  shared: SharedEdges,
  site: {
    readonly config: Config;
    readonly open: () => Promise<Opened>;
    readonly lists: Pick<EventService, "list" | "event" | "settled">;
    readonly access: SiteAccess;
    readonly onControlFailed: (cause: unknown) => void;
    readonly log: Machine["log"];
  },
): Edges {
  const { partner } = shared;
  const nothing = { [Symbol.asyncDispose]: async () => {} };
  return {
    ...own,
    log: site.log,
    onControlFailed: site.onControlFailed,
    metrics: shared.metrics,
    openStore: site.open,
    partner: () => ({
      ...partner,
      ...site.lists,
      reports: { ...partner.reports, close: async () => {} },
      ...nothing,
    }),
    webhook:
      site.config.webhook === null
        ? null
        : async ({ ingest }) => {
            site.access.ingest = ingest;
            return { port: shared.webhookPort ?? 0, renew: () => null, ...NOTHING_REFUSED, ...nothing };
          },
    operator: async (views) => {
      void views.then((known) => (site.access.views = known));
      return {
        port: shared.operatorPort,
        renew: () => null,
        accessFault: shared.accessFault(),
        ...nothing,
      };
    },
    page: () => null,
    // The sockets belong to a process with one site.
    controlSocket: async () => nothing,
    statusSocket: async () => "a fleet has none",
  };
}
