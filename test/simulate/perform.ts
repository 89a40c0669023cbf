import { instant } from "../../src/domain/units.ts";
import type { Courier, Message } from "./courier.ts";
import type { FaultyDisk } from "./faultyDisk.ts";
import { BACKOFF, NAP, type Patience, REFRESH } from "./patience.ts";
import { type Action, MINUTE } from "./plan.ts";
import type { Floor } from "./simFloor.ts";
import type { SimGateway } from "./simGateway.ts";
import type { SimPartner } from "./simPartner.ts";
import type { VirtualClock } from "./virtualClock.ts";

/** Everyone who takes part in a day. */
export interface Cast {
  readonly clock: VirtualClock;
  readonly disk: FaultyDisk;
  readonly gateway: SimGateway;
  readonly partner: SimPartner;
  readonly floor: Floor;
  readonly courier: Courier;
  readonly patience: Patience;
  readonly held: AcknowledgedHolds;
}

/** Ids of holds whose opening, or early end, was acknowledged. */
export interface AcknowledgedHolds {
  readonly opened: Set<string>;
  readonly ended: Set<string>;
  /** End of the period of observe that was acknowledged last, ms. Null: none, or drive was acknowledged since. */
  observing: number | null;
  /** The same, by requests that were not answered, or not yet. */
  readonly unanswered: Set<number | null>;
}

/** Who lost the broker is back within so much of its return. */
export const RECONNECT = 3_000;
/** Who was refused a token, or its token, asks again so much later at most. */
const CREDENTIALS = MINUTE;
/** After a failed commit everything is tried again so much later. */
const COMMIT_RETRY = 6_000;
/** A crash that nothing led to by then is called off. */
const DISARMED_AFTER = 10 * MINUTE;

/** Lets one thing happen, and excuses whom it disturbs. */
export function perform(action: Action, cast: Cast): void {
  const { gateway, floor, patience } = cast;
  switch (action.kind) {
    case "put":
      return put(action, cast);
    case "withdraw":
      return withdraw(action, cast);
    case "crash":
      gateway.crashAt(action.point, action.downFor);
      setTimeout(() => gateway.disarm(), DISARMED_AFTER);
      return;
    case "brokerGone":
      floor.brokerGoes(action.lasts);
      return patience.disturbed("*", action.lasts + RECONNECT + floor.unseenFor);
    case "linkLost":
      floor.linkBreaks(action.lasts);
      return patience.disturbed("*", action.lasts + RECONNECT);
    // A slow broker and unruly messages excuse nobody: both are quicker than L1 asks.
    case "brokerSlow":
      return floor.isSlow(action.lasts);
    case "unruly":
      return floor.isUnruly(action.lasts);
    case "partner":
      return fails(cast.partner, action, () => patience.newsDelayed(action.lasts + CREDENTIALS + BACKOFF));
    case "identity":
      return fails(cast.partner.identity, action, () =>
        patience.newsDelayed(action.lasts + CREDENTIALS + BACKOFF),
      );
    case "tray":
      return fails(cast.partner.tray, action, () => {});
    case "reboot":
      floor.reboots(action.charger, action.lasts, action.forgets ?? true, action.willAfter);
      return patience.disturbed(action.charger, action.lasts + floor.unseenFor);
    case "deaf":
      floor.isDeaf(action.charger, action.lasts);
      return patience.disturbed(action.charger, action.lasts + REFRESH + floor.unseenFor);
    case "lies":
      floor.lies(action.charger, action.lasts);
      return patience.disturbed(action.charger, action.lasts + REFRESH + floor.unseenFor);
    case "mute":
      floor.isMute(action.charger, action.lasts);
      return floor.silenceIsAbsence ? patience.disturbed(action.charger, action.lasts) : undefined;
    // It excuses nobody: a repeated "online" changes nothing.
    case "greets":
      return floor.repeatsOnline(action.charger, action.every, action.lasts);
    case "plug":
      floor.plug(action.charger, action.vehicle);
      return patience.disturbed("*", 0);
    case "claims":
      floor.claims(action.charger, action.vehicle, action.lasts);
      return patience.disturbed("*", 0);
    case "clock":
      return setClock(action, cast);
    case "noTime":
      return losesTime(action, cast);
    case "suspend":
      cast.clock.sleep(action.lasts);
      return patience.disturbed("*", NAP);
    case "hold":
      return holds(action, cast);
    case "endHold": {
      const open = cast.gateway.holds()?.findLast(({ ended }) => ended === null);
      if (open === undefined) return;
      patience.disturbed("*", 0);
      void gateway.endHold(open.id).then((isEnded) => isEnded && cast.held.ended.add(open.id));
      return;
    }
    case "observe":
      return observes(action, cast);
    case "drive":
      return changesMode(null, gateway.drive(), cast);
    case "disk":
      return failDisk(action, cast);
  }
}

type Of<Kind extends Action["kind"]> = Action & { readonly kind: Kind };

function put({ event, sameTime, deliveries }: Of<"put">, cast: Cast): void {
  const { partner, patience } = cast;
  const before = partner.events.get(event.id)?.plan;
  const whom = [...event.vehicles, ...(before?.vehicles ?? [])];
  const body = partner.put(event, sameTime);
  const revised = partner.events.get(event.id)?.revised ?? null;
  // With a modification time that is known already a webhook is not believed: the list decides.
  patience.changed(whom, sameTime ? null : first(deliveries), 1);
  tell({ id: event.id, body, whom, revised }, deliveries, cast);
}

function withdraw({ id, deliveries }: Of<"withdraw">, cast: Cast): void {
  const { partner, patience } = cast;
  const whom = partner.events.get(id)?.plan.vehicles ?? [];
  const body = partner.withdraw(id);
  if (body === null) return;
  patience.changed(whom, first(deliveries), 2);
  tell({ id, body, whom, revised: null }, deliveries, cast);
}

const first = (deliveries: readonly number[]): number | null =>
  deliveries.length === 0 ? null : Math.min(...deliveries);

function tell(message: Message, deliveries: readonly number[], { courier }: Cast): void {
  for (const delay of deliveries) setTimeout(() => void courier.deliver(message), delay);
}

/** An operator's request takes effect like a webhook: at once. */
function holds({ scope, level, until }: Of<"hold">, { gateway, patience, held }: Cast): void {
  patience.disturbed("*", 0);
  const end =
    until === "events"
      ? { events: true }
      : until === "unplugged"
        ? { unplugged: true }
        : typeof until === "object"
          ? until
          : { at: new Date(gateway.now() + until).toISOString() };
  const kind = level === null ? { kind: "exempt" } : { kind: "level", level };
  void gateway.hold({ scope, ...kind, until: end, reason: "simulated" }).then((id) => {
    if (id !== null) held.opened.add(id);
  });
}

function observes({ lasts }: Of<"observe">, cast: Cast): void {
  const until = instant(cast.gateway.now() + lasts);
  changesMode(until, cast.gateway.observe(until), cast);
}

function changesMode(until: number | null, done: Promise<boolean>, { patience, held }: Cast): void {
  patience.disturbed("*", 0);
  held.unanswered.add(until);
  void done.then((isDone) => {
    if (!isDone) return;
    held.observing = until;
    held.unanswered.delete(until);
  });
}

function setClock({ by, lasts }: Of<"clock">, { clock, patience }: Cast): void {
  clock.aheadBy += by;
  setTimeout(() => {
    clock.aheadBy -= by;
  }, lasts);
  patience.clockSet(by, lasts);
}

/** Its clock counts from 1970 until somebody tells it the time. */
function losesTime({ downFor, lasts }: Of<"noTime">, { clock, gateway, patience }: Cast): void {
  const by = 100_000 - clock.gateway();
  clock.aheadBy += by;
  setTimeout(() => {
    clock.aheadBy -= by;
  }, lasts);
  patience.clockSet(by, lasts);
  gateway.crashAt("at once", downFor);
}

/** One after another: the later one stands until its own end. */
function fails<How extends string>(
  party: { answers: How | undefined },
  { how, lasts }: { readonly how: How; readonly lasts: number },
  excuse: () => void,
): void {
  party.answers = how;
  setTimeout(() => {
    if (party.answers === how) party.answers = undefined;
  }, lasts);
  excuse();
}

function failDisk({ how, lasts }: Of<"disk">, { clock, disk, gateway, patience }: Cast): void {
  if (how === "slow") {
    gateway.slowUntil = clock.monotonic() + lasts;
    return patience.disturbed("*", lasts);
  }
  disk.state = how;
  setTimeout(() => {
    if (disk.state === how) disk.state = "sound";
  }, lasts);
  patience.diskRefuses(lasts + COMMIT_RETRY);
}
