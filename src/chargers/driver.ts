import type { Command, Sent } from "../domain/command.ts";
import type { Desired } from "../domain/setpoint.ts";
import type { ChargerMessage } from "../domain/telemetry.ts";
import type { Instant, Millis } from "../domain/units.ts";
import type { PublishOptions } from "./broker/connection.ts";

/** How one charger is spoken with, whatever its make. */
export interface ChargerDriver extends Disposable {
  /** Topics that it speaks on; + may stand for single levels. */
  readonly topics: readonly string[];
  /**
   * Publishes a command for `lease` at most; ok means that the broker has all of it. `before`: what the charger was
   * told before it, null: nothing by us. `isDoubted`: it was seen not to follow this command.
   */
  readonly send: (
    command: Command,
    lease: Millis,
    before: Desired | null,
    isDoubted?: boolean,
  ) => Promise<Sent>;
  readonly handleMessage: (topic: string, payload: Buffer, retained: boolean) => void;
  /** The level that the charger shows it stands under, whoever told it; null: it does not show. */
  readonly shows: () => Desired | null;
  readonly brokerUp: () => void;
  readonly brokerDown: () => void;
}

/** What a line needs around it. */
export interface DriverPorts {
  readonly now: () => Instant;
  readonly publish: (topic: string, payload: string, options: PublishOptions) => Promise<Sent>;
  readonly say: (message: ChargerMessage) => void;
}

/** Whole seconds until a command must not be obeyed any more: its own end or its lease, whichever is first. */
export function secondsLeft({ until }: Command, lease: Millis, now: Instant): number {
  const left = until === null ? lease : Math.min(until - now, lease);
  return Math.ceil(left / 1000);
}

export const PAST: Sent = { ok: false, retry: false, reason: "its time has passed" };
