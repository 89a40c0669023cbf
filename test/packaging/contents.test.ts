import { existsSync } from "node:fs";
import { posix } from "node:path";
import { expect, test } from "vitest";

import { contents } from "../../packaging/contents.ts";
import { shipped } from "../../src/platform/packageRoot.ts";

const root = new URL("../..", import.meta.url).pathname;

/** Links of a page that lead to a file beside it, and not to the web or within the page. */
const LINK = /\]\((?![a-z]+:|#)([^)#]+)/g;

test("pages that the installed ones link to are installed, and so is the example that messages name", () => {
  const tree = contents(root, "x64", {
    version: "1.2.3",
    licence: "Apache-2.0",
    seconds: 0,
    bundle: { files: new Map([["setpointd.mjs", ""]]), packages: [] },
    page: { files: new Map([["index.html", Buffer.from("<!doctype html>")]]), packages: [] },
    runtime: { node: Buffer.alloc(0), licence: Buffer.alloc(0) },
  });
  const paths = tree.map(({ path }) => path);
  const links = tree.flatMap((entry) =>
    entry.kind === "file" && entry.path.endsWith(".md")
      ? [...entry.content.toString("utf8").matchAll(LINK)].map(([, to = ""]) =>
          posix.join(posix.dirname(entry.path), to),
        )
      : [],
  );
  expect(links.length).toBeGreaterThan(1);
  expect(links.filter((link) => !paths.includes(link))).toEqual([]);
  expect(paths).toContain("lib/setpointd/config/example.yaml");
  expect(paths).toContain("share/doc/setpointd/examples/dashboards/setpointd.json");
  for (const page of ["README.md", "SECURITY.md", "LICENSE", "CHANGELOG.md", "docs/troubleshooting.md"])
    expect(paths).toContain(`share/doc/setpointd/${page}`);
  expect(paths.filter((path) => path.includes("demo"))).toEqual([]);
  expect(existsSync(shipped("config/example.yaml"))).toBe(true);
});
