import type { ChargerState } from "../../domain/telemetry.ts";
import type { Instant } from "../../domain/units.ts";
import type { Identity } from "../../domain/vehicle.ts";
import type { Call, Payload, Reply } from "./frame.ts";
import type { Readings } from "./meterValues.ts";

/** The seam between a version of OCPP and the rest. Only the dialects know the names on the wire. */

export type RateUnit = "A" | "W";

/**
 * Meaning of a station's message. A connector is an EVSE in 2.0.1. 0: the whole station. Null connector: the message
 * names its transaction only.
 */
export type Meaning =
  | { readonly kind: "boot"; readonly vendor: string; readonly model: string; readonly firmware: string }
  /** `at`: by the station's clock. Null: absent or unreadable. */
  | {
      readonly kind: "status";
      readonly connector: number;
      /** Connector of the EVSE (2.0.1). Null: an outlet has one plug (1.6). */
      readonly plug: number | null;
      readonly state: ChargerState;
      /** Null: no fault. */
      readonly fault: string | null;
      readonly at: Instant | null;
    }
  | {
      readonly kind: "started";
      readonly connector: number | null;
      readonly transaction: string;
      readonly identity: Identity | null;
      /** Energy register at the start, Wh. Null: unknown. */
      readonly meterWh: number | null;
      readonly at: Instant | null;
    }
  | {
      readonly kind: "stopped";
      readonly connector: number | null;
      readonly transaction: string;
      readonly meterWh: number | null;
      readonly at: Instant | null;
    }
  | {
      readonly kind: "meter";
      readonly connector: number | null;
      /** Null: outside a transaction. */
      readonly transaction: string | null;
      readonly readings: Readings;
      readonly at: Instant | null;
    }
  /** The energy transfer of a transaction (2.0.1). */
  | {
      readonly kind: "charging";
      readonly connector: number | null;
      readonly transaction: string;
      readonly state: ChargerState;
    }
  /** A vehicle is there. Its transaction has the state of charging (2.0.1). */
  | {
      readonly kind: "occupied";
      readonly connector: number;
      readonly plug: number;
      readonly at: Instant | null;
    }
  /** The token came after the start of the transaction (2.0.1). */
  | {
      readonly kind: "identified";
      readonly connector: number | null;
      readonly transaction: string;
      readonly identity: Identity;
    };

type Start = Extract<Meaning, { kind: "started" }>;

/** Sessions without an EVSE that are kept. A station with more of them has a fault. */
const MOST_UNPLACED = 50;

/** Sessions that began with a token, before the vehicle was plugged in at one of several EVSEs (2.0.1). */
export class UnplacedStarts {
  readonly #starts = new Map<string, Start>();

  /** The meanings, and before the first one that names the EVSE of a kept session its start. */
  placed(meanings: readonly Meaning[]): readonly Meaning[] {
    return meanings.flatMap((meaning) => {
      const connector = "connector" in meaning ? meaning.connector : null;
      const transaction = "transaction" in meaning ? meaning.transaction : null;
      const start = this.#starts.get(transaction ?? "");
      if (connector === null || start === undefined) return [meaning];
      this.#starts.delete(start.transaction);
      return [{ ...start, connector }, meaning];
    });
  }

  /** True: this session has not named its EVSE yet. */
  has(transaction: string): boolean {
    return this.#starts.has(transaction);
  }

  /** Keeps what a message of no outlet reports of its session. */
  keep(meaning: Meaning): void {
    if (meaning.kind === "stopped") this.#starts.delete(meaning.transaction);
    if (meaning.kind === "started" && this.#starts.size < MOST_UNPLACED)
      this.#starts.set(meaning.transaction, meaning);
    const start = meaning.kind === "identified" ? this.#starts.get(meaning.transaction) : undefined;
    if (meaning.kind === "identified" && start !== undefined)
      this.#starts.set(start.transaction, { ...start, identity: meaning.identity });
  }
}

/** Inputs of a local answer. */
export interface Answering {
  readonly now: Instant;
  /** Interval of Heartbeat in s. */
  readonly heartbeat: number;
  readonly accepts: (token: string) => boolean;
  /** Next transaction id, for versions whose central system names transactions. */
  readonly nextTransaction: () => number;
}

/** A CALL as read: the local answer, and its meaning. */
export interface Received {
  readonly reply: Reply;
  readonly meanings: readonly Meaning[];
}

/** A request of ours, with the reader of its answer. */
export interface Request<T> {
  readonly action: string;
  readonly payload: Payload;
  readonly read: (payload: Payload) => T;
  /** A setpoint: it is sent before requests that only ask or configure. */
  readonly isUrgent?: boolean;
}

/** Answer to a request that can be refused. */
export interface Outcome {
  readonly accepted: boolean;
  /** The status as the station sent it, e.g. Rejected. */
  readonly status: string;
}

/** Abilities of a station. Null: it does not report them. */
export interface Capabilities {
  readonly smartCharging: boolean | null;
  readonly remoteTrigger: boolean | null;
  readonly maxStackLevel: number | null;
  readonly units: readonly RateUnit[] | null;
  /** Present values of the settings that we may change. */
  readonly settings: ReadonlyMap<string, string>;
}

/** A limit as a charging profile. */
export interface Limit {
  readonly connector: number;
  /** Null: for every transaction, present and future. */
  readonly transaction: string | null;
  readonly value: number;
  readonly unit: RateUnit;
  /** Null: not sent. */
  readonly phases: number | null;
  readonly stackLevel: number;
  readonly profileId: number;
  readonly kind: "absolute" | "relative";
  /** Start of the validity. It lies in the past, because a station's clock may be late. */
  readonly from: Instant;
  /** End of the limit without a refresh, by the station's clock. */
  readonly until: Instant;
  /** Begin of the schedule. For relative profiles the begin of the transaction. Null: unknown, so the schedule has no end. */
  readonly begin: Instant | null;
}

/** Purpose and level of a profile at its connector. */
export type ProfilePlace = Pick<Limit, "connector" | "transaction" | "stackLevel">;

/** Limit that a station reports to apply now. Null: none was readable. */
export interface Composite {
  readonly value: number;
  readonly unit: RateUnit;
}

/** Meter values that stations are to send. */
export interface MeterSettings {
  /** Interval of meter values in s. */
  readonly every: number;
  readonly measurands: readonly string[];
}

/** A version of OCPP: its messages as values, and requests in its words. */
export interface Dialect {
  readonly subprotocol: string;
  readonly version: "1.6" | "2.0.1";
  readonly receive: (call: Call, answering: Answering) => Received;
  readonly capabilities: () => Request<Capabilities>;
  /** Settings that differ from the wanted ones. */
  readonly meterSettings: (wanted: MeterSettings, present: Capabilities) => readonly Setting[];
  readonly configure: (setting: Setting) => Request<Outcome>;
  readonly setLimit: (limit: Limit) => Request<Outcome>;
  readonly clearLimit: (profileId: number) => Request<Outcome>;
  readonly clearPlace: (place: ProfilePlace) => Request<Outcome>;
  readonly composite: (connector: number, seconds: number, unit: RateUnit) => Request<Composite | null>;
  /** A message that another central system must not miss. */
  readonly isOfTransaction: (call: Call) => boolean;
  /** A message of a transaction that only has readings. */
  readonly isReading: (call: Call) => boolean;
  /** A start or a stop whose repeat looks like another one to the other central system. */
  readonly isOnce: (call: Call) => boolean;
  /** Calls with one key replace each other: the latest shows the present state. Null: it shows no state. */
  readonly snapshotKey: (call: Call) => string | null;
  /** The payload with these names. Unchanged where it names no transaction of `names`. */
  readonly renameTransaction: (payload: Payload, names: ReadonlyMap<string, string>) => Payload;
  /** Transaction id that a central system gave. Null: none. */
  readonly transactionIn: (payload: Payload) => string | null;
  /** The station ends its transactions in good order, and restarts. */
  readonly reset: () => Request<Outcome>;
  readonly trigger: (what: "status" | "meter" | "heartbeat", connector: number | null) => Request<Outcome>;
}

/** A configuration key of a station. */
export interface Setting {
  readonly key: string;
  readonly value: string;
  /** Null: the station does not report it. */
  readonly before: string | null;
}

/** A call that is answered with this payload. */
export const ok = (payload: Payload, ...meanings: readonly Meaning[]): Received => ({
  reply: { ok: true, payload },
  meanings,
});

/** A call that is answered with an error. */
export const refuse = (code: string, description: string): Received => ({
  reply: { ok: false, code, description },
  meanings: [],
});

export const request = <T>(action: string, payload: Payload, read: (payload: Payload) => T): Request<T> => ({
  action,
  payload,
  read,
});

/** Messages that a station sends when asked to, by what is wanted. */
export const TRIGGERS = { status: "StatusNotification", meter: "MeterValues", heartbeat: "Heartbeat" };
