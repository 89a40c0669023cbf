import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";

/** A program of ours as a process of its own: it says one thing when it is ready, and one for each order. */
export class Side<Said> implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly ready: Said;

  private constructor(child: ChildProcess, ready: Said) {
    this.#child = child;
    this.ready = ready;
  }

  /** `program`: path of a file here, without its ending. The shape of what it says is the caller's knowledge. */
  static async start<Said>(program: string, args: readonly string[]): Promise<Side<Said>> {
    const child = fork(fileURLToPath(new URL(`${program}.ts`, import.meta.url)), args);
    return new Side(child, await saidBy<Said>(child));
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
    const ended = (code: number | null): void =>
      failed(new Error(`a program of the bench ended with ${code}`));
    child.once("exit", ended);
    child.once("message", (message) => {
      child.off("exit", ended);
      said(message as Said);
    });
  });
}
