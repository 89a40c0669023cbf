import { after, earlier, type Instant, type Millis } from "../core/units.ts";
import { asked, limitOf, step, type Order, type SimulatedCharger } from "./charger.ts";

/** What a charger says to an order. `value`: what it will hold to, in the order's own unit; null for pause and release. */
export type Acceptance =
  | { readonly accepted: true; readonly charger: SimulatedCharger; readonly value: number | null }
  | { readonly accepted: false; readonly reason: string };

/** The lease counts from the receipt; `until` is a moment. Null until: the lease alone. */
export const orderExpires = (received: Instant, until: Instant | null, lease: Millis): Instant =>
  until === null ? after(received, lease) : earlier(until, after(received, lease));

const isOlder = (order: Pick<Order, "epoch" | "seq">, last: Order): boolean =>
  order.epoch < last.epoch || (order.epoch === last.epoch && order.seq < last.seq);

function held(charger: SimulatedCharger, order: Order): number | null {
  const { phases, voltage } = charger.traits;
  const limit = limitOf(charger);
  switch (order.desired.kind) {
    case "current":
      return limit;
    case "power":
      return Math.min(order.desired.watts, Math.round(limit * phases * voltage));
    case "pause":
    case "release":
      return null;
  }
}

/** Takes an order with (epoch, seq) not lower than its last; the same one again renews its lease (DESIGN 5.6). */
export function accept(before: SimulatedCharger, order: Order, now: Instant): Acceptance {
  const charger = step(before, now);
  const { order: last } = charger;
  if (last && isOlder(order, last))
    return { accepted: false, reason: `older than ${last.epoch}-${last.seq}` };
  if (order.expires <= now) return { accepted: false, reason: "its time has passed" };
  const ordered = { ...charger, order };
  const level = asked(ordered, order);
  if (!Number.isFinite(level) || level < 0) return { accepted: false, reason: "not a level" };
  return { accepted: true, charger: ordered, value: held(ordered, order) };
}
