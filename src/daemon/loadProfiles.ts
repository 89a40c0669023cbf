import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

import { profileFile } from "../chargers/profile/consistency.ts";
import type { Profile } from "../chargers/profile/schema.ts";
import { readYaml } from "../config/document.ts";
import { findings, sentence, type Mistake, pathText } from "../config/explain.ts";
import { shipped } from "../platform/packageRoot.ts";

/** A profile file that cannot be used, and why. */
interface BrokenProfile {
  readonly file: string;
  readonly mistakes: readonly Mistake[];
}

/** All that could be read; one broken file costs none of the others. */
export interface LoadedProfiles {
  /** By name, built-in ones first. */
  readonly profiles: ReadonlyMap<string, Profile>;
  readonly broken: readonly BrokenProfile[];
}

const EXAMPLE = "config/profiles/go-e-v2.yaml";

/** A profile from its text. Each mistake has its place, the value that was found and the right one. */
export function profileFrom(text: string): Profile | readonly Mistake[] {
  const yaml = readYaml(text, { what: "a charger profile", example: EXAMPLE });
  if (!yaml.ok) return yaml.mistakes;
  const { value, lineOf } = yaml.source;
  const parsed = profileFile.safeParse(value, { error: sentence });
  if (parsed.success) return parsed.data;
  return findings(parsed.error, value).map(({ path, found, expected }) => ({
    path: pathText(path),
    line: lineOf(path),
    column: null,
    found,
    expected,
  }));
}

/**
 * The built-in profiles, and those of a site: the folder `profiles` beside its configuration, null or absent: none.
 * `wanted`: names of the built-in profiles that are read; a site's own are all read. Absent: all.
 */
export function loadProfiles(siteFolder: string | null, wanted?: ReadonlySet<string>): LoadedProfiles {
  const builtIn = shipped("config/profiles");
  const taken = new Set(yamlIn(builtIn));
  const profiles = new Map<string, Profile>();
  const broken: BrokenProfile[] = [];
  // A configuration beside the built-in profiles has none of its own.
  const hasOwn = siteFolder !== null && resolve(siteFolder) !== builtIn;
  for (const folder of [builtIn, ...(hasOwn ? [siteFolder] : [])]) {
    const isOwn = folder !== builtIn;
    for (const name of yamlIn(folder)) {
      if (!isOwn && wanted?.has(name) === false) continue;
      const file = join(folder, `${name}.yaml`);
      const read = profileIn(file);
      const mistakes = "profile" in read ? nameMistakes(read, name, isOwn && taken.has(name)) : read;
      if ("profile" in read && mistakes.length === 0) profiles.set(name, read);
      else broken.push({ file, mistakes });
    }
    for (const [name, ending] of otherwiseYamlIn(folder))
      broken.push({
        file: join(folder, `${name}${ending}`),
        mistakes: [
          whole(`a file that ends in ${ending}`, `${name}.yaml: only files that end in .yaml are read`),
        ],
      });
  }
  return { profiles, broken };
}

const yamlIn = (folder: string): readonly string[] =>
  filesIn(folder).flatMap((file) => (file.endsWith(".yaml") ? [file.slice(0, -5)] : []));

/** Meant as profiles, as it seems: each with its ending. */
const otherwiseYamlIn = (folder: string): readonly (readonly [name: string, ending: string])[] =>
  filesIn(folder).flatMap((file) => {
    const [, name = "", ending = ""] = /^(.+)(\.ya?ml)$/i.exec(file) ?? [];
    return ending === "" || ending === ".yaml" ? [] : [[name, ending] as const];
  });

function filesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder).toSorted();
  } catch {
    // Most sites have no profiles of their own.
    return [];
  }
}

function profileIn(file: string): Profile | readonly Mistake[] {
  try {
    return profileFrom(readFileSync(file, "utf8"));
  } catch {
    return [whole("a file that cannot be read", "a file that this user may read")];
  }
}

function nameMistakes({ profile }: Profile, name: string, isTaken: boolean): readonly Mistake[] {
  const found = JSON.stringify(profile);
  if (profile !== name) return [{ ...whole(found, `${name}, as the file is called`), path: "profile" }];
  // Built-in profiles are tested. Another one of the same name would be mistaken for it.
  if (isTaken)
    return [
      { ...whole(`${found}, which a built-in profile is called`, "a name of its own"), path: "profile" },
    ];
  return [];
}

const whole = (found: string, expected: string): Mistake => ({
  path: "",
  line: null,
  column: null,
  found,
  expected,
});
