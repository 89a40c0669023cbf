import type { Json } from "../../domain/audit.ts";

const PLACEHOLDER = /\{([A-Za-z][A-Za-z0-9.]*)\}/g;
const WHOLE = /^\{([A-Za-z][A-Za-z0-9.]*)\}$/;

/** What the placeholders of a template stand for; null: a parameter that is left out. */
export type Values = ReadonlyMap<string, string | number | null>;

/** A name without a value is a mistake of the profile, which its schema has refused. */
function valueOf(name: string, values: Values): string | number | null {
  const value = values.get(name);
  if (value === undefined) throw new Error(`no value for {${name}}`);
  return value;
}

/** Puts the values in. Numbers are never large or small enough for an exponent. */
export const renderText = (template: string, values: Values): string =>
  template.replaceAll(PLACEHOLDER, (_, name: string) => String(valueOf(name, values)));

/** Puts the values in, in keys too; a text that is nothing but one placeholder becomes the value with its type. */
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

/** The names that a template uses, wherever in it. */
export const placeholdersIn = (template: unknown): readonly string[] => [
  ...new Set([...(JSON.stringify(template) ?? "").matchAll(PLACEHOLDER)].map(([, name]) => name ?? "")),
];

/** A level of an MQTT topic. Configuration refuses other ids already. */
const LEVEL = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$/;

/** MQTT 5, 1.5.4: a UTF-8 string carries its length in two bytes. */
const LONGEST_TOPIC_BYTES = 65_535;

/** Wildcards and control characters make brokers hang up: one such publish would cost the connection. */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const FORBIDDEN = /[+#\u0000-\u001f\u007f-\u009f]/;

/** The id as one topic level, or null: such an id can never be part of a topic. */
export const topicLevel = (id: string): string | null => (LEVEL.test(id) ? id : null);

/** Why this topic must not be handed to the library, which checks nothing itself; null: it may. */
export function topicFault(topic: string): string | null {
  if (topic === "") return "the topic is empty";
  if (topic.startsWith("$")) return "the topic starts with $";
  if (FORBIDDEN.test(topic)) return "the topic holds a wildcard or a control character";
  if (!topic.isWellFormed()) return "the topic is not well-formed Unicode";
  if (Buffer.byteLength(topic) > LONGEST_TOPIC_BYTES) return "the topic is longer than 65535 bytes";
  return null;
}
