import { expect, test } from "vitest";

import { type Answer, conflict, FirstAnswers } from "../../src/operator/answer.ts";
import type { Json } from "../../src/domain/audit.ts";

/** Answers each request with its number: 1, 2, ... */
function counted(answerOf: (number: number) => Answer<Json> = (value) => ({ ok: true, value })) {
  const answers = new FirstAnswers();
  let count = 0;
  return {
    request: (key: string | null, request = "request") =>
      answers.once(key, request, async () => answerOf((count += 1))),
  };
}

test("a request that is repeated with its key gets the first answer, and another one with that key gets none", async () => {
  const { request } = counted();
  // The second comes before the first is answered.
  const [first, repeated] = await Promise.all([request("key-1"), request("key-1")]);
  const later = await request("key-1");
  for (const answer of [first, repeated, later]) expect(answer).toEqual({ ok: true, value: 1 });
  expect(await request("key-1", "another")).toMatchObject({
    ok: false,
    problem: { status: 409, errors: [{ path: "Idempotency-Key", found: "key-1" }] },
  });
  expect(await request("key-2")).toEqual({ ok: true, value: 2 });
});

test("requests without a key are each answered anew", async () => {
  const { request } = counted();
  expect([await request(null), await request(null)]).toEqual([
    { ok: true, value: 1 },
    { ok: true, value: 2 },
  ]);
});

test("of very many keys the newest thousand are remembered", async () => {
  const { request } = counted();
  for (let key = 0; key < 1_002; key += 1) await request(`key-${key}`);
  expect(await request("key-2")).toEqual({ ok: true, value: 3 });
  expect(await request("key-1")).toEqual({ ok: true, value: 1_003 });
});

test("a request that was refused may be sent again with its key", async () => {
  const { request } = counted((value) =>
    value === 1 ? conflict("nothing was changed", "another hold is open") : { ok: true, value },
  );
  expect(await request("key-1")).toMatchObject({ ok: false });
  expect(await request("key-1")).toEqual({ ok: true, value: 2 });
});

test("a request that failed by a bug ends no process, and may be sent again with its key", async () => {
  const { request } = counted((value) => {
    if (value === 1) throw new Error("a bug");
    return { ok: true, value };
  });
  await expect(request("key-1")).rejects.toThrow("a bug");
  expect(await request("key-1")).toEqual({ ok: true, value: 2 });
});
