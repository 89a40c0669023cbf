import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

import type { OcppConfig } from "../config/ocpp.ts";
import { iso } from "../domain/units.ts";
import { isLoopback } from "../config/fields/address.ts";
import type { StationServer } from "./server.ts";
import type { Station } from "./station.ts";

/** The bridge's own status, on loopback: JSON for people, metrics for a monitor. */
export class StatusListener implements AsyncDisposable {
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(
    { status, site }: Pick<OcppConfig, "status" | "site">,
    stations: ReadonlyMap<string, Station>,
    listener: Pick<StationServer, "refused" | "strangers">,
  ): Promise<StatusListener> {
    const server = createServer((request, response) => answer(request, response, site, stations, listener));
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

function answer(
  { method, url, headers }: IncomingMessage,
  response: ServerResponse,
  site: string,
  stations: ReadonlyMap<string, Station>,
  listener: Pick<StationServer, "refused" | "strangers">,
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
      const all = [...stations.values()].map(stationView);
      const body = { site, stations: all, refused: { count: listener.refused, latest: listener.strangers } };
      return send(200, "application/json", JSON.stringify(body));
    }
    case "/metrics":
      return send(200, "text/plain; version=0.0.4", metricsText([...stations.values()], listener.refused));
    default:
      return send(404, "text/plain", "/healthz, /metrics and /api/v1/stations\n");
  }
}

/** A station as the API shows it. */
export function stationView({ config, life, model, counts, outlets }: Station) {
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
    problems: problemsOf({ life, counts }),
    counts,
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
      composite: connector.composite,
      lastRefusal: connector.lastRefusal,
      counts: { ...connector.counts, malformedSets },
    })),
  };
}

/** Repeated this often, a fault is not chance. */
const OFTEN = 3;

/** Problems of a station, one sentence each. */
function problemsOf({ life, counts }: Pick<Station, "life" | "counts">): readonly string[] {
  const all: string[] = [];
  if (life.kind === "ready" && life.capabilities.smartCharging === false)
    all.push(
      "it has no Smart Charging: every setpoint is refused. Ask the vendor for a firmware with the feature profile SmartCharging",
    );
  if (counts.replaced >= OFTEN)
    all.push(
      `its connection was replaced ${counts.replaced} times by a newer one: check that no two chargers have this identity`,
    );
  if (counts.refusedLogins > 0)
    all.push(`${counts.refusedLogins} logins were refused: compare its password and its OCPP version`);
  if (counts.bootsAfterProfile >= OFTEN)
    all.push(
      `it restarted ${counts.bootsAfterProfile} times within a minute after a charging profile: ask the vendor for a newer firmware`,
    );
  if (counts.unanswered > 0) all.push(`it left ${counts.unanswered} requests unanswered`);
  if (counts.clockWrong > 0)
    all.push(`its clock was wrong in ${counts.clockWrong} messages; our time is sent to it`);
  if (counts.outOfOrder > 0)
    all.push(`${counts.outOfOrder} meter values came out of order and were not used`);
  if (counts.flooded > 0) all.push(`it sent too many messages ${counts.flooded} times and was slowed down`);
  if (counts.malformed > 0) all.push(`${counts.malformed} of its messages could not be read`);
  return all;
}

const METRICS = {
  connections: "Connections of a station.",
  replaced: "Connections that a newer one of the same identity replaced.",
  messages: "Messages of a station.",
  malformed: "Messages that could not be read.",
  unanswered: "Requests without an answer.",
  unexpected: "Answers to no request.",
  clockWrong: "Messages with an impossible time.",
  outOfOrder: "Meter values that are older than known ones.",
  boots: "Starts of a station.",
  bootsAfterProfile: "Starts within a minute after a charging profile.",
  flooded: "Pauses of a station that sent too much.",
  refusedLogins: "Refused logins of a known station.",
} satisfies Record<keyof Station["counts"], string>;

const inSnakeCase = (name: string): string =>
  name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const label = (value: string): string =>
  value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");

/** Text format of Prometheus. */
function metricsText(stations: readonly Station[], refused: number): string {
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
  ];
  for (const [name, help] of Object.entries(METRICS)) {
    const metric = `setpointd_ocpp_${inSnakeCase(name)}_total`;
    lines.push(`# HELP ${metric} ${help}`, `# TYPE ${metric} counter`);
    for (const { config, counts } of stations)
      lines.push(`${metric}{station="${label(config.identity)}"} ${counts[name as keyof Station["counts"]]}`);
  }
  return `${lines.join("\n")}\n`;
}
