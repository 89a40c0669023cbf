import { KNOWN } from "./known.ts";

/** A test that names ids in its title: `what holds (F01, S7)`, or `F04 S8: what holds`. */
export interface Carrier {
  readonly file: string;
  readonly title: string;
  readonly ids: readonly string[];
}

const LITERAL = /(["'`])((?:\\.|(?!\1).)*)\1/g;
const IDS = /\(((?:[FSL]\d{1,2})(?:, [FSL]\d{1,2})*)\)|^((?:[FSL]\d{1,2},? ?)+): /;

/** Of one test file. oxfmt never breaks a text, so that a title stands on one line. */
export const carriersIn = (file: string, source: string): readonly Carrier[] =>
  source.split("\n").flatMap((line) =>
    [...line.matchAll(LITERAL)].flatMap(([, , title = ""]) => {
      const found = IDS.exec(title);
      const ids = found?.[1] ?? found?.[2];
      return ids === undefined ? [] : [{ file, title, ids: ids.split(/,? /) }];
    }),
  );

/** The page that shows which faults have a test, and which have none. */
export function faultsPage(carriers: readonly Carrier[]): string {
  const by = Map.groupBy(
    carriers.flatMap((carrier) => carrier.ids.map((id) => ({ id, carrier }))),
    ({ id }) => id,
  );
  const groups = Object.entries(KNOWN);
  const all = groups.flatMap(([, faults]) => Object.keys(faults));
  const without = all.filter((id) => !by.has(id));
  const lines = [
    "# Faults and what holds in them",
    "",
    "Generated from the titles of the tests by `npm run faults`. An id stands for one row of the failure model: F for a",
    "fault, S for what holds always, L for what holds in the end.",
    "",
    `${all.length - without.length} of ${all.length} have a test. Without one: ${without.join(", ") || "none"}.`,
  ];
  for (const [group, faults] of groups) {
    lines.push("", `## ${group}`);
    for (const [id, words] of Object.entries(faults)) {
      lines.push("", `### ${id} ${words}`, "");
      const carrying = by.get(id) ?? [];
      if (carrying.length === 0) lines.push("No test names it.");
      for (const { carrier } of carrying) lines.push(`- \`${carrier.file}\`: ${plain(carrier.title)}`);
    }
  }
  return `${lines.join("\n")}\n`;
}

/** A title as it reads, without its ids. */
const plain = (title: string): string =>
  title
    .replace(IDS, "")
    .replaceAll(/\\(.)/g, "$1")
    .replaceAll(/[|<*_]/g, "\\$&")
    .trim();

/** Ids that a title names although the failure model has none such. */
export const unknownIds = (carriers: readonly Carrier[]): readonly string[] => {
  const known = new Set(Object.values(KNOWN).flatMap((faults) => Object.keys(faults)));
  return carriers.flatMap(({ ids, file }) =>
    ids.filter((id) => !known.has(id)).map((id) => `${file}: ${id}`),
  );
};
