import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";

import { bestVerdictOf } from "../src/chargers/profile/acceptance.ts";
import type { Profile } from "../src/chargers/profile/schema.ts";
import { configFrom } from "../src/config/load.ts";
import { loadProfiles } from "../src/daemon/loadProfiles.ts";
import { profileChecks } from "../src/daemon/chargerModels.ts";
import { runToEnd } from "../src/platform/cooperative.ts";
import { countProblems } from "../src/operator/problems.ts";
import { readEvent } from "../src/vtn/dialects/partner/event.ts";
import { readingList, readWebhookBody } from "../src/vtn/dialects/partner/envelope.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const pages = globSync(["*.md", "docs/*.md", "packaging/*.md", "{src,test}/README.md"], { cwd: root });
const events = JSON.parse(read("config/example-events.json")) as readonly { readonly ID: string }[];

/** Each line of the block that shows the bodies of a delivery, with an event in it. */
const bodies = (/```text\n(EVENT\n[\s\S]*?)```/.exec(read("docs/webhook-and-partner.md"))?.[1] ?? "")
  .trim()
  .split("\n")
  .map((line) => line.replaceAll("EVENT]", `${JSON.stringify(events[0])}]`))
  .map((line) =>
    line.replace(/(^|:)EVENT(?=\}|,|$)/, (_, before) => `${before}${JSON.stringify(events[0])}`),
  );

test.each(bodies)("the webhook reads %s as its page describes", (body) => {
  const found = readWebhookBody(Buffer.from(body));
  expect(found).toMatchObject({ kind: "read", poll: false });
  if (found.kind !== "read") return;
  const ids = found.notices.map((notice) => (notice.kind === "event" ? notice.event.id : notice.id));
  expect([...ids, ...found.fetchById]).toEqual([body.includes("EXAMPLE-1") ? "EXAMPLE-1" : "EV-1"]);
  expect(found.notices.filter(({ kind }) => kind === "rejected")).toEqual([]);
});

test("the block of the page has all shapes", () => {
  expect(bodies).toHaveLength(11);
});

test("each of the example's events can be read, alone and as a list", () => {
  expect(events.map((event) => readEvent(event).kind)).toEqual(["event", "event", "event"]);
  const list = runToEnd(readingList(Buffer.from(read("config/example-events.json"))));
  expect(list).toMatchObject({ kind: "read", complete: true });
});

test.each([
  ["ID", "rejected"],
  ["modificationDateTime", "event"],
  ["priority", "event"],
  ["targets", "event"],
  ["intervalPeriod", "rejected"],
  ["payload", "rejected"],
])("an event without %s behaves as the page describes: %s", (field, kind) => {
  const rest = Object.entries(events[0] ?? {}).filter(([name]) => name !== field);
  expect(readEvent(Object.fromEntries(rest)).kind).toBe(kind);
});

/** Row of the table of docs/chargers.md. */
const row = (profile: Profile): string => {
  const units = profile.actions.setPower === undefined ? "A" : "A, W";
  const pace = profile.rate.wear === "none" ? "repeated" : `on change (${profile.rate.wear})`;
  const name = `\`${profile.profile}\`${profile.experimental ? " (experimental)" : ""}`;
  return `| ${name} | ${profile.title} | ${units} | ${pace} | ${bestVerdictOf(profile)} |`;
};

test("docs/chargers.md lists every built-in profile with its properties, and no other", () => {
  const rows = [...loadProfiles(null).profiles.values()].map(row);
  const [, table = ""] = read("docs/chargers.md").split(
    "| profile | charger | units | setpoints are | verdict |\n",
  );
  const listed = table.slice(0, table.indexOf("\n\n")).split("\n").slice(1);
  expect(listed).toEqual(rows);
});

test("docs/troubleshooting.md explains every kind of problem that status shows, and no other", () => {
  const [, section = ""] = read("docs/troubleshooting.md").split("## Problems in `status`");
  const listed = [...section.slice(0, section.indexOf("\n## ")).matchAll(/^\| `(\w+)` /gm)].map(
    ([, kind]) => kind,
  );
  expect(listed).toEqual(Object.keys(countProblems([])));
});

test("the smallest configuration of the README is valid", () => {
  const directory = mkdtempSync(join(tmpdir(), "readme-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  for (const name of ["vtn-client-secret", "webhook-secret"])
    writeFileSync(join(directory, name), "a secret of the tests", { mode: 0o600 });
  const text = /```yaml\n(site:[\s\S]*?)```/.exec(read("README.md"))?.[1] ?? "";
  const loaded = configFrom(text, { env: {}, directory }, profileChecks(loadProfiles(null)));
  expect(loaded).toMatchObject({ ok: true, warnings: [] });
});

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly anyOf?: readonly Schema[];
}

/** Every dotted path of keys that the configuration may have. */
const keysOf = ({ properties = {}, anyOf = [] }: Schema, before = ""): readonly string[] => [
  ...Object.entries(properties).flatMap(([key, inner]) => [
    `${before}${key}`,
    ...keysOf(inner, `${before}${key}.`),
  ]),
  ...anyOf.flatMap((inner) => keysOf(inner, before)),
];

/** Files of the state and fields of the status, which look like keys. */
const NO_KEYS = ["site.key", "control.sock", "webhook.refused"];

test("every configuration key that a page names exists", () => {
  const schema = JSON.parse(read("config/setpointd.schema.json")) as Schema;
  const keys = new Set([...keysOf(schema), ...NO_KEYS]);
  const KEY = /`((?:site|vtn|webhook|operator|mqtt|clock|control|report|retention)(?:\.[a-zA-Z]+)+)`/g;
  const named = pages.flatMap((page) =>
    [...read(page).matchAll(KEY)].map(([, key = ""]) => `${page} ${key}`),
  );
  expect(named.length).toBeGreaterThan(50);
  expect(named.filter((entry) => !keys.has(entry.split(" ")[1] ?? ""))).toEqual([]);
});

/** Source files of a table whose cells name files, each below the last folder that its cell named. */
const filesNamedIn = (table: string): readonly string[] =>
  table.split("\n").flatMap((row) => {
    let folder = "";
    return [...row.matchAll(/`([\w/]+(?:\/|\.ts))`/g)].flatMap(([, name = ""]) => {
      if (name.endsWith("/")) {
        folder = name;
        return [];
      }
      return globSync(`src/${folder}${name}`, { cwd: root }).length > 0 ? [`${folder}${name}`] : [name];
    });
  });

interface Api {
  readonly paths: Readonly<Record<string, unknown>>;
}

test("every route of the API is named on a page, and a page names no other", () => {
  const { paths } = JSON.parse(read("docs/openapi.json")) as Api;
  const routes = Object.keys(paths).map((path) => ({
    path,
    form: new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`),
  }));
  const guides = globSync(["README.md", "docs/*.md", "packaging/*.md"], { cwd: root });
  const named = guides.flatMap((page) =>
    [...read(page).matchAll(/(?<![\w/}])\/(?:api\/v1\/[\w/.-]*\w|healthz|readyz|metrics)/g)].map(
      ([route]) => route,
    ),
  );
  expect(
    routes.filter(({ form }) => !named.some((route) => form.test(route))).map(({ path }) => path),
  ).toEqual([]);
  expect(named.filter((route) => !routes.some(({ form }) => form.test(route)))).toEqual([]);
});

test("docs/operating.md and docs/troubleshooting.md explain every kind of alarm", () => {
  const listed = new Set(
    ["docs/operating.md", "docs/troubleshooting.md"].flatMap((page) =>
      [...read(page).matchAll(/^\| `(\w+)` /gm)].map(([, kind]) => kind),
    ),
  );
  const [, severities = ""] = read("src/daemon/alarms.ts").split("const SEVERITY");
  const kinds = [...severities.slice(0, severities.indexOf("};")).matchAll(/^  (\w+): "/gm)].map(
    ([, kind]) => kind,
  );
  expect(kinds.length).toBeGreaterThan(30);
  expect(kinds.filter((kind) => !listed.has(kind))).toEqual([]);
});

test("a webhook passes at most 56 source files on its way to the publish, as src/README.md lists them", () => {
  const [, section = ""] = read("src/README.md").split("## From a webhook to its MQTT publish");
  const files = filesNamedIn(
    section.slice(section.indexOf("| the request"), section.indexOf("\n\nWatchers")),
  );
  expect(files.filter((file) => globSync(`src/${file}`, { cwd: root }).length === 0)).toEqual([]);
  expect(new Set(files).size).toBe(files.length);
  expect(files.length).toBeLessThanOrEqual(56);
  expect(files.length).toBeGreaterThan(40);
});

test("every file of the ways through the code in src/README.md exists", () => {
  const [, section = ""] = read("src/README.md").split("## Four more ways through the code");
  const named = section.slice(0, section.indexOf("\n## ")).match(/(?<=`)[\w/]+\.tsx?(?=`)/g) ?? [];
  expect(named.length).toBeGreaterThan(30);
  expect(named.filter((file) => globSync(`src/${file}`, { cwd: root }).length === 0)).toEqual([]);
});

test("every file that src/README.md says to start in exists", () => {
  const [, section = ""] = read("src/README.md").split("## To add something, start here");
  const named = [...section.matchAll(/`(\/?)([\w./-]+\.(?:ts|tsx|yaml|yml))`/g)].filter(
    ([, , name = ""]) => name.includes("/") && !name.includes("NAME"),
  );
  const missing = named
    .map(([, fromRoot, name]) => (fromRoot === "/" ? `${name}` : `src/${name}`))
    .filter((path) => globSync(path, { cwd: root }).length === 0);
  expect(named.length).toBeGreaterThan(80);
  expect(missing).toEqual([]);
});

/** Anchor of a heading, as it is on the repository's page. */
const anchor = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, "")
    .replaceAll(" ", "-");
const anchorsOf = (page: string): readonly string[] =>
  [...read(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) => anchor(heading));

test("every link of a page leads to a file, and to a heading that it has", () => {
  const links = pages.flatMap((page) =>
    [...read(page).matchAll(/\]\((?![a-z]+:)([^)#]*)(?:#([^)]+))?\)/g)].map(([link, to = "", heading]) => ({
      link: `${page} ${link}`,
      file: to === "" ? page : posix.join(posix.dirname(page), to),
      heading,
    })),
  );
  expect(links.length).toBeGreaterThan(50);
  const broken = links.filter(({ file, heading }) => {
    if (globSync(file, { cwd: root }).length === 0) return true;
    return heading !== undefined && !anchorsOf(file).includes(heading);
  });
  expect(broken.map(({ link }) => link)).toEqual([]);
});

test("docs/README.md lists every page of its folder", () => {
  const list = read("docs/README.md");
  const missing = globSync("docs/*.md", { cwd: root })
    .map((page) => posix.basename(page))
    .filter((page) => page !== "README.md" && !list.includes(`](${page})`));
  expect(missing).toEqual([]);
});

test("the README is a short way in", () => {
  expect(read("README.md").split("\n").length).toBeLessThanOrEqual(220);
});
