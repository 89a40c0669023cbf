import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";

/** A bare floor program as a process of its own: it says one thing when it is ready, and one for each order. */
export class Bare<Said> implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly ready: Said;

  private constructor(child: ChildProcess, ready: Said) {
    this.#child = child;
    this.ready = ready;
  }

  /** `program`: name of a file in floor/. The shape of what it says is the caller's knowledge. */
  static async start<Said>(program: string, args: readonly string[]): Promise<Bare<Said>> {
    const child = fork(fileURLToPath(new URL(`floor/${program}.ts`, import.meta.url)), args);
    return new Bare(child, await saidBy<Said>(child));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** What it answers once it has done it. */
  order(): Promise<Said> {
    this.#child.send("go");
    return saidBy<Said>(this.#child);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = new Promise((ended) => this.#child.once("exit", ended));
    this.#child.kill("SIGKILL");
    await gone;
  }
}

function saidBy<Said>(child: ChildProcess): Promise<Said> {
  return new Promise((said, failed) => {
    const ended = (code: number | null): void => failed(new Error(`a floor program ended with ${code}`));
    child.once("exit", ended);
    child.once("message", (message) => {
      child.off("exit", ended);
      said(message as Said);
    });
  });
}
