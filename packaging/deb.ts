import { hash } from "node:crypto";

import { type Entry, file, tarGz } from "../src/platform/tar.ts";

export interface DebOptions {
  readonly version: string;
  /** As Debian calls it, e.g. amd64. */
  readonly architecture: string;
  /** Of the whole package, in seconds since the epoch. */
  readonly seconds: number;
  /** What is installed, by path from the root of the system. */
  readonly entries: readonly Entry[];
  /** Maintainer scripts by name, e.g. `postinst`. */
  readonly scripts: Readonly<Record<string, string>>;
}

/** A Debian package: an ar archive of a version, what dpkg has to know, and what it unpacks (deb(5)). */
export function deb(options: DebOptions): Buffer {
  const { seconds, entries, scripts } = options;
  const control = [
    file("control", controlText(options)),
    file("md5sums", sums(entries)),
    ...Object.entries(scripts).map(([name, text]) => file(name, text, 0o755)),
  ];
  return Buffer.concat([
    Buffer.from("!<arch>\n"),
    ...member("debian-binary", Buffer.from("2.0\n"), seconds),
    ...member("control.tar.gz", tarGz(control, seconds, "./"), seconds),
    ...member("data.tar.gz", tarGz(entries, seconds, "./"), seconds),
  ]);
}

function controlText({ version, architecture, entries }: DebOptions): string {
  const bytes = entries.reduce((sum, entry) => sum + (entry.kind === "file" ? entry.content.length : 0), 0);
  return [
    "Package: setpointd",
    `Version: ${version}`,
    `Architecture: ${architecture}`,
    "Maintainer: setpointd maintainers <setpointd@localhost>",
    "Section: net",
    "Priority: optional",
    `Installed-Size: ${Math.ceil(bytes / 1024)}`,
    // What the runtime links; the rest of it is in the package.
    // And what the unit calls beside: systemd-notify, which speaks for the daemon. Everything else is in any Debian.
    "Depends: libc6 (>= 2.28), libstdc++6 (>= 6), libgcc-s1, libatomic1, systemd (>= 252)",
    "Suggests: mosquitto",
    "Description: charging setpoints from energy-coordination events",
    " Takes energy-coordination events from a partner, starts each vehicle's share",
    " at its own random moment, drives the depot's chargers over MQTT, and keeps a",
    " record of every decision. The runtime is included; nothing is fetched.",
    "",
  ].join("\n");
}

/** For `dpkg --verify`. */
const sums = (entries: readonly Entry[]): string =>
  entries
    .flatMap((entry) => (entry.kind === "file" ? [`${hash("md5", entry.content)}  ${entry.path}\n`] : []))
    .toSorted()
    .join("");

function member(name: string, content: Buffer, seconds: number): readonly Buffer[] {
  const head = [
    name.padEnd(16),
    String(seconds).padEnd(12),
    "0".padEnd(6),
    "0".padEnd(6),
    "100644".padEnd(8),
    String(content.length).padEnd(10),
    "`\n",
  ].join("");
  // Members start at even offsets.
  return [Buffer.from(head), content, Buffer.from(content.length % 2 === 1 ? "\n" : "")];
}
