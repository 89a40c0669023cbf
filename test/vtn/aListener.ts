import { createHmac } from "node:crypto";
import type { Delivery, IngestAnswer } from "../../src/domain/delivery.ts";
import { type EventId, instant } from "../../src/domain/units.ts";
import type { Scheme } from "../../src/vtn/signature.ts";
import type { RefusalReason } from "../../src/vtn/refusals.ts";
import type { ListenerTls } from "../../src/vtn/webhookServer.ts";
import { WebhookListener, type WebhookOptions } from "../../src/vtn/webhook.ts";
import { aLog } from "./aServer.ts";
import { aDialect } from "../support/aDialect.ts";

export const SECRET = "shared with the partner";
export const signed: Scheme = {
  kind: "hmac",
  header: "X-Payload-Signature",
  algorithm: "sha256",
  encoding: "base64",
  timestamp: null,
  secrets: () => [SECRET],
};

export const wireEvent = (id: string) => ({
  ID: id,
  createdDateTime: "2026-11-21T10:00:00Z",
  modificationDateTime: "2026-11-21T10:00:00Z",
  name: "evening",
  priority: 1,
  programID: "p1",
  targets: [{ targetType: "vehicle", values: ["veh-1"] }],
  intervalPeriod: { start: "2026-11-21T18:00:00Z", duration: "01:00:00" },
  payload: { payloadType: "CurrentLevel", targetCurrent: 10 },
});

export const signature = (body: string | Buffer) =>
  createHmac("sha256", SECRET).update(body).digest("base64");

/** A listener with a flow that only counts, and time that stands still, so that no pace recovers. */
export async function aListener(over: Partial<WebhookOptions> = {}) {
  const deliveries: Delivery[] = [];
  const hints: (readonly EventId[] | "list")[] = [];
  const refusals: RefusalReason[] = [];
  const { log, lines } = aLog();
  const flow = {
    take: async (delivery: Delivery): Promise<IngestAnswer> => {
      const rejected = delivery.notices.filter(({ kind }) => kind === "rejected").length;
      return { ok: true, ingested: { accepted: delivery.notices.length - rejected, repeats: 0, rejected } };
    },
  };
  const listener = await WebhookListener.start({
    host: "127.0.0.1",
    port: 0,
    path: "/webhooks/events",
    tls: null,
    trustProxy: false,
    up: Promise.resolve(),
    scheme: signed,
    dialect: aDialect(),
    now: () => instant(Date.UTC(2026, 10, 21, 12)),
    monotonic: () => 0,
    log,
    ingest: async (delivery) => {
      deliveries.push(delivery);
      return flow.take(delivery);
    },
    hint: (ask) => hints.push(ask),
    onRefused: (reason) => refusals.push(reason),
    ...over,
  });
  const url = `http://127.0.0.1:${listener.port}/webhooks/events`;
  const post = async (body: string | Buffer, headers: Record<string, string> = {}) => {
    const response = await fetch(url, {
      method: "POST",
      body,
      headers: { "content-type": "application/json", ...headers },
    });
    return {
      status: response.status,
      retryAfter: response.headers.get("retry-after"),
      body: await response.text(),
    };
  };
  return {
    url,
    port: listener.port,
    renew: (tls: ListenerTls) => listener.renew(tls),
    post,
    deliver: (body: string | Buffer, headers: Record<string, string> = {}) =>
      post(body, { "x-payload-signature": signature(body), ...headers }),
    deliveries,
    hints,
    refusals,
    refused: () => listener.refused(),
    refusedDeliveries: () => listener.refusedDeliveries(),
    lines,
    flow,
    [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose](),
  };
}
