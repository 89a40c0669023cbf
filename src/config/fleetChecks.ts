import { identityKey } from "../core/site/plug.ts";
import { pathText, type Finding, type Path } from "./mistakes.ts";
import { nearest } from "./nearest.ts";
import type { ConfigFile } from "./schema.ts";

interface Named {
  readonly path: Path;
  readonly name: string;
}

/** Every use of a name after its first. */
function repeated(all: readonly Named[], expected: string): readonly Finding[] {
  const first = new Map<string, Path>();
  return all.flatMap(({ path, name }): readonly Finding[] => {
    const earlier = first.get(name);
    if (earlier === undefined) {
      first.set(name, path);
      return [];
    }
    return [{ path, found: `${JSON.stringify(name)}, which ${pathText(earlier)} has too`, expected }];
  });
}

function limitChecks(file: ConfigFile): readonly Finding[] {
  return file.chargers.flatMap((charger, index) => {
    const path = ["chargers", index];
    const all: Finding[] = [];
    if (charger.current === undefined && charger.power === undefined)
      all.push({
        path,
        found: `${charger.id} without current and power`,
        expected: "at least one of them, e.g. current: { min: 6, max: 32 }",
      });
    for (const key of ["current", "power"] as const) {
      const limits = charger[key];
      if (limits === undefined || limits.min <= limits.max) continue;
      const [min, max, unit] =
        key === "current" ? [limits.min, limits.max, "A"] : [limits.min / 1000, limits.max / 1000, "kW"];
      all.push({
        path: [...path, key],
        found: `min ${min} ${unit}, max ${max} ${unit}`,
        expected: "a min that is not above max",
      });
    }
    return all;
  });
}

function bindingChecks(file: ConfigFile): readonly Finding[] {
  const known = file.chargers.map(({ id }) => id);
  const bound = new Map<string, number[]>(known.map((id) => [id, []]));
  const unknown = file.vehicles.flatMap(({ charger }, index): readonly Finding[] => {
    if (charger === undefined) return [];
    const there = bound.get(charger);
    if (there !== undefined) {
      there.push(index);
      return [];
    }
    const meant = nearest(charger, known);
    const expected = meant === null ? "the id of a charger in chargers" : `did you mean ${meant}?`;
    return [
      {
        path: ["vehicles", index, "charger"],
        found: `${JSON.stringify(charger)}, which is no charger`,
        expected,
      },
    ];
  });
  const ambiguous = [...bound].flatMap(([charger, there]): readonly Finding[] => {
    const [first, second] = there;
    const nameless = there.findLast((index) => file.vehicles[index]?.identities.length === 0);
    if (first === undefined || second === undefined || nameless === undefined) return [];
    const others = there.filter((index) => index !== nameless).map((index) => file.vehicles[index]?.id);
    return [
      {
        path: ["vehicles", nameless, "charger"],
        found: `${JSON.stringify(charger)}, which ${others.slice(0, 3).join(", ")} has too`,
        expected:
          "one vehicle for each charger; or identities for all of them, so that the charger can say which it is",
      },
    ];
  });
  return [...unknown, ...ambiguous];
}

/** Mistakes that span several chargers or vehicles (DESIGN 5.5). */
export const fleetChecks = (file: ConfigFile): readonly Finding[] => [
  ...repeated(
    file.chargers.map(({ id }, index) => ({ path: ["chargers", index, "id"], name: id })),
    "an id of its own",
  ),
  ...repeated(
    file.vehicles.map(({ id }, index) => ({ path: ["vehicles", index, "id"], name: id })),
    "an id of its own",
  ),
  ...repeated(
    file.vehicles.flatMap(({ identities }, index) => {
      const own = new Set<string>();
      return identities.flatMap(({ kind, value }, at): readonly Named[] => {
        const name = identityKey(kind, value);
        // One vehicle may be known by its MAC and by its EVCC id, which are the same.
        if (own.has(name) && kind === "evccid") return [];
        own.add(name);
        return [{ path: ["vehicles", index, "identities", at], name }];
      });
    }),
    "an identity that names one vehicle only",
  ),
  ...limitChecks(file),
  ...bindingChecks(file),
];
