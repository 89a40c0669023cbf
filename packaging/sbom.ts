import { hash } from "node:crypto";

import type { Locked } from "./lock.ts";
import type { Arch } from "./runtime.ts";

export interface SbomOptions {
  readonly version: string;
  readonly licence: string;
  /** Of the package, in seconds since the epoch. */
  readonly seconds: number;
  readonly arch: Arch;
  readonly runtime: Locked;
  readonly libraries: readonly Locked[];
}

/** What is in the package, as CycloneDX 1.6: the runtime, and each library that is in the bundle. */
export function sbom({ version, licence, seconds, arch, runtime, libraries }: SbomOptions): string {
  // Vulnerabilities of the runtime are published under this name, not under that of the npm package that carries it.
  const cpe = `cpe:2.3:a:nodejs:node.js:${runtime.version}:*:*:*:-:*:*:*`;
  const components = [
    { ...component("platform", runtime), cpe },
    ...libraries.map((one) => component("library", one)),
  ];
  const self = `pkg:generic/setpointd@${version}?arch=${arch}&os=linux`;
  const document = {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    serialNumber: serialOf(JSON.stringify([self, seconds, components])),
    version: 1,
    metadata: {
      timestamp: new Date(seconds * 1000).toISOString(),
      component: {
        type: "application",
        "bom-ref": self,
        name: "setpointd",
        version,
        purl: self,
        licenses: [{ license: { id: licence } }],
      },
    },
    components,
    dependencies: [{ ref: self, dependsOn: components.map((one) => one["bom-ref"]) }],
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** A UUID of version 8 made from the content: the same package has the same serial. */
function serialOf(content: string): string {
  const digest = hash("sha256", content);
  const variant = "89ab"[Number.parseInt(digest.charAt(16), 16) % 4];
  return `urn:uuid:${digest.slice(0, 8)}-${digest.slice(8, 12)}-8${digest.slice(13, 16)}-${variant}${digest.slice(17, 20)}-${digest.slice(20, 32)}`;
}

function component(type: "platform" | "library", { name, version, licence, sha512 }: Locked) {
  const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
  return {
    type,
    "bom-ref": purl,
    name,
    version,
    purl,
    licenses: [/ (OR|AND|WITH) /.test(licence) ? { expression: licence } : { license: { id: licence } }],
    hashes: [{ alg: "SHA-512", content: sha512 }],
  };
}
