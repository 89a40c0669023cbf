import { type Json, numberOf, textOf } from "../../domain/audit.ts";
import { explain } from "../../config/explain.ts";
import { loadOcppConfig } from "../../config/ocpp.ts";
import { complain, type ExitCode, say, writeLine } from "../output.ts";

/** The part of `/api/v1/stations` that the verb prints. */
interface StationsView {
  readonly site: string;
  readonly stations: readonly StationView[];
  readonly refused: { readonly count: number; readonly latest: readonly Json[] };
}

interface StationView {
  readonly identity: string;
  readonly state: string;
  readonly since: string;
  readonly ocpp: string | null;
  readonly model: string | null;
  readonly problems: readonly string[];
  readonly connectors: readonly {
    readonly id: number;
    readonly charger: string;
    readonly state: string | null;
    readonly limit: { readonly level: string; readonly until: string } | null;
    readonly lastRefusal: string | null;
  }[];
}

const LONGEST_WAIT_MS = 10_000;

/** `ocpp status`: the chargers of the running bridge. 1: one of them has a problem, or the bridge does not run. */
export async function ocppStatus(file: string | undefined, json: boolean): Promise<ExitCode> {
  if (file === undefined) {
    complain("which configuration? Name the bridge's own with -c FILE, e.g. ocpp.yaml");
    return 2;
  }
  const loaded = loadOcppConfig(file, process.env);
  if (!loaded.ok) {
    complain(explain(loaded.mistakes, file));
    return 2;
  }
  const { host, port } = loaded.config.status;
  const url = `http://${host.includes(":") ? `[${host}]` : host}:${port}/api/v1/stations`;
  let view: StationsView;
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(LONGEST_WAIT_MS) });
    view = (await answer.json()) as StationsView;
  } catch {
    complain(`the OCPP bridge does not answer at ${url}: is setpointd ocpp running?`);
    return 1;
  }
  if (json) say(JSON.stringify(view));
  else linesOf(view).forEach(writeLine);
  return view.stations.some(({ problems }) => problems.length > 0) ? 1 : 0;
}

function linesOf({ site, stations, refused }: StationsView): readonly string[] {
  const ready = stations.filter(({ state }) => state === "ready").length;
  return [
    `${site}: ${ready} of ${stations.length} chargers ready`,
    ...stations.flatMap(stationLines),
    ...refused.latest.map(
      (stranger) =>
        `refused ${numberOf(stranger, "count")} times: ${textOf(stranger, "identity")} at ${textOf(stranger, "address")}: ${textOf(stranger, "reason")}`,
    ),
  ];
}

const stationLines = ({ identity, state, since, ocpp, model, problems, connectors }: StationView) => [
  [identity, `${state} since ${since}`, ocpp === null ? null : `OCPP ${ocpp}`, model]
    .filter((part) => part !== null)
    .join(", "),
  ...connectors.map(
    ({ id, charger, state: outlet, limit, lastRefusal }) =>
      `  connector ${id}, ${charger}: ${outlet ?? "no status yet"}${limit === null ? "" : `, ${limit.level} until ${limit.until}`}${lastRefusal === null ? "" : `; refused: ${lastRefusal}`}`,
  ),
  ...problems.map((problem) => `  problem: ${problem}`),
];
