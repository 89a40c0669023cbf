import { configuredPrices } from "../../daemon/reportsAndPrices.ts";
import { seriesName } from "../../domain/prices.ts";
import { type Instant, fromIso } from "../../domain/units.ts";
import { type PriceSeriesView, pricesView } from "../../operator/listViews.ts";
import { wallClock } from "../../platform/clock.ts";
import { configuration } from "../configuration.ts";
import { type ExitCode, fail, say, writeLine, type Verb } from "../output.ts";
import { askOrRead } from "../storedState.ts";

/** `prices`: shows prices from the running daemon, or the stored ones. The text output leaves out past prices. */
async function prices(named: string | undefined, json: boolean, now: () => Instant): Promise<ExitCode> {
  const config = configuration(named);
  if (config === null) return 2;
  const known = await askOrRead<readonly PriceSeriesView[]>(config, "/prices", async ({ store }) =>
    pricesView(await configuredPrices(config, store)),
  );
  if (typeof known === "string") return fail(1, known);
  if (json) {
    say(JSON.stringify(known));
    return 0;
  }
  if (known.length === 0) say("no prices are fetched: vtn.prices.regions names no region");
  const clock = wallClock(config.site.timezone, now);
  const moment = (iso: string): string => clock(fromIso(iso));
  for (const series of known) {
    writeLine(heading(series, moment));
    for (const { start, end, value, currency, perUnit } of series.prices) {
      if (Date.parse(end) > now())
        writeLine(`  ${moment(start)} to ${moment(end)}  ${value} ${currency ?? "?"}/${perUnit ?? "?"}`);
    }
  }
  return 0;
}

function heading(
  { region, kind, fetchedAt, reason }: PriceSeriesView,
  moment: (iso: string) => string,
): string {
  const age = fetchedAt === null ? "none yet" : `as of ${moment(fetchedAt)}`;
  return `${seriesName({ region, kind })}, ${age}${reason === null ? "" : ` (${reason})`}`;
}

export const pricesVerb: Verb = (verb, { config, now, done }) => {
  verb
    .option("--json", "print one JSON array: all series with all their prices, as /api/v1/prices", false)
    .action(async ({ json }: { json: boolean }) => {
      done(await prices(config(), json, now));
    });
};
