import type { InputFaults } from "../alarms/facts.ts";
import type { Config } from "../config/schema.ts";
import type { OpenedState } from "../domain/store.ts";
import type { Metrics } from "../operator/metrics.ts";
import type { CertificatesInUse } from "./certificates.ts";
import type { ChargerOptions, Edges } from "./edges.ts";
import { ingestWhileLeading } from "./leading.ts";
import type { PartnerEvents, SiteInputs } from "./pipeline.ts";
import type { Site } from "./site.ts";

/** The parts that arrivals pass on to. */
interface ArrivalParts {
  readonly site: Pick<Site, "now" | "state" | "outages" | "leadership">;
  readonly inputs: SiteInputs;
  readonly metrics: Metrics;
}

type WebhookOptions = Parameters<NonNullable<Edges["webhook"]>>[0];

/** Receiver of the deliveries of the webhook. `up`: resolves when the first may be read. */
export const fromWebhook = (
  { site, inputs, metrics }: ArrivalParts,
  events: Pick<PartnerEvents, "ingest">,
  certificates: Pick<CertificatesInUse, "served">,
  up: Promise<void>,
): WebhookOptions => ({
  up,
  tls: certificates.served,
  onRefused: (reason) => metrics.webhookRefused(reason),
  now: site.now,
  hint: (wanted) => inputs.hint$.next(wanted),
  ingest: ingestWhileLeading(site.leadership, events.ingest),
});

/** Receiver of messages of chargers and of changes of their brokers. */
export function fromChargers(
  { operator }: Pick<Config, "operator">,
  { site, inputs, metrics }: ArrivalParts,
  inputFaults: InputFaults,
  { siteKey }: Pick<OpenedState, "siteKey">,
): ChargerOptions {
  const { now, state, outages, leadership } = site;
  return {
    siteKey,
    now,
    mayConnect: () => leadership === null || leadership.state === "leading",
    observes: state.mode.current === "observe",
    onMessage: (message) => inputs.charger$.next(message),
    onDiscard: (charger, why) => {
      metrics.discarded(charger, why);
      inputFaults.discarded(charger, why, now());
    },
    onBroker: (name, isUp) => {
      const neighbour = name === "" ? "broker" : (`broker ${name}` as const);
      if (!isUp) return outages.gone(neighbour, now());
      outages.back(neighbour);
      inputs.brokerUp$.next(name);
    },
    onHomeAssistant: () => inputs.homeAssistantUp$.next(),
    ...(operator.mqttHolds ? { onHoldMessage: (message) => inputs.holdMessage$.next(message) } : {}),
  };
}
