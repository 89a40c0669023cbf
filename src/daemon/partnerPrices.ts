import type { Config } from "../config/schema.ts";
import type { PriceQuery } from "../domain/prices.ts";
import type { Store } from "../domain/store.ts";
import { cronTicks } from "../platform/scheduling.ts";
import { type PriceBoard, priceBoard } from "../prices/board.ts";
import { prices, type PricePorts } from "../prices/pipeline.ts";
import type { Site } from "./site.ts";

/** The price series of the configuration, with what is stored of them. */
export async function configuredPrices({ vtn }: Config, store: Store): Promise<PriceBoard> {
  const { regions, forecastPath } = vtn.prices;
  const kinds = forecastPath === null ? (["actual"] as const) : (["actual", "forecast"] as const);
  const queries = regions.flatMap((region) => kinds.map((kind): PriceQuery => ({ region, kind })));
  return priceBoard(queries, await store.prices());
}

/** The pipeline that keeps the board fresh. Without a configured region it asks for nothing. */
export function spotPrices(
  board: PriceBoard,
  { vtn, site: { timezone } }: Config,
  brokerUp$: Parameters<typeof prices>[2],
  { store, now, random, wallClock, log }: Pick<Site, "store" | "now" | "random" | "wallClock" | "log">,
  edges: Pick<PricePorts, "ask" | "publish" | "counted">,
): ReturnType<typeof prices> {
  return prices(board, cronTicks(vtn.prices.cron, timezone), brokerUp$, {
    ...edges,
    now,
    random,
    wallClock,
    write: (changes) => store.write(changes),
    alarm: (message) => log.error(message),
  });
}
