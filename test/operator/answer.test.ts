import { expect, test } from "vitest";

import { conflict, FirstAnswers } from "../../src/operator/answer.ts";

test("a request that is repeated with its key gets the first answer, and another one with that key gets none", async () => {
  const answers = new FirstAnswers();
  const first = Promise.resolve({ ok: true, value: 1 } as const);
  answers.add("key-1", "request", first);
  await first;
  expect([answers.get("key-1", "request"), answers.get("key-1", "another")]).toEqual([first, null]);
  expect(answers.get("key-2", "request")).toBeUndefined();
});

test("of very many keys the newest thousand are remembered", () => {
  const answers = new FirstAnswers();
  const answer = Promise.resolve({ ok: true, value: null } as const);
  for (let key = 0; key < 1_002; key += 1) answers.add(`key-${key}`, "request", answer);
  expect(["key-1", "key-2"].map((key) => answers.get(key, "request"))).toEqual([undefined, answer]);
});

test("a request that was refused may be sent again with its key", async () => {
  const answers = new FirstAnswers();
  const refused = Promise.resolve(conflict("nothing was changed", "another hold is open"));
  answers.add("key-1", "request", refused);
  await refused;
  expect(answers.get("key-1", "request")).toBeUndefined();
});

test("a request that failed by a bug ends no process, and may be sent again with its key", async () => {
  const answers = new FirstAnswers();
  const failed = Promise.reject(new Error("a bug"));
  answers.add("key-1", "request", failed);
  await expect(failed).rejects.toThrow("a bug");
  expect(answers.get("key-1", "request")).toBeUndefined();
});
