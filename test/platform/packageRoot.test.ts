import { existsSync } from "node:fs";
import { expect, test } from "vitest";

import { shipped } from "../../src/platform/packageRoot.ts";

test("files that come with the program are found from any working directory", () => {
  const files = ["package.json", "config/demo.yaml", "config/demo-script.yaml"].map(shipped);
  expect(files.filter((file) => !file.startsWith("/") || !existsSync(file))).toEqual([]);
});
