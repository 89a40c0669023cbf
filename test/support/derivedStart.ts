import { createHmac } from "node:crypto";

import { moment } from "./wireEvent.ts";

/** DESIGN 5.3, written down once more: when a vehicle starts, "08:03:12.345", for a start and a spread in minutes. */
export function derivedStart(
  siteKey: Buffer,
  { id, vehicle, start, spread }: { id: string; vehicle: string; start: string; spread: number },
): string {
  const wireStart = moment(start);
  const message = JSON.stringify([id, vehicle, wireStart, spread * 60_000]);
  const fraction = createHmac("sha256", siteKey).update(message).digest().readUIntBE(0, 6) / 2 ** 48;
  const at = Date.parse(wireStart) + Math.floor(fraction * (spread * 60_000 + 1));
  return new Date(at).toISOString().slice(11, 23);
}
