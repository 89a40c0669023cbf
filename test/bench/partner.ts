import { Pool } from "undici";

import { type Instant, instant } from "../../src/domain/units.ts";
import { signature } from "../../src/sim/partner.ts";
import { wireEvent, type EventPlan } from "../../src/sim/events.ts";
import { SECRET } from "./depot.ts";

export const now = (): Instant => instant(Date.now());

let count = 0;

/** An event that none was before; it started a second ago and lasts an hour unless told. */
export function eventFor(vehicles: readonly string[], plan: Partial<EventPlan> = {}) {
  count += 1;
  const start = instant(now() - 1000);
  const event = { id: `EV-${count}`, start, durationMs: 3_600_000, ask: { amperes: 10 }, vehicles, ...plan };
  return wireEvent(event, now());
}

/** Signed deliveries over connections that are kept, at most as many at a time. */
export class Sender implements AsyncDisposable {
  readonly #pool: Pool;

  constructor(origin: string, connections: number) {
    this.#pool = new Pool(origin, { connections, pipelining: 1 });
  }

  /** Resolves once it is answered. Throws for any answer but a 202. */
  async post(body: string): Promise<void> {
    const answer = await this.#pool.request({
      method: "POST",
      path: "/webhooks/events",
      headers: { "content-type": "application/json", "x-payload-signature": signature(body, SECRET) },
      body,
    });
    const text = await answer.body.text();
    if (answer.statusCode !== 202) throw new Error(`answered ${answer.statusCode}: ${text}`);
  }

  /** Takes an event back, as an OpenADR notification. */
  async withdraw(event: object): Promise<void> {
    await this.post(JSON.stringify({ objectType: "EVENT", operation: "DELETE", object: event }));
  }

  /** Says only that something is new: the daemon looks at the list. */
  async hint(): Promise<void> {
    await this.post(JSON.stringify({ news: true }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool.destroy();
  }
}
