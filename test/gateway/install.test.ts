import { execFileSync } from "node:child_process";
import { hash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { canInstall, Gateway } from "./aGateway.ts";

const root = new URL("../..", import.meta.url).pathname;
/** The one that the tests can run. */
const ARCH = process.arch === "arm64" ? "arm64" : "x64";
const DEBIAN = ARCH === "arm64" ? "arm64" : "amd64";

const scratch = mkdtempSync(join(tmpdir(), "packed-"));
afterAll(() => rmSync(scratch, { recursive: true }));

function pack(out: string, ...args: readonly string[]): string {
  const into = join(scratch, out);
  execFileSync(process.execPath, [join(root, "packaging/pack.ts"), "--out", into, ...args], {
    stdio: "inherit",
  });
  return into;
}

const prints = (folder: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    readdirSync(folder).map((name) => [name, hash("sha256", readFileSync(join(folder, name)))]),
  );

test("packing twice gives the same bytes", () => {
  const [first, second] = [pack("first", "--arch", ARCH), pack("second", "--arch", ARCH)];
  expect(prints(second)).toEqual(prints(first));
  expect(Object.keys(prints(first))).toHaveLength(2);
});

describe.skipIf(!canInstall && !process.env["CI"])("on a clean Debian without a network", () => {
  let gateway: Gateway;
  beforeAll(() => {
    gateway = Gateway.make();
  });
  afterAll(() => gateway[Symbol.dispose]());

  const install = (folder: string, version: string): string => {
    copyFileSync(join(folder, `setpointd_${version}_${DEBIAN}.deb`), gateway.path("tmp/setpointd.deb"));
    const { code, out } = gateway.run("dpkg", "-i", "/tmp/setpointd.deb");
    expect([code, out]).toEqual([0, expect.any(String)]);
    return out;
  };

  test("the package installs, names the next step, and starts nothing", () => {
    const out = install(pack("old", "--arch", ARCH, "--version", "0.0.1"), "0.0.1");
    expect(out).toContain("setpointd is installed and not started");
    expect(gateway.run("setpointd", "--version").out).toBe("0.0.1\n");
    expect(gateway.run("dpkg", "--verify", "setpointd")).toEqual({ code: 0, out: "" });
    expect(existsSync(gateway.path("etc/setpointd/config.yaml"))).toBe(false);
  });

  test("without a file an error names the option: the package holds no demo", () => {
    expect(gateway.run("setpointd")).toMatchObject({
      code: 2,
      out: expect.stringContaining("setpointd run -c FILE"),
    });
  });

  test("check accepts the example once its secrets are where the service has them", () => {
    copyFileSync(
      gateway.path("usr/share/doc/setpointd/examples/config.yaml"),
      gateway.path("etc/setpointd/config.yaml"),
    );
    expect(gateway.run("setpointd", "check")).toMatchObject({
      code: 2,
      out: expect.stringContaining("3 mistakes"),
    });
    for (const name of ["vtn-client-secret", "webhook-secret", "mqtt-password"])
      writeFileSync(gateway.path(`etc/setpointd/credentials/${name}`), "of-the-tests\n", { mode: 0o600 });
    expect(gateway.run("setpointd", "check")).toMatchObject({
      code: 0,
      out: expect.stringContaining("state in /var/lib/setpointd/state"),
    });
  });

  test("an upgrade keeps state and configuration", () => {
    mkdirSync(gateway.path("var/lib/setpointd/state"), { recursive: true });
    writeFileSync(gateway.path("var/lib/setpointd/state/site.key"), "key of the site");
    const config = `${readFileSync(gateway.path("etc/setpointd/config.yaml"), "utf8")}# ours\n`;
    writeFileSync(gateway.path("etc/setpointd/config.yaml"), config);
    const out = install(pack("new", "--arch", ARCH, "--version", "0.0.2"), "0.0.2");
    expect(out).not.toContain("Next:");
    expect(gateway.run("setpointd", "--version").out).toBe("0.0.2\n");
    expect(readFileSync(gateway.path("etc/setpointd/config.yaml"), "utf8")).toBe(config);
    expect(readFileSync(gateway.path("var/lib/setpointd/state/site.key"), "utf8")).toBe("key of the site");
  });

  test("removal leaves state, configuration and secrets; purge takes them", () => {
    expect(gateway.run("dpkg", "-r", "setpointd").code).toBe(0);
    const kept = [
      "var/lib/setpointd/state/site.key",
      "etc/setpointd/config.yaml",
      "etc/setpointd/credentials/mqtt-password",
    ];
    expect(kept.filter((path) => !existsSync(gateway.path(path)))).toEqual([]);
    expect(existsSync(gateway.path("usr/lib/setpointd"))).toBe(false);
    expect(gateway.run("dpkg", "-P", "setpointd").code).toBe(0);
    expect(["var/lib/setpointd", "etc/setpointd"].filter((path) => existsSync(gateway.path(path)))).toEqual(
      [],
    );
  });
});
