import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** The part of JSON Schema that docs/openapi.json uses for answers. */
interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly prefixItems?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | false;
  readonly description?: string;
}

interface Api {
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

/** Keywords that make a type, and those that a type cannot express. */
const KNOWN: ReadonlySet<string> = new Set(
  `$ref type const enum anyOf items prefixItems properties required additionalProperties description
   propertyNames minimum maximum minItems maxItems`.split(/\s+/),
);

const PRIMITIVES: Readonly<Record<string, string>> = {
  string: "string",
  number: "number",
  integer: "number",
  boolean: "boolean",
  null: "null",
};

const HEAD = `/** Answers of the operator's API, made from docs/openapi.json: npm run schema. Times are ISO, UTC. */\n`;

/** The named schemas of the document as types. Throws at a schema that it cannot express. */
export const typesOf = ({ components }: Api): string =>
  HEAD +
  Object.entries(components.schemas)
    .map(([name, schema]) => `\n${comment(schema, "")}${declaration(name, schema)}\n`)
    .join("");

const declaration = (name: string, schema: Schema): string =>
  schema.type === "object"
    ? `export interface ${name} ${typeOf(schema, name, "")}`
    : `export type ${name} = ${typeOf(schema, name, "")};`;

/** Description of every moment, which the head of the file has once. */
const MOMENT = "ISO 8601, UTC.";

/** `at`: where the schema stands, for the error. */
function typeOf(schema: Schema, at: string, indent: string): string {
  const unknown = Object.keys(schema).find((keyword) => !KNOWN.has(keyword));
  if (unknown !== undefined) throw new Error(`${at}: no type is known for ${unknown}`);
  const { $ref, anyOf, type } = schema;
  if ($ref !== undefined) return $ref.slice($ref.lastIndexOf("/") + 1);
  if (anyOf !== undefined) return anyOf.map((each) => typeOf(each, at, indent)).join(" | ");
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((each) => JSON.stringify(each)).join(" | ");
  if (type === undefined) return "unknown";
  return [type]
    .flat()
    .map((each) => typeNamed(each, schema, at, indent))
    .join(" | ");
}

function typeNamed(type: string, schema: Schema, at: string, indent: string): string {
  const primitive = PRIMITIVES[type];
  if (primitive !== undefined) return primitive;
  if (type === "object") return objectType(schema, at, indent);
  const { prefixItems, items = {} } = schema;
  if (prefixItems !== undefined)
    return `readonly [${prefixItems.map((each) => typeOf(each, at, indent)).join(", ")}]`;
  const item = typeOf(items, at, indent);
  const isPlain = !/^[^{]* \| |^readonly /.test(item);
  return `readonly ${isPlain ? item : `(${item})`}[]`;
}

function objectType(
  { properties = {}, required = [], additionalProperties = false }: Schema,
  at: string,
  indent: string,
): string {
  const inner = `${indent}  `;
  const members = Object.entries(properties).map(([name, schema]) => {
    const mark = required.includes(name) ? "" : "?";
    return `${comment(schema, inner)}${inner}readonly ${name}${mark}: ${typeOf(schema, `${at}.${name}`, inner)};\n`;
  });
  if (additionalProperties !== false)
    members.push(`${inner}readonly [name: string]: ${typeOf(additionalProperties, at, inner)};\n`);
  return `{\n${members.join("")}${indent}}`;
}

const comment = ({ description }: Schema, indent: string): string =>
  description === undefined || description === MOMENT
    ? ""
    : `${indent}/** ${description.replaceAll("*/", "*\\/")} */\n`;

const ROOT = dirname(import.meta.dirname);
export const PAGE_TYPES_FILE = join(ROOT, "src/operator/page/apiAnswers.ts");

/** The types of the page, from the document as it is on disk. */
export const pageTypesText = (): string =>
  typesOf(JSON.parse(readFileSync(join(ROOT, "docs/openapi.json"), "utf8")) as Api);

if (import.meta.main) writeFileSync(PAGE_TYPES_FILE, pageTypesText());
