import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";

import { buildPage } from "../../packaging/page.ts";

const ROOT = new URL("../..", import.meta.url).pathname;
/** Bytes that a browser loads at most, packed. */
const MOST = 150_000;

test("the page is at most 150 kB packed, and asks nothing of any other host", async () => {
  const { files, packages } = await buildPage(ROOT);
  const packed = [...files.values()].reduce((sum, content) => sum + gzipSync(content).length, 0);
  expect(packed).toBeLessThan(MOST);
  const kinds = [...files.keys()].map((name) => name.replace(/-[\w-]+\./, "."));
  expect(kinds.toSorted()).toEqual(["icon.svg", "index.html", "page.css", "page.js"]);
  expect(packages).toEqual(expect.arrayContaining(["node_modules/preact", "node_modules/uplot"]));
  for (const [name, content] of files) {
    const addresses = content.toString().match(/(?:https?:)?\/\/[a-z][\w.-]+\.[a-z]{2,}/gi) ?? [];
    expect([name, addresses.filter((address) => !address.includes("www.w3.org"))]).toEqual([name, []]);
  }
});
