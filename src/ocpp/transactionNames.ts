import type { RelayStore, StoredMessage } from "./relayStore.ts";
import type { Dialect } from "./wire/dialect.ts";
import type { Payload, Reply } from "./wire/frame.ts";

/** Transactions that the charger knows by an id of ours, and the upstream by its own. */
export class TransactionNames {
  readonly #store: RelayStore;
  readonly #station: string;
  readonly #dialect: Dialect;
  /** Ids at the upstream by those that the bridge gave. */
  #renamed: ReadonlyMap<string, string>;

  constructor(store: RelayStore, station: string, dialect: Dialect) {
    this.#store = store;
    this.#station = station;
    this.#dialect = dialect;
    this.#renamed = store.renamed(station);
  }

  /** The payload with the other system's id. Unchanged where it names no transaction of ours. */
  forUpstream(payload: Payload): Payload {
    return this.#dialect.renameTransaction(payload, this.#renamed);
  }

  /** The payload with our id. Unchanged where it names no transaction that the charger knows by an id of ours. */
  forStation(payload: Payload): Payload {
    const local = new Map([...this.#renamed].map(([ours, theirs]) => [theirs, ours]));
    return this.#dialect.renameTransaction(payload, local);
  }

  /** A stored message was answered: it is removed, and the upstream's id of its transaction is kept. */
  onDelivered({ seq, localTransaction: local }: StoredMessage, reply: Reply): void {
    const upstream = reply.ok && local !== null ? this.#dialect.transactionIn(reply.payload) : null;
    const isRenamed = upstream !== null && upstream !== local;
    this.#store.remove(seq, isRenamed ? { station: this.#station, local: local ?? "", upstream } : null);
    if (isRenamed) this.#renamed = this.#store.renamed(this.#station);
  }

  /** The upstream answered a charger. A transaction of its with the id of one of ours is not translated. */
  onAnswered(reply: Reply): void {
    const id = reply.ok ? this.#dialect.transactionIn(reply.payload) : null;
    if (id === null || !this.#renamed.has(id)) return;
    this.#store.forgetRenamed(this.#station, id);
    this.#renamed = this.#store.renamed(this.#station);
  }
}
