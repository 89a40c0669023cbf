import { spawn } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { type Mutant, mutated } from "./operators.ts";

/** A run that takes longer is killed: a mutant may have an endless loop. Generous, since the machine may be busy. */
const LONGEST_RUN_MS = 150_000;
const LONGEST_FILE_MS = 15_000;
/** A dropped call leaves its import unused. The compiler is not to notice what a test should. */
const UNUSED_ALLOWED = ["--noUnusedLocals", "false", "--noUnusedParameters", "false"];
/** A mutant may make a test wait for what never comes. */
const LONGEST_TEST_MS = "90000";
const CONFIG = "test/mutation/vitest.config.ts";
const NOT_COPIED = new Set(["node_modules", ".git"]);

export type TestRun =
  | { readonly kind: "passed" }
  | { readonly kind: "failed"; readonly by: string }
  | { readonly kind: "timed out" };

interface JsonReport {
  readonly testResults: readonly {
    readonly name: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

/** A copy of the project in which files may be changed: the working tree is never touched. */
export class ScratchTree implements Disposable {
  readonly root: string;
  readonly #projectRoot: string;
  #endRun: (() => void) | null = null;

  constructor(projectRoot: string) {
    this.#projectRoot = projectRoot;
    this.root = mkdtempSync(join(tmpdir(), "mutation-"));
    cpSync(projectRoot, this.root, {
      recursive: true,
      filter: (from) => !NOT_COPIED.has(from.slice(projectRoot.length).replace(/^\//, "")),
    });
    symlinkSync(join(projectRoot, "node_modules"), join(this.root, "node_modules"));
  }

  plant(mutant: Mutant): void {
    const original = readFileSync(join(this.#projectRoot, mutant.file), "utf8");
    writeFileSync(join(this.root, mutant.file), mutated(original, mutant));
  }

  restore({ file }: Mutant): void {
    cpSync(join(this.#projectRoot, file), join(this.root, file));
  }

  /** Runs these test files until the first failure. */
  async runTests(tests: readonly string[], isAgain = false): Promise<TestRun> {
    const reportFile = join(this.root, "report.json");
    rmSync(reportFile, { force: true });
    const status = await this.#run(
      "vitest/vitest.mjs",
      [
        "run",
        "--config",
        CONFIG,
        "--testTimeout",
        LONGEST_TEST_MS,
        "--reporter",
        "json",
        "--outputFile",
        reportFile,
        ...tests,
      ],
      LONGEST_RUN_MS + tests.length * LONGEST_FILE_MS,
    );
    if (status === "timed out") return { kind: "timed out" };
    if (status === 0) return { kind: "passed" };
    // Ended from outside, by a person or for lack of memory. That says nothing about the mutant, unless it happens again.
    if (!isAgain && !existsSync(reportFile)) return this.runTests(tests, true);
    return { kind: "failed", by: this.#failedTest(reportFile) };
  }

  async compiles(): Promise<boolean> {
    // What has not changed since the check of another mutant is not checked again.
    const kept = ["--noEmit", "--incremental", "--tsBuildInfoFile", join(this.root, "types.json")];
    return (await this.#run("typescript/lib/tsc.js", [...kept, ...UNUSED_ALLOWED], LONGEST_RUN_MS)) === 0;
  }

  [Symbol.dispose](): void {
    this.#endRun?.();
    rmSync(this.root, { recursive: true, force: true });
  }

  #failedTest(reportFile: string): string {
    try {
      const { testResults } = JSON.parse(readFileSync(reportFile, "utf8")) as JsonReport;
      // The first failure ends the run: test files that were still to come are "failed" as well, without a failed test.
      for (const { name, assertionResults } of testResults) {
        const test = assertionResults.find(({ status }) => status === "failed");
        if (test !== undefined) return `${name.slice(this.root.length + 1)}: ${test.fullName}`;
      }
      return "a test file does not load";
    } catch {
      return "no report";
    }
  }

  /** Runs a tool of the project. Its process group is killed as a whole, since its workers may be in an endless loop. */
  #run(tool: string, args: readonly string[], longestMs: number): Promise<number | "timed out"> {
    const { promise, resolve } = Promise.withResolvers<number | "timed out">();
    const child = spawn(process.execPath, [join(this.root, "node_modules", tool), ...args], {
      cwd: this.root,
      stdio: "ignore",
      detached: true,
    });
    this.#endRun = () => {
      if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, "SIGKILL");
    };
    const timer = setTimeout(() => {
      resolve("timed out");
      this.#endRun?.();
    }, longestMs);
    child.on("close", (code) => {
      clearTimeout(timer);
      this.#endRun = null;
      resolve(code ?? 1);
    });
    return promise;
  }
}
