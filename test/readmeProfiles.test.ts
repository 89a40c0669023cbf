import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

import { reachOf } from "../src/chargers/profile/reach.ts";
import type { Profile } from "../src/chargers/profile/schema.ts";
import { loadProfiles } from "../src/loadProfiles.ts";

const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");

/** As the table of the README has it. */
const row = (profile: Profile): string => {
  const takes = profile.actions.setPower === undefined ? "A" : "A, W";
  const pace = profile.rate.wear === "none" ? "repeated" : `on change (${profile.rate.wear})`;
  const name = `\`${profile.profile}\`${profile.experimental ? " (experimental)" : ""}`;
  return `| ${name} | ${profile.title} | ${takes} | ${pace} | ${reachOf(profile)} |`;
};

test("the README lists every built-in profile as it is, and no other", () => {
  const rows = [...loadProfiles(null).profiles.values()].map(row);
  const [, table = ""] = readme.split("| profile | charger | told in | setpoints are | verdict |\n");
  const listed = table.slice(0, table.indexOf("\n\n")).split("\n").slice(1);
  expect(listed).toEqual(rows);
});
