import type { Reporter, TestModule } from "vitest/node";

/**
 * Ends a run with one plain line, `N passed, N failed`, for whoever reads logs and not colours. Each test that passed at
 * its second try is named above it, with the error of the first. Several runs with one of these are counted together.
 */
export class ClosingLine implements Reporter {
  readonly #counts = { passed: 0, failed: 0, skipped: 0, pending: 0 };

  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    const counts = this.#counts;
    counts.failed += unhandled.length;
    for (const module of modules) {
      if (module.state() === "failed" && [...module.children.allTests("failed")].length === 0)
        counts.failed += 1;
      for (const test of module.children.allTests()) {
        const { state, errors = [] } = test.result();
        counts[state] += 1;
        if (test.diagnostic()?.flaky)
          process.stdout.write(`\npassed at the second try: ${test.fullName}\n${errors[0]?.message ?? ""}\n`);
      }
    }
    const skipped = counts.skipped + counts.pending;
    const others = skipped > 0 ? `${skipped} skipped\n` : "";
    process.stdout.write(`\n${others}${counts.passed} passed, ${counts.failed} failed\n`);
  }
}
