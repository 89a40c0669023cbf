/**
 * Loaded before the daemon (`node --import`), in the soak only: on SIGUSR2 it collects all garbage, and writes how many
 * bytes are left alive into the file that SOAK_HEAP names. A heap that is not collected first only tells when it was.
 */
import { renameSync, writeFileSync } from "node:fs";

import { aliveInHeap } from "./aliveInHeap.ts";

const file = process.env["SOAK_HEAP"] ?? "";

process.on("SIGUSR2", () => {
  writeFileSync(`${file}.new`, String(aliveInHeap()));
  renameSync(`${file}.new`, file);
});
