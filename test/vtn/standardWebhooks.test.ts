import * as fc from "fast-check";
import { Webhook } from "standardwebhooks";
import { expect, test } from "vitest";
import { type Instant, instant, minutes, seconds } from "../../src/domain/units.ts";
import { verify } from "../../src/vtn/signature.ts";
import { aListener, wireEvent } from "./aListener.ts";

// The package reads the clock of the machine: so does this test.
const KEY = Buffer.from("0123456789abcdef0123456789abcdef");
const SECRET = `whsec_${KEY.toString("base64")}`;
const scheme = { kind: "standardWebhooks", secrets: () => [SECRET] } as const;
const oracle = new Webhook(SECRET);

const headersOf = (id: string, at: Instant, body: string) => ({
  "webhook-id": id,
  "webhook-timestamp": String(Math.floor(at / 1000)),
  "webhook-signature": oracle.sign(id, new Date(at), body),
});
const now = () => instant(Date.now());

test("a signature of the reference package is accepted, and one that it refuses is refused", () => {
  const change = fc.constantFrom("nothing", "body", "id", "time", "signature", "version");
  const word = fc.stringMatching(/^[\x21-\x7e]{1,40}$/);
  fc.assert(
    fc.property(word, fc.string(), change, (id, body, changed) => {
      const at = now();
      const good = headersOf(id, at, body);
      const headers = {
        ...good,
        ...(changed === "id" ? { "webhook-id": `${id}x` } : {}),
        ...(changed === "time" ? { "webhook-timestamp": String(Math.floor(at / 1000) - 1) } : {}),
        ...(changed === "signature" ? { "webhook-signature": "v1,AAAA" } : {}),
        ...(changed === "version"
          ? { "webhook-signature": good["webhook-signature"].replace("v1,", "v2,") }
          : {}),
      };
      const sent = changed === "body" ? `${body}x` : body;
      let believed = true;
      try {
        oracle.verify(sent, headers, { jsonParse: false });
      } catch {
        believed = false;
      }
      expect(believed).toBe(changed === "nothing");
      expect(verify(scheme, headers, Buffer.from(sent), at)).toBe(believed);
    }),
    { numRuns: 200 },
  );
});

test("F69 F71: over HTTP, a delivery signed by the package is taken; forged, stale and future-dated ones get a 401", async () => {
  await using it = await aListener({
    scheme: { ...scheme, secrets: () => ["whsec_b2xkIG9uZQ==", SECRET] },
    now,
  });
  const body = JSON.stringify(wireEvent("EV-1"));
  const sent = async (headers: Record<string, string>, bytes = body) =>
    (await it.post(bytes, headers)).status;
  expect(await sent(headersOf("msg_1", now(), body))).toBe(202);
  const old = instant(now() - minutes(5) - seconds(2));
  const early = instant(now() + seconds(65));
  expect(await sent(headersOf("msg_2", old, body))).toBe(401);
  expect(await sent(headersOf("msg_3", early, body))).toBe(401);
  expect(await sent(headersOf("msg_4", now(), body), `${body} `)).toBe(401);
  const { "webhook-signature": signature, ...unsigned } = headersOf("msg_5", now(), body);
  expect(await sent(unsigned)).toBe(401);
  expect(await sent({ "webhook-signature": signature })).toBe(401);
  expect(it.deliveries).toHaveLength(1);
});
