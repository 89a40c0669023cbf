import { readFileSync, writeFileSync } from "node:fs";
import * as z from "zod";

import { profileFile } from "../src/chargers/profile/consistency.ts";
import { fleetFile, siteFile } from "../src/config/fleet.ts";
import { configFile } from "../src/config/schema.ts";
import { ocppFile } from "../src/config/sections/ocpp.ts";

/** JSON Schema of a file that people write, for editors: what may be written, not what it becomes. */
export class JsonSchema {
  readonly #file: URL;
  readonly text: string;

  /** `name`: of the generated file. The examples refer editors to it. */
  constructor(name: string, title: string, schema: z.ZodType) {
    this.#file = new URL(`../config/${name}.schema.json`, import.meta.url);
    this.text = `${JSON.stringify({ title, ...z.toJSONSchema(schema, { io: "input" }) }, null, 2)}\n`;
  }

  /** The generated file as it was committed. */
  committed(): string {
    return readFileSync(this.#file, "utf8");
  }

  write(): void {
    writeFileSync(this.#file, this.text);
  }
}

export const JSON_SCHEMAS = {
  site: new JsonSchema("setpointd", "setpointd configuration", configFile),
  profile: new JsonSchema("profile", "setpointd charger profile", profileFile),
  ocpp: new JsonSchema("ocpp", "setpointd ocpp configuration", ocppFile),
  fleet: new JsonSchema("fleet", "setpointd fleet configuration", fleetFile),
  siteOfFleet: new JsonSchema("site", "setpointd site of a fleet", siteFile),
};

if (import.meta.main) for (const schema of Object.values(JSON_SCHEMAS)) schema.write();
