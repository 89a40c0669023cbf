import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const filesIn = (folder: string): readonly string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => `${folder}/${name}`);
const text = (file: string): string => readFileSync(join(root, file), "utf8");
const source = filesIn("src");
const tests = new Set(filesIn("test"));

/** Over 300 lines, and why that reads better than two files. */
const LONG: Readonly<Record<string, string>> = {};

/** Files whose behaviour is tested through another file, and through which. */
const TESTED_THROUGH: Readonly<Record<string, string>> = {};

test("only app.ts subscribes", () => {
  const subscribing = source.filter((file) => text(file).includes(".subscribe("));
  expect(subscribing).toEqual(["src/app.ts"]);
});

test("RxJS lives in flow, and in app.ts which feeds it", () => {
  const importing = source.filter((file) => /from "rxjs/.test(text(file)));
  expect(importing.filter((file) => !file.startsWith("src/flow/"))).toEqual(["src/app.ts"]);
});

test("core and flow read no clock and no dice", () => {
  const reading = source
    .filter((file) => /^src\/(core|flow)\//.test(file))
    .filter((file) =>
      /\b(Date\.now|Math\.random|new Date\(\)|performance\.now|DateTime\.(now|utc)\(\))/.test(text(file)),
    );
  expect(reading).toEqual([]);
});

test("no file is longer than 300 lines without a listed reason", () => {
  const long = source.filter((file) => text(file).split("\n").length > 301);
  expect(long).toEqual(Object.keys(LONG));
});

test("every file with behaviour has its test, or says which test holds it", () => {
  const behaving = source.filter((file) =>
    /^(export )?(async )?(function|class|const \w+ = (async )?(<|\())/m.test(text(file)),
  );
  const untested = behaving.filter((file) => {
    const own = file.replace(/^src\//, "test/").replace(/\.ts$/, ".test.ts");
    const through = TESTED_THROUGH[file];
    return !tests.has(own) && !(through !== undefined && tests.has(through));
  });
  expect(untested).toEqual([]);
});

test("no test is skipped, focused or left to do", () => {
  const marked = [...tests].filter((file) => /\b(it|test|describe)\.(skip|only|todo)\(/.test(text(file)));
  expect(marked).toEqual([]);
});
