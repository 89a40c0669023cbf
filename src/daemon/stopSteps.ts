interface StopStep {
  readonly name: string;
  readonly stop: Disposable | AsyncDisposable | (() => void | Promise<void>);
}

/** Named steps of a stop. The last added runs first, and each waits for the one before. */
export class StopSteps implements AsyncDisposable {
  #steps: StopStep[] = [];
  /** Shared with the object that takes over the steps. */
  #running: { name: string | null } = { name: null };

  /** Name of the step that runs, or of the last one. Null: no step has run. */
  get current(): string | null {
    return this.#running.name;
  }

  add(name: string, stop: () => void | Promise<void>): void {
    this.#steps.push({ name, stop });
  }

  /** Disposes of a part in the step of this name. Returns the part. */
  use<Part extends Disposable | AsyncDisposable>(name: string, part: Part): Part {
    this.#steps.push({ name, stop: part });
    return part;
  }

  /** Takes over all steps. Disposing of this object then does nothing. */
  move(): StopSteps {
    const moved = new StopSteps();
    moved.#steps = this.#steps;
    moved.#running = this.#running;
    this.#steps = [];
    return moved;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const stack = new AsyncDisposableStack();
    for (const { name, stop } of this.#steps)
      stack.defer(() => {
        this.#running.name = name;
        return run(stop);
      });
    this.#steps = [];
    await stack.disposeAsync();
  }
}

function run(stop: StopStep["stop"]): void | PromiseLike<void> {
  if (typeof stop === "function") return stop();
  return Symbol.asyncDispose in stop ? stop[Symbol.asyncDispose]() : stop[Symbol.dispose]();
}
