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

/** As Array.isArray, which does not narrow readonly lists. */
export const isList = (json: Json): json is readonly Json[] => Array.isArray(json);

/** Names of all placeholders in a template. */
export const placeholdersIn = (template: unknown): readonly string[] => [
  ...new Set([...(JSON.stringify(template) ?? "").matchAll(PLACEHOLDER)].map(([, name]) => name ?? "")),
];

/** A level of an MQTT topic. Configuration refuses other ids already. */
const LEVEL = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$/;

/** MQTT 5, 1.5.4: the length of a string has two bytes. */
const LONGEST_TOPIC_BYTES = 65_535;

/** Brokers disconnect clients that publish wildcards or control characters. */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const FORBIDDEN = /[+#\u0000-\u001f\u007f-\u009f]/;

/** The id as one topic level. Null: not possible. */
export const topicLevel = (id: string): string | null => (LEVEL.test(id) ? id : null);

/** Reason why this topic must not be published. The library does not check it. Null: valid. */
export function topicFault(topic: string): string | null {
  if (topic === "") return "the topic is empty";
  if (topic.startsWith("$")) return "the topic starts with $";
  if (FORBIDDEN.test(topic)) return "the topic holds a wildcard or a control character";
  if (!topic.isWellFormed()) return "the topic is not well-formed Unicode";
  if (Buffer.byteLength(topic) > LONGEST_TOPIC_BYTES) return "the topic is longer than 65535 bytes";
  return null;
}
