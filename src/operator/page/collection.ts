import { computed, type ReadonlySignal, signal, type Signal } from "@preact/signals";

/** Objects by id, each with a signal of its own: a changed charger redraws one tile. */
export class Collection<T> {
  readonly #byId = new Map<string, Signal<T>>();
  readonly #keyOf: (value: T) => string;
  readonly ids = signal<readonly string[]>([]);
  readonly all: ReadonlySignal<readonly T[]> = computed(() =>
    this.ids.value.flatMap((id) => this.#byId.get(id)?.value ?? []),
  );

  constructor(keyOf: (value: T) => string) {
    this.#keyOf = keyOf;
  }

  /** Follows one object, also before it is known. */
  of(id: string): T | undefined {
    // The list of ids is read so that a first appearance redraws.
    void this.ids.value;
    return this.#byId.get(id)?.value;
  }

  put(value: T): void {
    const id = this.#keyOf(value);
    const found = this.#byId.get(id);
    if (found !== undefined) {
      found.value = value;
      return;
    }
    this.#byId.set(id, signal(value));
    this.ids.value = [...this.ids.value, id];
  }

  /** Replaces all, except objects that changed on the stream since the list was requested. */
  load(list: readonly T[], fresher: ReadonlySet<string>): void {
    const ids = list.map(this.#keyOf);
    const late = this.ids.value.filter((id) => fresher.has(id) && !ids.includes(id));
    for (const value of list) {
      const id = this.#keyOf(value);
      if (fresher.has(id)) continue;
      const found = this.#byId.get(id);
      if (found === undefined) this.#byId.set(id, signal(value));
      else found.value = value;
    }
    this.ids.value = [...ids, ...late];
  }
}
