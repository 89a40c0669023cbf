import type { Locked } from "./lock.ts";

export interface SbomOptions {
  readonly version: string;
  readonly licence: string;
  /** Of the package, in seconds since the epoch. */
  readonly seconds: number;
  readonly runtime: Locked;
  readonly libraries: readonly Locked[];
}

/** What is in the package, as CycloneDX 1.6: the runtime, and each library that is in the bundle. */
export function sbom({ version, licence, seconds, runtime, libraries }: SbomOptions): string {
  const components = [component("platform", runtime), ...libraries.map((one) => component("library", one))];
  const document = {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      timestamp: new Date(seconds * 1000).toISOString(),
      component: {
        type: "application",
        "bom-ref": "setpointd",
        name: "setpointd",
        version,
        licenses: [{ license: { id: licence } }],
      },
    },
    components,
    dependencies: [{ ref: "setpointd", dependsOn: components.map((one) => one["bom-ref"]) }],
  };
  return `${JSON.stringify(document, null, 2)}\n`;
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
