import { assert, json, oneof, property, string } from "fast-check";
import { expect, test } from "vitest";

import { readFrame, writeCall, writeReply } from "../../../src/ocpp/wire/frame.ts";

test("each kind of message is read, and one without a payload or with a number as its id as well", () => {
  expect(readFrame('[2,"7","Heartbeat",{}]')).toEqual({
    kind: "call",
    id: "7",
    action: "Heartbeat",
    payload: {},
  });
  expect(readFrame('[2,7,"Heartbeat"]')).toEqual({ kind: "call", id: "7", action: "Heartbeat", payload: {} });
  expect(readFrame('[3,"7",{"a":1}]')).toEqual({ kind: "result", id: "7", payload: { a: 1 } });
  expect(readFrame('[4,"7","NotSupported","no",{}]')).toEqual({
    kind: "error",
    id: "7",
    code: "NotSupported",
    description: "no",
  });
  expect(readFrame('[4,"7"]')).toMatchObject({ code: "GenericError", description: "" });
});

test.each([
  ["{", null, "not JSON"],
  ["{}", null, "no array"],
  ["[2]", null, "no message id"],
  [JSON.stringify([2, "x".repeat(1_000), "Heartbeat", {}]), null, "no message id"],
  ['[9,"7"]', null, "no message type"],
  ['[2,"7",5,{}]', "7", "no action"],
  ['[2,"7","Heartbeat",[]]', "7", "the payload is no object"],
])("%s is refused with its reason", (text, id, reason) => {
  expect(readFrame(text)).toEqual({ kind: "malformed", id, reason });
});

test("no text breaks the reader, and what we write is read again", () => {
  assert(
    property(oneof(string(), json()), (text) => {
      expect(["call", "result", "error", "malformed"]).toContain(readFrame(text).kind);
    }),
  );
  expect(readFrame(writeCall("a-1", "Reset", { type: "Soft" }))).toMatchObject({ action: "Reset" });
  expect(readFrame(writeReply("a-1", { ok: true, payload: {} }))).toMatchObject({
    kind: "result",
    id: "a-1",
  });
  const refusal = writeReply("a-1", { ok: false, code: "NotImplemented", description: "no" });
  expect(readFrame(refusal)).toMatchObject({ kind: "error", code: "NotImplemented" });
});
