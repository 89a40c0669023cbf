import * as fc from "fast-check";
import { expect, test } from "vitest";
import { webhookKey, webhookKeyFault } from "../../../src/config/sections/webhook.ts";

test("every key of 24 bytes or more is read, with whsec_ or without", () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 24, maxLength: 64 }), fc.boolean(), (bytes, hasPrefix) => {
      const key = Buffer.from(bytes);
      expect(webhookKey((hasPrefix ? "whsec_" : "") + key.toString("base64"))).toEqual(key);
    }),
  );
});

test("a text that Node decodes only in part, or that is too short, is not a key", () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      const key = webhookKey(text);
      if (key !== null) expect(key.toString("base64")).toBe(text.replace(/^whsec_/, ""));
    }),
  );
  for (const bad of ["whsec_!!", "", "whsec_", Buffer.alloc(23).toString("base64")])
    expect(webhookKeyFault(bad)).toContain("24 bytes");
});
