import { expect, test } from "vitest";
import { brokerUrl, isExposed, webUrl } from "../../../src/config/fields/address.ts";

test("a trailing slash of the partner's address makes no difference", () => {
  expect(webUrl.parse("https://api.partner.example/smart//")).toBe("https://api.partner.example/smart");
});

test.each([
  "ftp://x",
  "api.partner.example",
  "https://u:p@x",
  "https://x?a=b",
  "https://x#a",
  "https://",
  "",
])("%j is not a partner's address", (text) => {
  expect(webUrl.safeParse(text).success).toBe(false);
});

test.each([
  ["mqtt://10.0.0.1:1883", true],
  ["wss://broker.example/mqtt", true],
  ["mqtt://user:pass@10.0.0.1", false],
  ["http://10.0.0.1", false],
  ["10.0.0.1:1883", false],
])("%s as a broker: %s", (text, good) => {
  expect(brokerUrl.safeParse(text).success).toBe(good);
});

test("http is exposed unless it stays on this machine", () => {
  const urls = ["http://api.example", "https://api.example", "http://127.0.0.1:9000", "http://[::1]:9000"];
  expect(urls.filter(isExposed)).toEqual(["http://api.example"]);
});
