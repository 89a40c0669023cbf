import type { Dialect } from "../../src/vtn/dialects/dialect.ts";
import { dialectOf, type DialectOptions } from "../../src/vtn/dialects/choose.ts";

/** The dialect of the partner, with its default paths. */
export const aDialect = (
  over: {
    readonly vtn?: Partial<DialectOptions["vtn"]>;
    readonly report?: Partial<DialectOptions["report"]>;
  } = {},
): Dialect =>
  dialectOf({
    vtn: { family: "energy-coordination", scope: null, prices: { forecastPath: null }, ...over.vtn },
    report: {
      format: "openadr30",
      path: "/energy-coordination/v1/reports",
      clientName: "depot",
      notes: true,
      location: null,
      ...over.report,
    },
  });
