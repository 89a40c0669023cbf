import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

import { isLoopback } from "../config/fields/address.ts";
import type { OcppConfig } from "../config/ocpp.ts";
import { type Instant, iso } from "../domain/units.ts";
import { createHttpServer } from "../platform/listener.ts";
import { problemsOf } from "./problems.ts";
import type { StationServer } from "./server.ts";
import type { Station } from "./station.ts";
import { COUNTED, type Counted } from "./stationCounts.ts";

/** The bridge's own status, on loopback: JSON for people, metrics for a monitor. */
export class StatusListener implements AsyncDisposable {
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(
    { status, site }: Pick<OcppConfig, "status" | "site">,
    stations: ReadonlyMap<string, Station>,
    listener: Pick<StationServer, "refused">,
    now: () => Instant,
  ): Promise<StatusListener> {
    const server = createHttpServer((request, response) =>
      answer(request, response, { site, stations: [...stations.values()], listener, now: now() }),
    );
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(status, resolve);
    });
    return new StatusListener(server);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }
}

/** Content of an answer. */
interface Shown {
  readonly site: string;
  readonly stations: readonly Station[];
  readonly listener: Pick<StationServer, "refused">;
  readonly now: Instant;
}

function answer(
  { method, url, headers }: IncomingMessage,
  response: ServerResponse,
  { site, stations, listener: { refused }, now }: Shown,
): void {
  const send = (status: number, type: string, body: string): void => {
    response.writeHead(status, { "content-type": type, "cache-control": "no-store" });
    response.end(body);
  };
  // A page of another site must not read this through a name that it controls.
  const host = URL.parse(`http://${headers.host ?? ""}`)?.hostname ?? "";
  if (!isLoopback(host)) return send(403, "text/plain", "use a loopback address\n");
  if (method !== "GET") return send(405, "text/plain", "GET only\n");
  switch (url ?? "") {
    case "/healthz":
      return send(200, "text/plain", "ok\n");
    case "/api/v1/stations": {
      const all = stations.map((station) => stationView(station, now));
      const body = {
        site,
        stations: all,
        refused: { count: refused.count, latest: refused.latest },
      };
      return send(200, "application/json", JSON.stringify(body));
    }
    case "/metrics":
      return send(200, "text/plain; version=0.0.4", metricsText(stations, refused.count, now));
    default:
      return send(404, "text/plain", "/healthz, /metrics and /api/v1/stations\n");
  }
}

/** A station as the API shows it. */
export function stationView(station: Station, now: Instant) {
  const { config, life, model, counts, outlets } = station;
  const on = life.kind === "absent" ? null : life.on;
  return {
    identity: config.identity,
    state: life.kind,
    since: iso(life.kind === "absent" ? life.since : life.on.since),
    reason: life.kind === "absent" ? life.reason : null,
    address: on?.link.address ?? null,
    ocpp: on?.dialect.version ?? null,
    model: model === "" ? null : model,
    smartCharging: life.kind === "ready" ? life.capabilities.smartCharging : null,
    problems: problemsOf(station, now).map(({ text }) => text),
    counts: counts.all,
    upstream:
      on === null || on.upstream === null
        ? null
        : { connected: on.upstream.isUp, waiting: on.upstream.waiting, counts: on.upstream.counts },
    connectors: outlets.map(({ config: { id, charger }, connector, native, state, malformedSets }) => ({
      id,
      charger,
      broker: native.isConnected,
      state: state.state,
      fault: state.fault,
      transaction: state.transaction,
      limit:
        connector.level === null ? null : { level: connector.level.text, until: iso(connector.level.until) },
      composite: connector.applied.reported,
      lastRefusal: connector.lastRefusal,
      counts: { ...connector.counts, malformedSets },
    })),
  };
}

const inSnakeCase = (name: string): string =>
  name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const label = (value: string): string =>
  value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");

/** Text format of Prometheus. */
function metricsText(stations: readonly Station[], refused: number, now: Instant): string {
  const lines = [
    "# HELP setpointd_ocpp_refused_total Attempts to connect that were refused.",
    "# TYPE setpointd_ocpp_refused_total counter",
    `setpointd_ocpp_refused_total ${refused}`,
    "# HELP setpointd_ocpp_ready 1 while commands are passed to the station.",
    "# TYPE setpointd_ocpp_ready gauge",
    ...stations.map(
      ({ config, life }) =>
        `setpointd_ocpp_ready{station="${label(config.identity)}"} ${life.kind === "ready" ? 1 : 0}`,
    ),
    "# HELP setpointd_ocpp_problem 1 for each kind of problem of a station in the last hour.",
    "# TYPE setpointd_ocpp_problem gauge",
    ...stations.flatMap((station) =>
      problemsOf(station, now).map(
        ({ kind }) =>
          `setpointd_ocpp_problem{station="${label(station.config.identity)}",kind="${inSnakeCase(kind)}"} 1`,
      ),
    ),
  ];
  for (const [name, help] of Object.entries(COUNTED) as readonly [Counted, string][]) {
    const metric = `setpointd_ocpp_${inSnakeCase(name)}_total`;
    lines.push(`# HELP ${metric} ${help}`, `# TYPE ${metric} counter`);
    for (const { config, counts } of stations)
      lines.push(`${metric}{station="${label(config.identity)}"} ${counts.of(name)}`);
  }
  return `${lines.join("\n")}\n`;
}
