import { writeFileSync } from "node:fs";
import * as z from "zod";

import { profileFile } from "../chargers/profile/consistency.ts";
import { fleetFile, siteFile } from "./fleet.ts";
import { configFile } from "./schema.ts";
import { ocppFile } from "./sections/ocpp.ts";

/** File of the generated schema. example.yaml refers editors to it. */
export const SCHEMA_FILE = new URL("../../config/setpointd.schema.json", import.meta.url);

/** The configuration as JSON Schema, for editors: what may be written, not what it becomes. */
export const jsonSchemaText = (): string =>
  `${JSON.stringify({ title: "setpointd configuration", ...z.toJSONSchema(configFile, { io: "input" }) }, null, 2)}\n`;

/** File of the generated schema. ocpp-example.yaml refers editors to it. */
export const OCPP_SCHEMA_FILE = new URL("../../config/ocpp.schema.json", import.meta.url);

/** The configuration of the OCPP bridge as JSON Schema, for editors. */
export const ocppSchemaText = (): string =>
  `${JSON.stringify({ title: "setpointd ocpp configuration", ...z.toJSONSchema(ocppFile, { io: "input" }) }, null, 2)}\n`;

/** Files of the generated schemas. example-fleet.yaml and example-site.yaml refer editors to them. */
export const FLEET_SCHEMA_FILE = new URL("../../config/fleet.schema.json", import.meta.url);
export const SITE_SCHEMA_FILE = new URL("../../config/site.schema.json", import.meta.url);

/** The configuration of a fleet as JSON Schema, for editors. */
export const fleetSchemaText = (): string =>
  `${JSON.stringify({ title: "setpointd fleet configuration", ...z.toJSONSchema(fleetFile, { io: "input" }) }, null, 2)}\n`;

/** The file of a site of a fleet as JSON Schema, for editors. */
export const siteSchemaText = (): string =>
  `${JSON.stringify({ title: "setpointd site of a fleet", ...z.toJSONSchema(siteFile, { io: "input" }) }, null, 2)}\n`;

/** File of the generated schema. The profiles refer editors to it. */
export const PROFILE_SCHEMA_FILE = new URL("../../config/profile.schema.json", import.meta.url);

/** A charger profile as JSON Schema, for editors. */
export const profileSchemaText = (): string =>
  `${JSON.stringify({ title: "setpointd charger profile", ...z.toJSONSchema(profileFile, { io: "input" }) }, null, 2)}\n`;

if (import.meta.main) {
  if (process.argv.includes("--write")) {
    writeFileSync(SCHEMA_FILE, jsonSchemaText());
    writeFileSync(PROFILE_SCHEMA_FILE, profileSchemaText());
    writeFileSync(OCPP_SCHEMA_FILE, ocppSchemaText());
    writeFileSync(FLEET_SCHEMA_FILE, fleetSchemaText());
    writeFileSync(SITE_SCHEMA_FILE, siteSchemaText());
  } else process.stdout.write(process.argv.includes("--profile") ? profileSchemaText() : jsonSchemaText());
}
