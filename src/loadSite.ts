import { dirname, join } from "node:path";

import type { Profile } from "./chargers/profile/schema.ts";
import { loadConfig, type Loaded, type SecretsNeed } from "./config/load.ts";
import type { Environment } from "./config/secret.ts";
import { loadProfiles } from "./loadProfiles.ts";
import { makesOf } from "./makes.ts";

/** A configuration with the charger profiles that it is held against: the built-in ones, and those in `profiles` beside it. */
export function loadSite(
  file: string,
  env: Environment,
  secrets: SecretsNeed = "needed",
): { readonly loaded: Loaded; readonly profiles: ReadonlyMap<string, Profile> } {
  const known = loadProfiles(join(dirname(file), "profiles"));
  return { loaded: loadConfig(file, env, makesOf(known), secrets), profiles: known.profiles };
}
