import { z } from "zod";

import type { Capabilities, RateUnit } from "./dialect.ts";
import type { Payload } from "./frame.ts";

/** Abilities of a station, from its configuration keys in OCPP 1.6. */

const name = z.string().max(255).catch("");

const configurationKeys = z.object({
  configurationKey: z
    .array(z.object({ key: name, value: z.string().max(4096).nullish().catch(null) }))
    .max(2000)
    .catch([]),
});

export const MEASURANDS = "MeterValuesSampledData";
export const INTERVAL = "MeterValueSampleInterval";

/** Keys that GetConfiguration asks for. */
export const ASKED = [
  "SupportedFeatureProfiles",
  "ChargeProfileMaxStackLevel",
  "ChargingScheduleAllowedChargingRateUnit",
  MEASURANDS,
  INTERVAL,
];

export const listOf = (value: string): readonly string[] =>
  value
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");

const hasFeature = (features: readonly string[] | null, feature: string): boolean | null =>
  features === null || features.length === 0
    ? null
    : features.some((found) => found.toLowerCase() === feature.toLowerCase());

/** "Current,Power"; some makes write A and W. */
function unitsOf(value: string): readonly RateUnit[] | null {
  const found = listOf(value).map((part) => part.toLowerCase());
  const units: RateUnit[] = [];
  if (found.some((part) => part === "current" || part === "a")) units.push("A");
  if (found.some((part) => part === "power" || part === "w")) units.push("W");
  return units.length === 0 ? null : units;
}

export function readCapabilities(payload: Payload): Capabilities {
  const settings = new Map<string, string>();
  for (const { key, value } of configurationKeys.parse(payload).configurationKey)
    if (value !== null && value !== undefined) settings.set(key, value);
  const features = settings.get("SupportedFeatureProfiles");
  const listed = features === undefined ? null : listOf(features);
  const level = Number(settings.get("ChargeProfileMaxStackLevel") ?? Number.NaN);
  return {
    smartCharging: hasFeature(listed, "SmartCharging"),
    remoteTrigger: hasFeature(listed, "RemoteTrigger"),
    maxStackLevel: Number.isInteger(level) && level >= 0 ? level : null,
    units: unitsOf(settings.get("ChargingScheduleAllowedChargingRateUnit") ?? ""),
    settings,
  };
}
