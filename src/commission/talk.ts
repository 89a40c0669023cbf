import { setTimeout as sleep } from "node:timers/promises";

import { type Command, commandId, type Sent } from "../core/control/command.ts";
import type { Desired } from "../core/control/setpoint.ts";
import type { ChargerMessage, Telemetry } from "../core/site/telemetry.ts";
import type { ChargerId, Instant, Millis } from "../core/units.ts";
import type { Bench, Taken } from "./bench.ts";

export interface TalkPorts {
  readonly charger: ChargerId;
  /** What it was told last; null: nothing by us. */
  readonly before: Desired | null;
  /** What is known of it already. */
  readonly told: Telemetry | null;
  /** Numbers of the next order: higher than all that the charger has had. */
  readonly nextId: () => { readonly epoch: number; readonly seq: number };
  readonly now: () => Instant;
  readonly send: (command: Command, lease: Millis, before: Desired | null) => Promise<Sent>;
  readonly fallSilent: () => void;
  readonly isStopped: () => boolean;
  readonly takenFor: () => string | null;
}

/** A bench that hears what its charger says. */
export interface Talk extends Bench {
  readonly hear: (message: ChargerMessage) => void;
}

/** How often a condition is looked at. */
const LOOK_MS = 50;

/** Orders to one charger with numbers of their own, and what it says to them. */
export function talk(ports: TalkPorts): Talk {
  const { charger, now, fallSilent, isStopped, takenFor } = ports;
  let { before, told } = ports;
  let order: string | null = null;
  let taken: Taken | null = null;
  let heard = told !== null;
  return {
    now,
    fallSilent,
    isStopped,
    takenFor,
    taken: () => taken,
    told: () => told,
    heard: () => heard,
    async order(desired, lease) {
      const what = { charger, desired, until: null, vehicle: null, event: null } as const;
      const command: Command = { ...what, ...ports.nextId(), cause: "operator", decidedAt: now() };
      order = commandId(command);
      taken = null;
      const sent = await ports.send(command, lease, before);
      if (sent.ok) before = desired;
      return sent;
    },
    async until(condition, patience) {
      const deadline = performance.now() + patience;
      while (!condition()) {
        if (isStopped() || performance.now() >= deadline) return false;
        await sleep(LOOK_MS);
      }
      return true;
    },
    rest: async (span) => sleep(span),
    hear(message) {
      if (message.charger !== charger) return;
      // A last will is said by the broker.
      if (message.kind !== "unconfirmed" && !(message.kind === "online" && !message.online)) heard = true;
      if (message.kind === "unconfirmed" && message.id === order && message.isHeard)
        taken ??= { accepted: false, reason: message.reason, at: now() };
      if (message.kind === "telemetry") told = { ...told, ...message.telemetry };
      if (message.kind === "ack" && message.id === order)
        taken ??= { accepted: message.accepted, reason: message.reason, at: now() };
    },
  };
}
