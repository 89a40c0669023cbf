import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";

import * as z from "zod";

import { bundle } from "./bundle.ts";
import { contents, installed } from "./contents.ts";
import { deb } from "./deb.ts";
import { readLock } from "./lock.ts";
import { buildPage } from "./page.ts";
import { type Arch, runtimeFor } from "./runtime.ts";
import { tarGz } from "../src/platform/tar.ts";

const root = dirname(import.meta.dirname);
const DEBIAN: Readonly<Record<Arch, string>> = { x64: "amd64", arm64: "arm64" };

const manifest = z
  .object({ version: z.string(), license: z.string() })
  .parse(JSON.parse(readFileSync(join(root, "package.json"), "utf8")));

/** $SOURCE_DATE_EPOCH, else the time of the last commit: the same source gives the same bytes. */
const secondsOf = (): number =>
  Number(
    process.env["SOURCE_DATE_EPOCH"] ??
      execFileSync("git", ["log", "-1", "--format=%ct"], { cwd: root, encoding: "utf8" }).trim(),
  );

const scripts = Object.fromEntries(
  ["postinst", "prerm", "postrm"].map((name) => [
    name,
    readFileSync(join(root, "packaging/debian", name), "utf8"),
  ]),
);

const { values } = parseArgs({
  options: {
    out: { type: "string", default: join(root, "dist") },
    arch: { type: "string", multiple: true, default: ["x64", "arm64"] },
    // For packages of a build that is no release, and for trying an upgrade.
    version: { type: "string", default: manifest.version },
    form: { type: "string", multiple: true, default: ["tar.gz", "deb"] },
  },
});
const { version } = values;
const seconds = secondsOf();
const lock = readLock(root);
const daemon = await bundle(root);
const page = await buildPage(root);
mkdirSync(values.out, { recursive: true });

for (const arch of z.array(z.enum(["x64", "arm64"])).parse(values.arch)) {
  const runtime = runtimeFor(arch, root, lock(`node_modules/node-linux-${arch}`));
  if (runtime === null) {
    process.stdout.write(`left out: ${arch}, whose runtime is not here and cannot be fetched\n`);
    continue;
  }
  const tree = contents(root, arch, {
    version,
    licence: manifest.license,
    seconds,
    bundle: daemon,
    page,
    runtime,
  });
  const architecture = DEBIAN[arch];
  const name = `setpointd-${version}-linux-${arch}`;
  const forms = {
    "tar.gz": () => [`${name}.tar.gz`, tarGz(tree, seconds, `${name}/`)] as const,
    deb: () =>
      [
        `setpointd_${version}_${architecture}.deb`,
        deb({ version, architecture, seconds, entries: installed(tree), scripts }),
      ] as const,
  };
  for (const form of z.array(z.enum(["tar.gz", "deb"])).parse(values.form)) {
    const [fileName, content] = forms[form]();
    writeFileSync(join(values.out, fileName), content);
    process.stdout.write(`${join(values.out, fileName)}  ${Math.round(content.length / 1e6)} MB\n`);
  }
}
