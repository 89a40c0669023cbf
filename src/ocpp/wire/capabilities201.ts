import { z } from "zod";

import type { Capabilities, MeterSettings, RateUnit, Setting } from "./dialect.ts";
import type { Payload } from "./frame.ts";

/** Abilities of a station, from its device model in OCPP 2.0.1. */

/** Component and variable of each setting, joined by a dot. */
const AVAILABLE = "SmartChargingCtrlr.Available";
const ENABLED = "SmartChargingCtrlr.Enabled";
const STACK_LEVEL = "SmartChargingCtrlr.ProfileStackLevel";
const RATE_UNIT = "SmartChargingCtrlr.RateUnit";
const MEASURANDS = "SampledDataCtrlr.TxUpdatedMeasurands";
const INTERVAL = "SampledDataCtrlr.TxUpdatedInterval";
const ASKED = [AVAILABLE, ENABLED, STACK_LEVEL, RATE_UNIT, MEASURANDS, INTERVAL];

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

const listOf = (value: string): readonly string[] =>
  value
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");

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

/** Settings of the meter values that differ from the wanted ones. */
export function meterVariables(
  { every, measurands }: MeterSettings,
  { settings }: Pick<Capabilities, "settings">,
): readonly Setting[] {
  const wanted: readonly Setting[] = [
    { key: MEASURANDS, value: measurands.join(","), before: settings.get(MEASURANDS) ?? null },
    { key: INTERVAL, value: String(every), before: settings.get(INTERVAL) ?? null },
  ];
  return wanted.filter(
    ({ value, before }) =>
      before === null || listOf(before).toSorted().join() !== listOf(value).toSorted().join(),
  );
}

/** Payload of SetVariables. */
export const setVariable = ({ key, value }: Pick<Setting, "key" | "value">): Payload => ({
  setVariableData: [{ ...variableOf(key), attributeValue: value }],
});
