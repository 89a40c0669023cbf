import type { AuditRow } from "../../src/domain/audit.ts";
import type { Site, TrueEvent } from "../simulate/oracle.ts";
import type { Heard, SetPayload } from "../support/aFloor.ts";
import type { Delay } from "./delays.ts";

/** A command as it came to a subscriber. Times are ms since the epoch, all by the one clock of the machine. */
export interface Told {
  readonly at: number;
  readonly set: SetPayload;
}

/** A delivery that was answered with 2xx. `step`: how manieth the partner's word on this event was. */
export interface Promised {
  readonly event: string;
  readonly step: number;
  readonly at: number;
}

/** What the partner said of one event, in order; null: withdrawn. */
type History = ReadonlyMap<string, readonly (TrueEvent | null)[]>;

/** One process. `connectedAt` to its broker, `readyAt`: infinite where it never was. */
export interface Span {
  readonly startedAt: number;
  readonly connectedAt: number;
  readonly readyAt: number;
  readonly endedAt: number;
  readonly crashed: string | null;
  /** How often it lost its broker and had it again: each brings one message to each charger that is held to something. */
  readonly reconnects: number;
}

/** Everything that was seen of one depot, by those around it and in its record. */
export interface Story {
  readonly site: Site;
  readonly history: History;
  readonly lives: readonly Span[];
  /** By charger, in order. */
  readonly told: ReadonlyMap<string, readonly Told[]>;
  /** Answers of chargers that did not accept what they heard. */
  readonly refusals: readonly Heard[];
  readonly promised: readonly Promised[];
  readonly rows: readonly AuditRow[];
  /** Null: the chain of the record is whole, and no state was set aside. */
  readonly damage: string | null;
  /** Deliveries that were answered with anything but 202 or 503, which is what there is to say. */
  readonly oddAnswers: readonly string[];
  /** What the machine had no time for: of this process, and of the depot's. */
  readonly delays: readonly Delay[];
}
