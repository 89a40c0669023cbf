import type { Logger } from "pino";

import type { ChargerConnections } from "../chargers/connections.ts";
import type { Config } from "../config/schema.ts";
import type { PriceQuery } from "../domain/prices.ts";
import type { Instant } from "../domain/units.ts";
import type { Metrics } from "../operator/metrics.ts";
import type { WallClock } from "../platform/localTime.ts";
import { cronTicks } from "../platform/scheduling.ts";
import { type PriceBoard, priceBoard } from "../prices/board.ts";
import { prices } from "../prices/pipeline.ts";
import type { Store } from "../store/sqlite/store.ts";
import type { VtnClient } from "../vtn/client.ts";
import type { Dialect } from "../vtn/dialects/dialect.ts";
import { PriceClient } from "../vtn/prices.ts";
import type { TokenSource } from "../vtn/token.ts";

/** The parts of the daemon that prices share with the rest. */
export interface PriceSurroundings {
  readonly dialect: Dialect;
  readonly tokens: TokenSource;
  readonly client: VtnClient;
  readonly fleet: ChargerConnections;
  readonly store: Store;
  readonly metrics: Metrics;
  readonly now: () => Instant;
  readonly monotonic: () => number;
  readonly random: () => number;
  /** The site's. */
  readonly clock: WallClock;
  readonly log: Logger;
}

/** The price series of the configuration, with what is stored of them. */
export function configuredPrices({ vtn }: Config, store: Store): PriceBoard {
  const { regions, forecastPath } = vtn.prices;
  const kinds = forecastPath === null ? (["actual"] as const) : (["actual", "forecast"] as const);
  const queries = regions.flatMap((region) => kinds.map((kind): PriceQuery => ({ region, kind })));
  return priceBoard(queries, store.prices());
}

/** The pipeline that keeps the board fresh, and the client that it asks with; nothing is asked where no region is configured. */
export function spotPrices(
  board: PriceBoard,
  { vtn, site }: Config,
  brokerUp$: Parameters<typeof prices>[2],
  { dialect, tokens, client, fleet, store, metrics, now, monotonic, random, clock, log }: PriceSurroundings,
): { readonly client: PriceClient; readonly price$: ReturnType<typeof prices> } {
  const asking = new PriceClient({
    baseUrl: vtn.baseUrl,
    dialect,
    tokens,
    now,
    monotonic,
    mayAsk: client.mayAskMore,
  });
  const price$ = prices(board, cronTicks(vtn.prices.cron, site.timezone), brokerUp$, {
    now,
    random,
    wallClock: clock,
    ask: (query) => asking.ask(query),
    write: (changes) => store.write(changes),
    publish: (path, payload) => fleet.publishAboutSite(path, payload),
    counted: (query, outcome) => metrics.priceFetched(query, outcome),
    alarm: (words) => log.error(words),
  });
  return { client: asking, price$ };
}
