import { expect, test } from "vitest";
import type { Delivery } from "../../src/domain/delivery.ts";
import { type EventId, instant } from "../../src/domain/units.ts";
import { receive } from "../../src/vtn/reception.ts";
import type { Scheme } from "../../src/vtn/signature.ts";
import { aDialect } from "../support/aDialect.ts";

const at = instant(Date.UTC(2026, 10, 21, 12));
const proof = { authorization: "Bearer shared" };
const bearer: Scheme = { kind: "bearer", secrets: () => ["shared"] };

function aReception(scheme: Scheme = bearer) {
  const deliveries: Delivery[] = [];
  const hints: (readonly EventId[] | "list")[] = [];
  const reception = receive({
    scheme,
    dialect: aDialect(),
    now: () => at,
    monotonic: () => 0,
    ingest: async (delivery) => {
      deliveries.push(delivery);
      return { ok: true, ingested: { accepted: 1, repeats: 0, rejected: 0 } };
    },
    hint: (ask) => hints.push(ask),
  });
  return { reception, deliveries, hints };
}

test("an event that is named by its id only is fetched by that id", async () => {
  const { reception, deliveries, hints } = aReception();
  const received = await reception(proof, Buffer.from('{"ID":"EV-1"}'), at);
  expect(received).toEqual({
    kind: "ingested",
    ingested: { accepted: 0, repeats: 0, rejected: 0 },
    hint: false,
  });
  expect(hints).toEqual([["EV-1"]]);
  expect(deliveries).toEqual([]);
});

test("F60: beyond the generous pace the partner gets 429 for a second, and the list is fetched instead", async () => {
  const { reception, hints } = aReception();
  for (let count = 0; count < 5000; count += 1) {
    expect((await reception(proof, Buffer.from("[]"), at)).kind).toBe("ingested");
  }
  expect(await reception(proof, Buffer.from("[]"), at)).toMatchObject({
    status: 429,
    retryAfter: 1,
    proven: true,
  });
  expect(hints).toContain("list");
});

test("an unauthenticated sender is never called proven", async () => {
  const signed = aReception();
  expect(await signed.reception({}, Buffer.from("{}"), at)).toMatchObject({ status: 401, proven: false });
  expect(await signed.reception(proof, Buffer.from("{"), at)).toMatchObject({ status: 400, proven: true });
  const open = aReception({ kind: "none" });
  expect(await open.reception({}, Buffer.from("{"), at)).toMatchObject({ kind: "ingested", hint: true });
  for (let count = 1; count < 500; count += 1) await open.reception({}, Buffer.from(""), at);
  expect(await open.reception({}, Buffer.from(""), at)).toMatchObject({ status: 429, proven: false });
});

test("F62: a body with more entries than any sender has reason for is refused whole, and the list is fetched", async () => {
  const { reception, deliveries, hints } = aReception();
  const body = Buffer.from(`[${"{},".repeat(10_000)}{}]`);
  expect(await reception(proof, body, at)).toMatchObject({ status: 413, proven: true });
  expect(hints).toEqual(["list"]);
  expect(deliveries).toEqual([]);
});

test("F60: hints cost little: their bodies are not read, and beyond 500 in a moment they get 429", async () => {
  const { reception, deliveries, hints } = aReception({ kind: "none" });
  const heavy = Buffer.from(`[${"{},".repeat(300_000)}{}]`);
  expect(await reception({}, heavy, at)).toMatchObject({ kind: "ingested", hint: true });
  for (let count = 1; count < 500; count += 1) {
    expect((await reception({}, Buffer.from('{"ID":"EV-1"}'), at)).kind).toBe("ingested");
  }
  expect(await reception({}, Buffer.from("{}"), at)).toMatchObject({
    status: 429,
    retryAfter: 1,
    proven: false,
  });
  expect(new Set(hints)).toEqual(new Set(["list"]));
  expect(deliveries).toEqual([]);
});
