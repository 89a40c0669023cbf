import { hash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { packagesOf } from "./bundle.ts";

/** The page for people on site, as files that a browser loads. */
export interface PageBuild {
  /** By name. Each has a hash of its content in its name, except `index.html`. */
  readonly files: ReadonlyMap<string, Buffer>;
  /** Packages that are in it, as the lockfile names them. */
  readonly packages: readonly string[];
}

const SOURCE = "src/operator/page";
/** Style sheet of the charts. */
const CHART_STYLE = "node_modules/uplot/dist/uPlot.min.css";

/** Builds the page: one script, one style sheet, one icon, and the HTML that names them. */
export async function buildPage(root: string): Promise<PageBuild> {
  const { rolldown } = await import("rolldown");
  await using build = await rolldown({
    input: `${SOURCE}/main.tsx`,
    cwd: root,
    platform: "browser",
  });
  const { output } = await build.generate({
    format: "esm",
    minify: true,
    entryFileNames: "page-[hash].js",
  });
  const [script, ...more] = output;
  if (more.length > 0) throw new Error(`the page has more than one script: ${more[0]?.fileName}`);
  const text = (path: string): string => readFileSync(join(root, path), "utf8");
  const style = hashed("page", "css", smaller(text(CHART_STYLE) + text(`${SOURCE}/style.css`)));
  const icon = hashed("icon", "svg", text(`${SOURCE}/icon.svg`));
  const html = text(`${SOURCE}/index.html`)
    .replace("{icon}", `/assets/${icon.name}`)
    .replace("{style}", `/assets/${style.name}`)
    .replace("{script}", `/assets/${script.fileName}`);
  return {
    files: new Map([
      ["index.html", Buffer.from(html)],
      [script.fileName, Buffer.from(script.code)],
      [style.name, Buffer.from(style.content)],
      [icon.name, Buffer.from(icon.content)],
    ]),
    packages: packagesOf(root, [script]),
  };
}

const hashed = (name: string, kind: string, content: string) => ({
  name: `${name}-${hash("sha256", content).slice(0, 8)}.${kind}`,
  content,
});

/** A style sheet without comments and indentation. */
const smaller = (css: string): string => css.replaceAll(/\/\*[^]*?\*\//g, "").replaceAll(/\n\s*/g, "\n");

/** Writes the page where the daemon of a checkout finds it. */
async function write(): Promise<void> {
  const root = dirname(import.meta.dirname);
  const folder = join(root, "dist/page");
  const { files } = await buildPage(root);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const [name, content] of files) writeFileSync(join(folder, name), content);
}

if (import.meta.main) {
  try {
    await write();
  } catch (error) {
    // `npm ci --omit=dev` has no bundler. The daemon works without the page.
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    process.stderr.write("the page is not built: the bundler is not installed\n");
  }
}
