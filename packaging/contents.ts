import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

import type { Bundle } from "./bundle.ts";
import { type Locked, readLock } from "./lock.ts";
import type { PageBuild } from "./page.ts";
import type { Arch, Runtime } from "./runtime.ts";
import { sbom } from "./sbom.ts";
import { type Entry, file, folder } from "../src/platform/tar.ts";

export interface Contents {
  readonly version: string;
  readonly licence: string;
  readonly seconds: number;
  readonly bundle: Bundle;
  readonly page: PageBuild;
  readonly runtime: Runtime;
}

const LIB = "lib/setpointd";
const DOC = "share/doc/setpointd";

/** What is below /usr once it is installed; the tarball is the same tree. */
export function contents(root: string, arch: Arch, parts: Contents): readonly Entry[] {
  const { version, licence, seconds, bundle, page, runtime } = parts;
  const text = (path: string): string => readFileSync(join(root, path), "utf8");
  const lock = readLock(root);
  const packages = [...new Set([...bundle.packages, ...page.packages])].toSorted();
  const libraries = packages.map(lock);
  const bill = {
    version,
    licence,
    seconds,
    arch,
    runtime: lock(`node_modules/node-linux-${arch}`),
    libraries,
  };
  const example = text("config/example.yaml").replace(
    "./setpointd.schema.json",
    `/usr/${LIB}/config/setpointd.schema.json`,
  );
  return [
    file("bin/setpointd", text("packaging/setpointd.sh"), 0o755),
    file(`${LIB}/node`, runtime.node, 0o755),
    ...[...bundle.files].map(([path, code]) => file(`${LIB}/${path}`, code)),
    ...[...page.files].map(([path, content]) => file(`${LIB}/dist/page/${path}`, content)),
    file(
      `${LIB}/package.json`,
      `${JSON.stringify({ name: "setpointd", version, license: licence, type: "module" }, null, 2)}\n`,
    ),
    ...globSync("config/**/*.{yaml,json}", {
      cwd: root,
      exclude: ["config/demo*.yaml", "config/dashboards/*"],
    }).map((path) => file(`${LIB}/${path}`, text(path))),
    ...["setpointd.service", "setpointd-ocpp.service", "setpointd-fleet.service"].map((unit) =>
      file(`lib/systemd/system/${unit}`, text(`systemd/${unit}`)),
    ),
    file("lib/sysusers.d/setpointd.conf", text("packaging/debian/sysusers.conf")),
    ...["README.md", "SECURITY.md", "CHANGELOG.md"].map((page) =>
      file(`${DOC}/${page}`, asInstalled(text(page))),
    ),
    file(`${DOC}/GATEWAY.md`, asInstalled(text("packaging/README.md"))),
    file(`${DOC}/LICENSE`, text("LICENSE")),
    file(`${DOC}/examples/config.yaml`, example),
    file(
      `${DOC}/examples/ocpp.yaml`,
      text("config/ocpp-example.yaml").replace("./ocpp.schema.json", `/usr/${LIB}/config/ocpp.schema.json`),
    ),
    ...["fleet", "site"].map((name) =>
      file(
        `${DOC}/examples/${name}.yaml`,
        text(`config/example-${name}.yaml`).replace(
          `./${name}.schema.json`,
          `/usr/${LIB}/config/${name}.schema.json`,
        ),
      ),
    ),
    file(`${DOC}/examples/alerts.yml`, text("config/alerts.yml")),
    file(`${DOC}/examples/dashboards/setpointd.json`, text("config/dashboards/setpointd.json")),
    file(`${DOC}/examples/events.json`, text("config/example-events.json")),
    ...globSync("docs/*.{md,json}", { cwd: root }).map((path) =>
      file(`${DOC}/${path}`, asInstalled(text(path))),
    ),
    file(`${DOC}/copyright`, copyright(root, licence, packages, libraries)),
    file(`${DOC}/LICENSE.node`, runtime.licence),
    file(`${DOC}/sbom.cdx.json`, sbom(bill)),
  ];
}

/** Link to a page for people who change setpointd: `[text](path)`. */
const SOURCE_ONLY = /\[([^\]]+)\]\((?:\.\.\/)*(CONTRIBUTING\.md|(?:src|test)\/[^)]+)\)/g;

/** The picture of the README, which is not installed. */
const PICTURE = /<picture>[^]*?<\/picture>\n\n/;

/** A page with the links of the installed tree. A link to a page that only the source has becomes plain text. */
const asInstalled = (page: string): string =>
  page
    .replace(PICTURE, "")
    .replaceAll(SOURCE_ONLY, "$1 (in the source)")
    .replaceAll("config/example.yaml", "examples/config.yaml")
    .replaceAll("config/ocpp-example.yaml", "examples/ocpp.yaml")
    .replaceAll("config/example-fleet.yaml", "examples/fleet.yaml")
    .replaceAll("config/example-site.yaml", "examples/site.yaml")
    .replaceAll("config/alerts.yml", "examples/alerts.yml")
    .replaceAll("config/dashboards/", "examples/dashboards/")
    .replaceAll("config/example-events.json", "examples/events.json")
    .replaceAll("packaging/README.md", "GATEWAY.md");

/** The tree of the tarball under /usr, and the places for configuration and secrets. No configuration: it would start by itself. */
export const installed = (tree: readonly Entry[]): readonly Entry[] => [
  ...tree.map((entry) => ({ ...entry, path: `usr/${entry.path}` })),
  folder("etc/setpointd"),
  folder("etc/setpointd/credentials", 0o700),
];

/** Our own licence by name, and the texts of all that is bundled: most ask for just that. */
function copyright(
  root: string,
  licence: string,
  places: readonly string[],
  libraries: readonly Locked[],
): string {
  const parts = libraries.map(({ name, version, licence: terms }, index) => {
    const texts = globSync(`${places[index]}/{LICENSE,LICENCE,COPYING,NOTICE}*`, { cwd: root }).toSorted();
    return [
      `${name} ${version} (${terms})`,
      ...texts.map((path) => readFileSync(join(root, path), "utf8").trim()),
    ];
  });
  return [
    `setpointd is distributed under ${licence}: see LICENSE. The runtime is Node.js: see LICENSE.node.`,
    "These libraries are part of setpointd.mjs, its parts and its page:",
    ...parts.map((part) => part.join("\n\n")),
  ].join(`\n\n${"-".repeat(79)}\n\n`);
}
