import type { ChildProcess } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";

import { launch } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

const SECOND = 1000;

/** The demo as `npm start` runs it, with a place of its own for temporary files. */
class Demo implements AsyncDisposable {
  readonly lines: { readonly at: number; readonly text: string }[] = [];
  readonly temporary = mkdtempSync(join(tmpdir(), "setpointd-e2e-"));
  readonly #child: ChildProcess;
  readonly #ended: Promise<number | null>;
  errors = "";

  constructor() {
    // Empty is unset: neither a configuration nor a level.
    this.#child = launch([], { TMPDIR: this.temporary, SETPOINTD_CONFIG: "", LOG_LEVEL: "" });
    let rest = "";
    this.#child.stdout?.on("data", (chunk: Buffer) => {
      const [last = "", ...whole] = (rest + chunk.toString()).split("\n").toReversed();
      rest = last;
      this.lines.push(...whole.toReversed().map((text) => ({ at: Date.now(), text })));
    });
    this.#child.stderr?.on("data", (chunk: Buffer) => (this.errors += chunk.toString()));
    this.#ended = new Promise((ended) => this.#child.once("close", ended));
  }

  get text(): string {
    return this.lines.map(({ text }) => text).join("\n");
  }

  /** The lines of the first ten seconds, once those have passed. */
  async opening(): Promise<readonly string[]> {
    const first = await waitFor(() => this.lines[0], { timeoutMs: 15_000 });
    await waitFor(() => Date.now() > first.at + 10 * SECOND, { timeoutMs: 12_000 });
    return this.lines.filter(({ at }) => at <= first.at + 10 * SECOND).map(({ text }) => text);
  }

  async interrupted(): Promise<number | null> {
    this.#child.kill("SIGINT");
    return this.#ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null) this.#child.kill("SIGKILL");
    await this.#ended;
    rmSync(this.temporary, { recursive: true, force: true });
  }
}

test("two demos side by side each show an event from start to end within ten seconds and leave nothing behind", async () => {
  await using one = new Demo();
  await using two = new Demo();
  for (const lines of await Promise.all([one.opening(), two.opening()])) {
    expect(lines[0]).toMatch(/^Open http:\/\/127\.0\.0\.1:\d+\/ to watch a depot/);
    const finding = (pattern: RegExp) => lines.filter((line) => pattern.test(line));
    expect(finding(/event EV-\d+ .* is new \(webhook\)/)).not.toEqual([]);
    expect(finding(/event EV-\d+ .* is new \(list\)/)).not.toEqual([]);

    const starts = finding(/bay-0\d \(Bus \d+\) to 16 A until .* event EV-1001 .*, offset [\d.]+ s of 2 s$/);
    const offsets = starts.map((line) => /offset ([\d.]+) s/.exec(line)?.[1]);
    expect(new Set(offsets).size).toBeGreaterThan(1);
    const winners = finding(/\(Bus 20[12]\) to 8 A until .* event EV-1003 priority 1.*; overrules EV-1001$/);
    expect(winners).toHaveLength(2);
    expect(finding(/bay-0\d \(Bus \d+\) released: event EV-\d+ has ended/).length).toBeGreaterThanOrEqual(1);
    expect(finding(/accepted by the charger/)).not.toEqual([]);
    expect(finding(/report EV-1001\/0\/0 sent: 4 vehicles, [\d.]+ kWh \(HTTP 201\)$/)).toHaveLength(1);
    expect(finding(/spot prices of NO1: \d+ prices, [\d.]+ to [\d.]+ NOK\/kWh, until /)).toHaveLength(1);
    expect(finding(/error|warn|fail|refused|not sent/i)).toEqual([]);
  }
  // The bridge is a process of its own: killed, it takes nothing else with it.
  const pid = Number(/kill (\d+) shows/.exec(one.text)?.[1]);
  process.kill(pid, "SIGKILL");
  await waitFor(() => one.text.includes("The OCPP bridge has ended. bay-02 "));
  for (const demo of [one, two]) {
    expect(await demo.interrupted()).toBe(0);
    expect(demo.errors).toBe("");
    expect(readdirSync(demo.temporary)).toEqual([]);
  }
});
