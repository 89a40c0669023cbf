import { z } from "zod";

import type { Capabilities, MeterSettings, RateUnit, Setting } from "./dialect.ts";
import type { Payload } from "./frame.ts";

/** Abilities of a station and the settings of its meter values, in both versions. */

/** Members of a list as settings have it. */
export const listOf = (value: string): readonly string[] =>
  value
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");

/** Settings of the meter values that differ from the wanted ones. `keys`: their names on the wire. */
const meterSettingsBy =
  (keys: { readonly measurands: string; readonly every: string }) =>
  (
    { every, measurands }: MeterSettings,
    { settings }: Pick<Capabilities, "settings">,
  ): readonly Setting[] => {
    const wanted: readonly Setting[] = [
      { key: keys.measurands, value: measurands.join(","), before: settings.get(keys.measurands) ?? null },
      { key: keys.every, value: String(every), before: settings.get(keys.every) ?? null },
    ];
    return wanted.filter(
      ({ value, before }) =>
        before === null || listOf(before).toSorted().join() !== listOf(value).toSorted().join(),
    );
  };

const key = z.string().max(255).catch("");

const configurationKeys = z.object({
  configurationKey: z
    .array(z.object({ key, value: z.string().max(4096).nullish().catch(null) }))
    .max(2000)
    .catch([]),
});

const KEYS_16 = { measurands: "MeterValuesSampledData", every: "MeterValueSampleInterval" };

/** Payload of GetConfiguration. */
export const capabilityKeys: Payload = {
  key: [
    "SupportedFeatureProfiles",
    "ChargeProfileMaxStackLevel",
    "ChargingScheduleAllowedChargingRateUnit",
    ...Object.values(KEYS_16),
  ],
};

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

/** Abilities of a station, from its configuration keys in OCPP 1.6. */
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

export const meterSettings16 = meterSettingsBy(KEYS_16);

/** Component and variable of each setting, joined by a dot. */
const AVAILABLE = "SmartChargingCtrlr.Available";
const ENABLED = "SmartChargingCtrlr.Enabled";
const STACK_LEVEL = "SmartChargingCtrlr.ProfileStackLevel";
const RATE_UNIT = "SmartChargingCtrlr.RateUnit";
const KEYS_201 = {
  measurands: "SampledDataCtrlr.TxUpdatedMeasurands",
  every: "SampledDataCtrlr.TxUpdatedInterval",
};
const ASKED = [AVAILABLE, ENABLED, STACK_LEVEL, RATE_UNIT, ...Object.values(KEYS_201)];

const variableOf = (key: string) => {
  const [component = "", variable = ""] = key.split(".");
  return { component: { name: component }, variable: { name: variable } };
};

/** Payload of GetVariables. */
export const capabilityVariables: Payload = { getVariableData: ASKED.map(variableOf) };

const name = z.object({ name: z.string().max(64) });
const results = z.object({
  getVariableResult: z
    .array(
      z.object({
        attributeStatus: z.string().max(64),
        attributeValue: z.string().max(2500).nullish().catch(null),
        component: name,
        variable: name,
      }),
    )
    .max(2000)
    .catch([]),
});

/** Abilities of a station, from its device model in OCPP 2.0.1. */
export function readVariables(payload: Payload): Capabilities {
  const settings = new Map<string, string>();
  for (const { attributeStatus, attributeValue, component, variable } of results.parse(payload)
    .getVariableResult)
    if (attributeStatus === "Accepted" && attributeValue !== null && attributeValue !== undefined)
      settings.set(`${component.name}.${variable.name}`, attributeValue);
  const isOn = [settings.get(AVAILABLE), settings.get(ENABLED)].map((value) => value?.toLowerCase());
  const level = Number(settings.get(STACK_LEVEL) ?? Number.NaN);
  const units = listOf(settings.get(RATE_UNIT) ?? "").filter(
    (unit): unit is RateUnit => unit === "A" || unit === "W",
  );
  return {
    smartCharging: isOn.includes("false") ? false : isOn.includes("true") ? true : null,
    remoteTrigger: null,
    maxStackLevel: Number.isInteger(level) && level >= 0 ? level : null,
    units: units.length === 0 ? null : units,
    settings,
  };
}

/** Payload of SetVariables. */
export const setVariable = ({ key, value }: Pick<Setting, "key" | "value">): Payload => ({
  setVariableData: [{ ...variableOf(key), attributeValue: value }],
});

export const meterSettings201 = meterSettingsBy(KEYS_201);
