import type { Patience } from "./patience.ts";
import type { SimGateway } from "./simGateway.ts";
import type { SimPartner } from "./simPartner.ts";

/** A webhook that was not taken is sent again so much later, each time; then only the list tells. */
const RETRIES = [5_000, 30_000];

/** What the partner's webhook has to say about one event. */
export interface Message {
  readonly id: string;
  readonly body: unknown;
  /** Vehicles that it concerns. */
  readonly whom: readonly string[];
  /** Modification time; null: that it is withdrawn. */
  readonly revised: number | null;
}

/** Brings webhooks to the gateway, and knows what it was thanked for. */
export class Courier {
  /** Modification times of the events that a webhook was thanked for. */
  readonly thanked = new Map<string, number>();
  readonly #gateway: SimGateway;
  readonly #partner: SimPartner;
  readonly #patience: Patience;

  constructor(gateway: SimGateway, partner: SimPartner, patience: Patience) {
    this.#gateway = gateway;
    this.#partner = partner;
    this.#patience = patience;
  }

  async deliver(message: Message, retries: readonly number[] = RETRIES): Promise<void> {
    const { id, body, whom, revised } = message;
    const current = this.#partner.events.get(id)?.revised ?? null;
    this.#patience.heard(whom);
    // Old news: what it stirs up, the lists settle.
    if (current !== revised) this.#patience.listsWillTell(whom, 2);
    const answer = await this.#gateway.post(body);
    if (answer?.kind === "ingested") {
      const { accepted, repeats } = answer.ingested;
      if (revised !== null && accepted + repeats > 0)
        this.thanked.set(id, Math.max(revised, this.thanked.get(id) ?? 0));
      return;
    }
    const [wait, ...more] = retries;
    this.#patience.listsWillTell(whom, 2);
    if (wait !== undefined) setTimeout(() => void this.deliver(message, more), wait);
  }
}
