import type { Charger } from "../core/site/charger.ts";
import type { Finding } from "./mistakes.ts";
import { nearest } from "./nearest.ts";
import type { ConfigFile } from "./schema.ts";

/** What is known of charger makes, as far as a configuration is held against it. */
export interface Makes {
  /** What cannot be done with these makes. */
  readonly mistakes: (file: ConfigFile) => readonly Finding[];
  /** What works, but was perhaps not meant. */
  readonly warnings: (file: ConfigFile) => readonly Finding[];
  /** A charger with what its make brings along. */
  readonly equip: (charger: Charger) => Charger;
}

/** Chargers whose profile is none of these. */
export const unknownProfiles = (
  { chargers }: ConfigFile,
  known: readonly string[],
  broken: ReadonlyMap<string, string> = new Map(),
): readonly Finding[] =>
  chargers.flatMap(({ profile }, index): readonly Finding[] => {
    if (known.includes(profile)) return [];
    const path = ["chargers", index, "profile"];
    const why = broken.get(profile);
    if (why !== undefined) return [{ path, found: `${profile}, whose file cannot be used`, expected: why }];
    const meant = nearest(profile, known);
    const names = `one of: ${known.join(", ")}`;
    return [
      {
        path,
        found: `${JSON.stringify(profile)}, which is no profile`,
        expected: meant === null ? names : `did you mean ${meant}? ${names}`,
      },
    ];
  });

/** Without profiles: chargers that speak the native topics only. */
export const NATIVE_ONLY: Makes = {
  mistakes: (file) => unknownProfiles(file, ["native"]),
  warnings: () => [],
  equip: (charger) => charger,
};
