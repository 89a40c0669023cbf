import { existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { request } from "undici";

import { residentOf } from "../bench/process.ts";
import { waitFor } from "../support/waitFor.ts";
import type { Rule } from "./verdict.ts";

const MB = 1e6;

/** Each figure, its unit, and what of it is flat. */
export const FIGURES = {
  /** The unit file allows 512 MB; collections of garbage make it move by some MB. */
  resident: { unit: "MB", rule: { growth: 12, most: 400 } },
  /** What is alive after a collection. Ended events are kept for 90 days, some 10 KB each with all that they name. */
  heap: { unit: "MB", rule: { growth: 3, most: 150 } },
  handles: { unit: "files", rule: { growth: 1, most: 64 } },
  /** With every file in it, logs of the database included: readings and record, both kept for far longer than an hour. */
  state: { unit: "MB", rule: { growth: 30, most: 1_000 } },
  /** Since the last sample. Everything here happens far more often than on an ordinary day. */
  commits: { unit: "per second", rule: { growth: 2, most: 40 } },
  /** What it logs, from the start on. */
  log: { unit: "MB", rule: { growth: 20, most: 100 } },
} as const satisfies Readonly<Record<string, { readonly unit: string; readonly rule: Rule }>>;

export type FigureName = keyof typeof FIGURES;
export const FIGURE_NAMES = Object.keys(FIGURES) as readonly FigureName[];

/** All figures at one time; `heap` is null where nothing was collected. */
export type Sample = { readonly hours: number } & Readonly<Record<Exclude<FigureName, "heap">, number>> & {
    readonly heap: number | null;
  };

/** The process that is looked at, and where it keeps what. */
export interface Subject {
  readonly pid: number;
  readonly operator: string;
  readonly state: string;
  readonly log: string;
  /** What the heap probe writes. */
  readonly heap: string;
}

/** Takes samples of one process, each against the one before. */
export class Sampler {
  readonly #subject: Subject;
  readonly #began = performance.now();
  #last: { readonly at: number; readonly commits: number } | null = null;

  constructor(subject: Subject) {
    this.#subject = subject;
  }

  async sample(collect: boolean): Promise<Sample> {
    const { pid, state, log } = this.#subject;
    const resident = residentOf(pid) / MB;
    const heap = collect ? (await this.#alive()) / MB : null;
    const commits = await this.#commits();
    const at = performance.now();
    const { at: before, commits: had } = this.#last ?? { at: this.#began, commits };
    this.#last = { at, commits };
    return {
      hours: (at - this.#began) / 3_600_000,
      resident,
      heap,
      handles: readdirSync(`/proc/${pid}/fd`).length,
      state: bytesIn(state) / MB,
      commits: (1000 * (commits - had)) / Math.max(1, at - before),
      log: statSync(log).size / MB,
    };
  }

  async #commits(): Promise<number> {
    const { body } = await request(`${this.#subject.operator}/api/v1/status`);
    const status = (await body.json()) as { readonly store: { readonly commits: number } };
    return status.store.commits;
  }

  async #alive(): Promise<number> {
    const { pid, heap } = this.#subject;
    rmSync(heap, { force: true });
    process.kill(pid, "SIGUSR2");
    await waitFor(() => existsSync(heap), { timeoutMs: 10_000 });
    return Number(readFileSync(heap, "utf8"));
  }
}

/** Of all files below, as they are named: a socket or a file that is being replaced has none. */
const bytesIn = (directory: string): number =>
  readdirSync(directory, { recursive: true, encoding: "utf8" })
    .map((name) => statSync(join(directory, name), { throwIfNoEntry: false })?.size ?? 0)
    .reduce((sum, size) => sum + size, 0);
