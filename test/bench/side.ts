import { type ChildProcess, fork, type Serializable } from "node:child_process";
import { fileURLToPath } from "node:url";

/** A program of ours as a process of its own: it says one thing when it is ready, and one for each order. */
export class Side<Said, Order extends Serializable = "go"> implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly ready: Said;

  private constructor(child: ChildProcess, ready: Said) {
    this.#child = child;
    this.ready = ready;
  }

  /** `program`: path of a file here, without its ending. The shape of what it says is the caller's knowledge. */
  static async start<Said, Order extends Serializable = "go">(
    program: string,
    args: readonly string[],
  ): Promise<Side<Said, Order>> {
    const child = fork(fileURLToPath(new URL(`${program}.ts`, import.meta.url)), args);
    return new Side(child, await saidBy<Said>(child));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** What it answers once it has done it. */
  order(order: Order): Promise<Said> {
    this.#child.send(order);
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
