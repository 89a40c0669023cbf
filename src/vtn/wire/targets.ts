import { z } from "zod";
import type { Target } from "../../core/control/event.ts";
import { fieldsOf, spelling } from "./fields.ts";
import { readId } from "./id.ts";
import { isProblem, misfit } from "./problem.ts";

/** More target values than any site has vehicles: an event beyond it is there to cost time and room. */
const MOST_TARGET_VALUES = 100_000;
/** More report descriptors than any partner has questions. */
const MOST_REPORT_DESCRIPTORS = 100;

const targetNames = spelling(["targetType", "values"]);
const descriptorNames = spelling(["targets"]);

/** What cannot be read, and where it stands. */
interface Misfit {
  readonly path: readonly (string | number)[];
  readonly reason: string;
}

/** Loops by hand, not schemas: 20,000 vehicles in one event are ordinary. Ends at the first bad entry. */
export const targets = z
  .unknown()
  .optional()
  .transform((found, context): readonly Target[] => {
    if (found === undefined) return [];
    const read = Array.isArray(found) ? readTargets(found) : misfitAt([], found, "a list", "a JSON array");
    if (!("reason" in read)) return read;
    context.addIssue({ code: "custom", message: read.reason, path: [...read.path] });
    return z.NEVER;
  });

function readTargets(found: readonly unknown[]): readonly Target[] | Misfit {
  const read: Target[] = [];
  for (const [index, entry] of found.entries()) {
    const fields = fieldsOf(targetNames, entry);
    if (fields === undefined) return misfitAt([index], entry, "a target", "a JSON object");
    const { targetType = "", values = [] } = fields;
    if (typeof targetType !== "string")
      return misfitAt([index, "targetType"], targetType, "a text", "a JSON string");
    if (!Array.isArray(values)) return misfitAt([index, "values"], values, "a list", "an array of ids");
    const ids: string[] = [];
    for (const [place, value] of values.entries()) {
      const id = readId(value);
      if (isProblem(id)) return { path: [index, "values", place], reason: id.problem };
      ids.push(id);
    }
    read.push({ type: targetType, values: ids });
  }
  return read;
}

const misfitAt = (path: Misfit["path"], found: unknown, what: string, expected: string): Misfit => ({
  path,
  reason: misfit(found, what, expected).problem,
});

/** Counted before anything of it is read: more than any partner sends. Null: it is within bounds. */
export function overfull(event: {
  readonly targets?: unknown;
  readonly reportDescriptors?: unknown;
}): Misfit | null {
  const descriptors = Array.isArray(event.reportDescriptors) ? event.reportDescriptors : [];
  if (descriptors.length > MOST_REPORT_DESCRIPTORS) {
    const reason = `${descriptors.length} report descriptors; expected at most ${MOST_REPORT_DESCRIPTORS}`;
    return { path: ["reportDescriptors"], reason };
  }
  let room = MOST_TARGET_VALUES - valuesIn(event.targets, MOST_TARGET_VALUES);
  if (room < 0) return tooManyValues(["targets"]);
  for (const [index, descriptor] of descriptors.entries()) {
    room -= valuesIn(fieldsOf(descriptorNames, descriptor)?.targets, room);
    if (room < 0) return tooManyValues(["reportDescriptors", index, "targets"]);
  }
  return null;
}

const tooManyValues = (path: Misfit["path"]): Misfit => ({
  path,
  reason: `more than ${MOST_TARGET_VALUES} target values in one event; expected at most as many`,
});

/** A target without values counts as one. Counts only until there are more than `most`. */
function valuesIn(found: unknown, most: number): number {
  if (!Array.isArray(found)) return 0;
  if (found.length > most) return found.length;
  let count = 0;
  for (const entry of found) {
    const values = fieldsOf(targetNames, entry)?.values;
    count += Array.isArray(values) ? Math.max(1, values.length) : 1;
    if (count > most) return count;
  }
  return count;
}
