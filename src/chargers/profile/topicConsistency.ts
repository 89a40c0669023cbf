import { topicFault } from "../topic.ts";
import { placeholdersIn } from "./render.ts";
import type { Profile } from "./schema.ts";

export interface Inconsistency {
  readonly path: readonly PropertyKey[];
  /** What would be right. */
  readonly message: string;
}

export const unknownNames = (
  path: readonly PropertyKey[],
  used: unknown,
  known: readonly string[],
): readonly Inconsistency[] =>
  placeholdersIn(used)
    .filter((name) => !known.includes(name))
    .map((name) => ({ path, message: `{${name}} to be one of: ${known.join(", ")}` }));

/** All that a name can stand for; null: anything. */
export function valuesOf(name: string, { params, names }: Profile): readonly (string | number)[] | null {
  const derived = new Map(Object.entries(names)).get(name);
  if (derived !== undefined) return Object.values(derived.is);
  return new Map(Object.entries(params)).get(name)?.values ?? null;
}

/** "told": published to; "heard": listened on, where brokers tell things of their own under $; "answered": + may stand. */
type Use = "told" | "heard" | "answered";

/** What no broker would take, with whatever a profile puts into it; what a charger's parameters are is checked with them. */
export function topicFaults(
  path: readonly PropertyKey[],
  topic: string,
  profile: Profile,
  use: Use,
): readonly Inconsistency[] {
  const variants = placeholdersIn(topic).flatMap((name) =>
    (valuesOf(name, profile) ?? []).map((value) => topic.replaceAll(`{${name}}`, String(value))),
  );
  const isWrong = [topic, ...variants].some((text) => {
    const plain = text.replaceAll(/\{[A-Za-z][A-Za-z0-9.]*\}/g, "x");
    const levels =
      use === "answered" ? plain.split("/").map((level) => (level === "+" ? "x" : level)) : [plain];
    return topicFault((use === "told" ? "" : "/") + levels.join("/")) !== null;
  });
  return isWrong ? [{ path, message: EXPECTED[use] }] : [];
}

const EXPECTED: Readonly<Record<Use, string>> = {
  told: "a topic without +, # and control characters, that does not begin with $",
  heard: "a topic without +, # and control characters",
  answered: "a topic without # and control characters; + stands for a whole level",
};
