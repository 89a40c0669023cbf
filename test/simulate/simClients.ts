import pino from "pino";

import type { ReportConfig } from "../../src/config/sections/report.ts";
import type { Instant } from "../../src/domain/units.ts";
import { VtnClient } from "../../src/vtn/client.ts";
import { ReportClient } from "../../src/vtn/reports.ts";
import { TokenSource } from "../../src/vtn/token.ts";
import type { PartnerSide } from "../support/wiredDepot.ts";
import { aDialect } from "../support/aDialect.ts";

const baseUrl = "https://api.partner.example";
const tokenUrl = "https://id.partner.example/connect/token";
const log = pino({ level: "silent" });

interface Options {
  /** Null: nothing is reported. */
  readonly report: ReportConfig | null;
  /** The time that the daemon goes by. */
  readonly now: () => Instant;
  readonly monotonic: () => number;
  readonly random: () => number;
  /** Lets an answer through as long as the process lives. */
  readonly alive: <T>(answer: Promise<T>) => Promise<T>;
}

/** HTTP clients of the daemon, as src/daemon/real.ts builds them, for one run of it. */
export function simClients({
  report,
  alive,
  random,
  ...clocks
}: Options): Required<PartnerSide> & Disposable {
  const common = { ...clocks, log };
  const tokens = new TokenSource({
    tokenUrl,
    clientId: "depot",
    clientSecret: () => "hush",
    scope: null,
    random,
    ...common,
  });
  const path = report?.path ?? "/vtn/v1/reports";
  const dialect = aDialect({ vtn: { family: "vtn" }, report: { path } });
  const client = new VtnClient({ baseUrl, dialect, tokens, ...common });
  const reports = new ReportClient({
    baseUrl,
    dialect,
    tokens,
    mayAsk: client.mayAskMore,
    onNearlySpent: () => {},
    ...clocks,
  });
  return {
    list: () => alive(client.list()),
    event: (id) => alive(client.event(id)),
    settled: (delivery) => client.settled(delivery),
    endBackoff: () => tokens.endBackoff(),
    post: (body) => alive(reports.post(body)),
    [Symbol.dispose](): void {
      for (const one of [tokens, client, reports]) void one[Symbol.asyncDispose]();
    },
  };
}
