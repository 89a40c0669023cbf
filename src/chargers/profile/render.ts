import type { Json } from "../../domain/audit.ts";

const PLACEHOLDER = /\{([A-Za-z][A-Za-z0-9.]*)\}/g;
const WHOLE = /^\{([A-Za-z][A-Za-z0-9.]*)\}$/;

/** Values of placeholders. Null: an optional parameter that is left out. */
export type Values = ReadonlyMap<string, string | number | null>;

/** The schema has rejected profiles with an unknown name. */
function valueOf(name: string, values: Values): string | number | null {
  const value = values.get(name);
  if (value === undefined) throw new Error(`no value for {${name}}`);
  return value;
}

/** Replaces placeholders. Numbers never need an exponent. */
export const renderText = (template: string, values: Values): string =>
  template.replaceAll(PLACEHOLDER, (_, name: string) => String(valueOf(name, values)));

/**
 * Replaces placeholders in values and keys. A text that is one placeholder becomes the value with its type.
 */
export function renderJson(template: Json, values: Values): Json {
  if (typeof template === "string") {
    const [, name] = WHOLE.exec(template) ?? [];
    return name === undefined ? renderText(template, values) : valueOf(name, values);
  }
  if (typeof template !== "object" || template === null) return template;
  if (isList(template)) return template.map((entry) => renderJson(entry, values));
  return Object.fromEntries(
    Object.entries(template).map(([key, entry]) => [renderText(key, values), renderJson(entry, values)]),
  );
}

/** Array.isArray for readonly lists, which it does not narrow itself. */
export const isList = (json: Json): json is readonly Json[] => Array.isArray(json);

/** Names of all placeholders in a template. */
export const placeholdersIn = (template: unknown): readonly string[] => [
  ...new Set([...(JSON.stringify(template) ?? "").matchAll(PLACEHOLDER)].map(([, name]) => name ?? "")),
];
