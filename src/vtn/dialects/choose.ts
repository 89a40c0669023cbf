import type { Dialect } from "./dialect.ts";
import { readEventBody, readingList, readWebhookBody } from "./partner/envelope.ts";
import { readPrices } from "./partner/prices.ts";
import {
  identityIn,
  isSameReport,
  readReportPage,
  type ReportFormat,
  type ReportSender,
  writeReport,
} from "./partner/report.ts";

/** Parts of the partner's dialect that the configuration decides. */
export interface DialectOptions {
  readonly vtn: {
    readonly family: "energy-coordination" | "vtn";
    readonly scope: string | null;
    /** `forecastPath` has {region} in it. Null: no forecasts. */
    readonly prices: { readonly forecastPath: string | null };
  };
  readonly report: ReportSender & { readonly format: ReportFormat; readonly path: string };
}

/** Path of actual prices. */
const ACTUAL_PATH = "/smart/v1/prices/actual/{region}";

/** The dialect of the configured event service: the partner's. Another one is chosen here. */
export const dialectOf = ({ vtn, report }: DialectOptions): Dialect => ({
  addressKeys: "vtn.baseUrl and vtn.family",
  scope: vtn.scope,
  paths: {
    events: `/${vtn.family}/v1/events`,
    reports: report.path,
    prices: { actual: ACTUAL_PATH, forecast: vtn.prices.forecastPath },
  },
  readDelivery: readWebhookBody,
  readingList,
  readEvent: readEventBody,
  readPrices,
  writeReport: (content) => writeReport(content, report.format, report),
  reportIdentity: identityIn,
  readReportPage,
  isSameReport,
});
