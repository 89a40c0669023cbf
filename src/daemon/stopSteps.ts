/** Named steps of a stop. The last added runs first, and each waits for the one before. */
export class StopSteps implements AsyncDisposable {
  #stack = new AsyncDisposableStack();
  /** Shared with the object that takes over the steps. */
  #running: { name: string | null } = { name: null };

  /** Name of the step that runs, or of the last one. Null: no step has run. */
  get current(): string | null {
    return this.#running.name;
  }

  add(name: string, step: () => void | Promise<void>): void {
    const running = this.#running;
    this.#stack.defer(() => {
      running.name = name;
      return step();
    });
  }

  /** Disposes of a part in the step of this name. Returns the part. */
  use<Part extends Disposable | AsyncDisposable>(name: string, part: Part): Part {
    this.add(name, () =>
      Symbol.asyncDispose in part ? Promise.resolve(part[Symbol.asyncDispose]()) : part[Symbol.dispose](),
    );
    return part;
  }

  /** Takes over all steps. Disposing of this object then does nothing. */
  move(): StopSteps {
    const moved = new StopSteps();
    moved.#stack = this.#stack.move();
    moved.#running = this.#running;
    return moved;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}
