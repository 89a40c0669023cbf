import { createHmac } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { instant } from "../../src/domain/units.ts";
import { SimulatedPartner } from "../../src/sim/partner.ts";
import { readWebhookBody } from "../../src/vtn/dialects/partner/envelope.ts";
import { anEvent, START } from "./partnerSetup.ts";

interface Hook {
  readonly url: string;
  readonly bodies: { readonly text: string; readonly signature: unknown }[];
}

/** A webhook that answers with the given statuses in order, then repeats the last one. */
async function withHook(statuses: readonly number[], use: (hook: Hook) => Promise<void>): Promise<void> {
  const bodies: { text: string; signature: unknown }[] = [];
  const server = createServer((incoming, reply) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      bodies.push({
        text: Buffer.concat(chunks).toString(),
        signature: incoming.headers["x-payload-signature"],
      });
      reply.writeHead(statuses[Math.min(bodies.length, statuses.length) - 1] ?? 200).end("{}");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await use({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, bodies });
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test("each put and each withdrawal creates a newer revision, even within one millisecond", async () => {
  await using partner = await SimulatedPartner.start({ ...START, now: () => instant(1_800_000_000_000) });
  const revisions = [partner.put(anEvent("EV-1")), partner.put(anEvent("EV-1"))];
  expect(partner.withdraw("EV-1")).toBe(true);
  expect(partner.stored("EV-1")).toBeUndefined();
  revisions.push(partner.put(anEvent("EV-1")));
  const times = revisions.map((event) => Date.parse(event.modificationDateTime) - 1_800_000_000_000);
  expect(times).toEqual([0, 1, 3]);
});

test("a webhook delivery is the bare event, signed over its raw bytes", async () => {
  await withHook([202], async (hook) => {
    await using partner = await SimulatedPartner.start({ ...START, webhook: { url: hook.url, secret: "s" } });
    const stored = partner.put(anEvent("EV-å"));
    expect(await partner.deliver("EV-å")).toEqual({ status: 202, attempts: 1, answer: "{}" });
    const [body] = hook.bodies;
    expect(JSON.parse(body?.text ?? "")).toEqual(stored);
    expect(body?.signature).toBe(
      createHmac("sha256", "s")
        .update(body?.text ?? "", "utf8")
        .digest("base64"),
    );
  });
});

test("a withdrawal is sent as an OpenADR notification", async () => {
  await withHook([202], async (hook) => {
    await using partner = await SimulatedPartner.start({ ...START, webhook: { url: hook.url, secret: "s" } });
    partner.put(anEvent("EV-1"));
    partner.withdraw("EV-1");
    await partner.deliver("EV-1", { operation: "DELETE" });
    expect(JSON.parse(hook.bodies[0]?.text ?? "")).toMatchObject({
      objectType: "EVENT",
      operation: "DELETE",
      object: { ID: "EV-1" },
    });
    expect(readWebhookBody(Buffer.from(hook.bodies[0]?.text ?? ""))).toMatchObject({
      notices: [{ kind: "deleted", id: "EV-1" }],
    });
  });
});

test("F50 a failed delivery is sent again with the same bytes, and dropped after three retries", async () => {
  await withHook([500, 503, 200], async (hook) => {
    await using partner = await SimulatedPartner.start({ ...START, webhook: { url: hook.url, secret: "s" } });
    expect(await partner.deliver(anEvent("EV-1"))).toMatchObject({ status: 200, attempts: 3 });
    expect(new Set(hook.bodies.map(({ text }) => text)).size).toBe(1);
  });
  await withHook([500], async (hook) => {
    await using partner = await SimulatedPartner.start({ ...START, webhook: { url: hook.url, secret: "s" } });
    expect(await partner.deliver(anEvent("EV-1"))).toMatchObject({ status: 500, attempts: 4 });
    expect(hook.bodies).toHaveLength(4);
  });
});

test("an unreachable webhook gives a null status and does not throw", async () => {
  await using partner = await SimulatedPartner.start(START);
  partner.webhookTo({ url: "http://127.0.0.1:1/hook", secret: "s" });
  expect(await partner.deliver(anEvent("EV-1"))).toEqual({ status: null, attempts: 4, answer: "" });
});
