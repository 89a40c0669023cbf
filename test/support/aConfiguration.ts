import { stringify } from "yaml";
import { configFrom, type Loaded } from "../../src/config/load.ts";
import type { Config } from "../../src/config/schema.ts";
import type { Environment } from "../../src/config/fields/secret.ts";

/** Long enough to warn of nothing, and a key of Standard Webhooks as well. */
export const SECRET = "c2VjcmV0IG9mIHRoZSB0ZXN0cyBvZiBzZXRwb2ludGQ=";

interface Sections {
  readonly [key: string]: unknown;
}

/** The least that loads without a mistake or warning; its secret is in the environment below. */
export const least: Sections = {
  site: { id: "depot" },
  vtn: {
    baseUrl: "https://api.partner.example",
    tokenUrl: "https://id.partner.example/connect/token",
    clientId: "depot",
    clientSecret: { env: "SECRET" },
  },
  mqtt: { url: "mqtt://127.0.0.1:1883" },
  chargers: [{ id: "bay-01", current: { max: 32 } }],
};

const isSections = (value: unknown): value is Sections =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const merged = (base: Sections, over: Sections): Sections => ({
  ...base,
  ...Object.fromEntries(
    Object.entries(over).map(([key, value]) => {
      const below = base[key];
      return [key, isSections(below) && isSections(value) ? merged(below, value) : value];
    }),
  ),
});

/** Loads the least configuration with `over` laid over it, key by key. */
const loaded = (over: Sections, env: Environment = {}): Loaded =>
  configFrom(stringify(merged(least, over)), { env: { SECRET, ...env }, directory: "/etc/setpointd" });

/** Of a configuration that must be good. */
export function configured(over: Sections, env: Environment = {}): Config {
  const result = loaded(over, env);
  if (!result.ok) throw new Error(JSON.stringify(result.mistakes));
  return result.config;
}

/** `path: found` of each mistake, `[]` for a good configuration. */
export function mistakesIn(over: Sections, env: Environment = {}): readonly string[] {
  const result = loaded(over, env);
  return result.ok ? [] : result.mistakes.map(({ path, found }) => `${path}: ${found}`);
}

/** The only mistake of a configuration. */
export function theMistake(
  over: Sections,
  env: Environment = {},
): { readonly path: string; readonly found: string; readonly expected: string } {
  const result = loaded(over, env);
  const [first, ...more] = result.ok ? [] : result.mistakes;
  if (first === undefined || more.length > 0) throw new Error(`not one mistake: ${JSON.stringify(result)}`);
  return { path: first.path, found: first.found, expected: first.expected };
}

/** `path: found` of each warning of a good configuration. */
export function warningsIn(over: Sections, env: Environment = {}): readonly string[] {
  const result = loaded(over, env);
  if (!result.ok) throw new Error(JSON.stringify(result.mistakes));
  return result.warnings.map(({ path, found }) => `${path}: ${found}`);
}
