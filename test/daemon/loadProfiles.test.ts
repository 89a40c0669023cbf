import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { stringify } from "yaml";
import { loadProfiles } from "../../src/daemon/loadProfiles.ts";
import { shipped } from "../../src/platform/packageRoot.ts";
import { leastProfile } from "../chargers/profile/aProfile.ts";

function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), "profiles-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

test("a site's own profile stands beside the built-in ones", () => {
  const { profiles, broken } = loadProfiles(
    folderWith({ "some-make.yaml": stringify(leastProfile()), "notes.txt": "" }),
  );
  expect(broken).toEqual([]);
  expect(profiles.get("some-make")?.title).toBe("Some make");
  expect(profiles.has("go-e-v2")).toBe(true);
});

test("a broken profile is explained, and costs none of the others", () => {
  const folder = folderWith({
    "some-make.yaml": stringify(leastProfile()),
    "go-e-v2.yaml": stringify(leastProfile({ profile: "go-e-v2" })),
    "other.yaml": stringify(leastProfile()),
    "torn.yaml": "profile: [",
  });
  mkdirSync(join(folder, "folder.yaml"));
  const { profiles, broken } = loadProfiles(folder);
  expect(profiles.has("some-make")).toBe(true);
  expect(profiles.get("go-e-v2")?.title).toContain("go-e");
  expect(broken.map(({ file, mistakes }) => [file, mistakes[0]?.found])).toEqual([
    [join(folder, "folder.yaml"), "a file that cannot be read"],
    [join(folder, "go-e-v2.yaml"), '"go-e-v2", which a built-in profile is called'],
    [join(folder, "other.yaml"), '"some-make"'],
    [join(folder, "torn.yaml"), expect.stringContaining("broken YAML")],
  ]);
});

test("a file with another ending is no profile, and a warning names it", () => {
  const text = stringify(leastProfile());
  const folder = folderWith({ "some-make.yml": text, "other.YAML": text, "notes.md": "" });
  const { profiles, broken } = loadProfiles(folder);
  expect(profiles.has("some-make")).toBe(false);
  expect(broken.map(({ file, mistakes }) => [file, mistakes[0]?.found, mistakes[0]?.expected])).toEqual([
    [join(folder, "other.YAML"), "a file that ends in .YAML", expect.stringMatching(/^other\.yaml: only/)],
    [
      join(folder, "some-make.yml"),
      "a file that ends in .yml",
      expect.stringMatching(/^some-make\.yaml: only/),
    ],
  ]);
});

test("most sites have no profiles of their own", () => {
  expect(loadProfiles("/nowhere/profiles")).toMatchObject({ broken: [] });
});

test("only the wanted built-in profiles are read, and the names of the others stay reserved", () => {
  const folder = folderWith({
    "some-make.yaml": stringify(leastProfile()),
    "go-e-v2.yaml": stringify(leastProfile({ profile: "go-e-v2" })),
  });
  const { profiles, broken } = loadProfiles(folder, new Set(["warp"]));
  expect([...profiles.keys()]).toEqual(["warp", "some-make"]);
  expect(broken.map(({ mistakes }) => mistakes[0]?.found)).toEqual([
    '"go-e-v2", which a built-in profile is called',
  ]);
});

test("a configuration beside the built-in profiles has none of its own", () => {
  expect(loadProfiles(shipped("config/profiles"))).toEqual(loadProfiles(null));
});
