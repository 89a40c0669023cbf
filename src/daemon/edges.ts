import type { Logger } from "pino";

import type { Discarded, HoldMessage } from "../chargers/broker/address.ts";
import type { BrokerTiming } from "../chargers/broker/createClient.ts";
import type { ChargerConnections } from "../chargers/connections.ts";
import type { Profile } from "../chargers/profile/schema.ts";
import type { Json } from "../domain/audit.ts";
import type { Delivery, Fetched } from "../domain/delivery.ts";
import type { PriceQuery } from "../domain/prices.ts";
import type { PostAnswer } from "../domain/report.ts";
import type { Opened } from "../domain/store.ts";
import type { ChargerMessage } from "../domain/telemetry.ts";
import type { ChargerId, EventId, Instant, Millis } from "../domain/units.ts";
import type { ControlApi } from "../operator/controlSocket.ts";
import type { SiteConfigurations } from "../operator/siteConfigurations.ts";
import type { statusSocket } from "../operator/statusSocket.ts";
import type { ListenerOptions, OperatorListener } from "../operator/http/server.ts";
import type { OperatorViews } from "../operator/http/views.ts";
import type { Metrics } from "../operator/metrics.ts";
import type { BelievedClock } from "../platform/clock.ts";
import type { SharedPlaces, SharedRoom } from "../platform/cooperative.ts";
import type { Report } from "../reporting/report.ts";
import type { AlarmReceivers } from "./receivers.ts";
import type { PriceClient } from "../vtn/prices.ts";
import type { ReportRequests } from "../vtn/reports.ts";
import type { WebhookListener, WebhookOptions } from "../vtn/webhook.ts";

/** Time, chance and log of the machine. */
export interface Machine {
  readonly now: () => Instant;
  /** Monotonic clock, ms. */
  readonly monotonic: () => Millis;
  /** In [0, 1). */
  readonly random: () => number;
  readonly randomBytes: (count: number) => Buffer;
  readonly log: Logger;
}

/** The clock that the daemon goes by. */
export type SiteClock = Pick<BelievedClock, "now" | "isDoubted" | "believe">;

/** The partner's event service. */
export interface EventService {
  readonly list: () => Promise<Fetched>;
  readonly event: (id: EventId) => Promise<Fetched>;
  /** See `PollingPorts`. */
  readonly wantList?: () => void;
  /** Call after the commit: the same list is then answered with "unchanged". */
  readonly settled: (delivery: Delivery) => void;
  /** Spends one of the hour's requests beside the list. False: none is left. */
  readonly mayAskMore: () => boolean;
  /** The next request for a token does not wait for the back-off. */
  readonly endBackoff: () => void;
}

/** The partner over HTTP. */
export interface Partner extends EventService, AsyncDisposable {
  /** Ms since the access token was issued. Null: no token. */
  readonly tokenAge: () => number | null;
  /** End of the access token in use. Null: no token. */
  readonly tokenUntil: () => Instant | null;
  readonly prices: { readonly ask: (query: PriceQuery) => ReturnType<PriceClient["ask"]> };
  readonly reports: ReportService & {
    /** Aborts the report that is on its way. */
    readonly close: () => Promise<void>;
    /** Null: far below the limit of requests in an hour. */
    readonly nearlySpent: () => ReportRequests | null;
  };
}

/** The partner's service for reports. */
export interface ReportService {
  /** A report as the partner reads it. */
  readonly write: (report: Report) => Json;
  readonly post: (body: string) => Promise<PostAnswer>;
}

export interface PartnerOptions {
  /** The clock that the daemon goes by. */
  readonly now: () => Instant;
  readonly onNearlySpent: (use: ReportRequests) => void;
}

/** The chargers over their brokers. */
export interface ConnectedChargers extends AsyncDisposable {
  readonly connections: ChargerConnections;
  /** By the name that `Charger.profile` has. */
  readonly profiles: ReadonlyMap<string, Profile>;
  /** Null: no broker is embedded. */
  readonly brokerPort: number | null;
}

export interface ChargerOptions {
  readonly siteKey: Buffer;
  readonly now: () => Instant;
  readonly onMessage: (message: ChargerMessage) => void;
  readonly onDiscard: (charger: ChargerId, why: Discarded) => void;
  readonly onBroker: (name: string, up: boolean) => void;
  /** False: another process may have the client id. */
  readonly mayConnect: () => boolean;
  /** True: no charger is kept obeying by keepalives. */
  readonly observes: boolean;
  /** Home Assistant has started. Called where discovery is on. */
  readonly onHomeAssistant: () => void;
  /** Shared with other sites of the process. Absent: no other site. */
  readonly quota?: SharedPlaces;
  /** Absent: the usual ones. */
  readonly timing?: Partial<BrokerTiming>;
  /** Absent: holds are not accepted from MQTT. */
  readonly onHoldMessage?: (message: HoldMessage) => void;
}

/** Everything that the daemon meets outside. */
export interface Edges extends Machine {
  /** Absent: the site has no file of its own. */
  readonly configurations?: SiteConfigurations;
  /** Makes a support archive: its bytes, or the reason why there is none. Absent: the site has no file of its own. */
  readonly supportArchive?: () => Promise<Buffer | string>;
  readonly openStore: () => Promise<Opened>;
  /** Called where control failed. Absent: that ends the process, and a restart continues. */
  readonly onControlFailed?: (cause: unknown) => void;
  /** Metrics that several sites share. Absent: the site has its own. */
  readonly metrics?: Metrics;
  /** Room for dispatches that several sites share. Absent: the site has all of it. */
  readonly room?: SharedRoom;
  /** `recorded`: the last moment on record. Null: none. */
  readonly clock: (recorded: Instant | null, onDoubt: () => void) => SiteClock;
  readonly partner: (options: PartnerOptions) => Partner;
  readonly chargers: (options: ChargerOptions) => Promise<ConnectedChargers>;
  /** Null: no webhook is configured. */
  readonly webhook:
    | ((
        options: Pick<WebhookOptions, "up" | "tls" | "onRefused" | "now" | "hint" | "ingest">,
      ) => Promise<
        Pick<WebhookListener, "port" | "renew" | "unbound" | "refused" | "refusedDeliveries"> &
          AsyncDisposable
      >)
    | null;
  /** Requests wait for the views. */
  readonly operator: (
    views: Promise<OperatorViews>,
    options: Pick<ListenerOptions, "now" | "record">,
  ) => Promise<Pick<OperatorListener, "port" | "renew" | "accessFault"> & AsyncDisposable>;
  /** Address of the page at this port, for people. Null: it has none. */
  readonly page: (port: number) => string | null;
  readonly receivers: () => AlarmReceivers;
  /** A text: the reason why there is no socket. */
  readonly controlSocket: (api: ControlApi) => Promise<AsyncDisposable | string>;
  readonly statusSocket: (status: Parameters<typeof statusSocket>[1]) => Promise<AsyncDisposable | string>;
}
