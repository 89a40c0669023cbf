import * as z from "zod";
import { watts } from "../core/units.ts";

/** A number with its unit in the sentence; bounds are inclusive. */
export const quantity = (least: number, most: number, unit: string, example: number) =>
  z
    .number({ error: `a number of ${unit} from ${least} to ${most}, e.g. ${example}` })
    .min(least)
    .max(most);

/** A whole number; bounds are inclusive. */
export const count = (least: number, most: number) =>
  z
    .int({ error: `a whole number from ${least} to ${most}` })
    .min(least)
    .max(most);

/** kW in the file, whole watts inside. 10 MW is more than any outlet: such a number was meant in watts. */
export const kilowatts = (least: number) =>
  quantity(least, 10_000, "kW", 22).transform((kW) => watts(Math.round(kW * 1000)));
