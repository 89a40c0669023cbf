import { writeFileSync } from "node:fs";
import * as z from "zod";

import { profileFile } from "./profile/consistency.ts";

/** Where the generated schema is committed; the profiles point editors to it. */
export const PROFILE_SCHEMA_FILE = new URL("../../config/profile.schema.json", import.meta.url);

/** A charger profile as JSON Schema, for editors. */
export const profileSchemaText = (): string =>
  `${JSON.stringify({ title: "setpointd charger profile", ...z.toJSONSchema(profileFile, { io: "input" }) }, null, 2)}\n`;

if (import.meta.main) {
  if (process.argv.includes("--write")) writeFileSync(PROFILE_SCHEMA_FILE, profileSchemaText());
  else process.stdout.write(profileSchemaText());
}
