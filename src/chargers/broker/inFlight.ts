import type { Sent } from "../../domain/command.ts";
import { type Instant, seconds } from "../../domain/units.ts";

/** Why a connection is over. */
export interface Ended {
  readonly kind: EndKind;
  readonly reason: string;
}

type EndKind =
  /** The broker does not speak this MQTT. */
  | "version"
  /** It hung up before it answered CONNECT. */
  | "unanswered"
  /** It answered CONNECT with no to who we say we are. */
  | "denied"
  /** It answered CONNECT with another no. */
  | "refused"
  /** Nobody was there, or nobody answered in time. */
  | "unreachable"
  /** It was up, and is not any more. */
  | "dropped"
  /** Another client came with our id. */
  | "takenOver"
  /** We left. */
  | "stopped";

/** CONNACK 1 (MQTT 3.1.1) and 0x84 (MQTT 5). */
const VERSION_REFUSED: ReadonlySet<unknown> = new Set([1, 0x84]);
/** CONNACK 4 and 5 (MQTT 3.1.1); bad name or password, not authorized, bad method (MQTT 5). */
const IDENTITY_REFUSED: ReadonlySet<unknown> = new Set([4, 5, 0x86, 0x87, 0x8c]);
const TAKEN_OVER = 0x8e;
/** PUBACK and CONNACK codes from here on are refusals (MQTT 5, 2.4). */
const REFUSAL = 0x80;

/** Numbers are MQTT reason codes, strings are the system's. */
const codeOf = (error: Error): unknown => ("code" in error ? error.code : undefined);

/** The system tells some failures by code only. */
const words = (error: Error): string => (error.message === "" ? String(codeOf(error)) : error.message);

/** What the library puts before the words for the broker's code. */
const REFUSED_WORDS = /^Connection refused: /;

/** What an error means for a connection; `greeted`: the broker had accepted it before. */
export function endOfError(error: Error, greeted: boolean): Ended {
  const code = codeOf(error);
  const reason = words(error).replace(REFUSED_WORDS, "");
  if (greeted) return { kind: "dropped", reason };
  if (VERSION_REFUSED.has(code)) return { kind: "version", reason };
  if (IDENTITY_REFUSED.has(code)) return { kind: "denied", reason };
  if (typeof code === "number") return { kind: "refused", reason };
  const hungUp = code === "ECONNRESET" || code === "EPIPE";
  return { kind: hungUp ? "unanswered" : "unreachable", reason };
}

/** The broker closed the connection without a word. */
export const endOfClose = (greeted: boolean): Ended => ({
  kind: greeted ? "dropped" : "unanswered",
  reason: "the broker closed the connection",
});

/** The broker said goodbye, as only MQTT 5 brokers can. */
export const endOfDisconnect = (code: number): Ended =>
  code === TAKEN_OVER
    ? { kind: "takenOver", reason: "another client connected with our client id (0x8e)" }
    : { kind: "dropped", reason: `the broker disconnected us (0x${code.toString(16).padStart(2, "0")})` };

/**
 * What a publish callback means. A refusal by the broker will not change by asking again; its reason names the topic,
 * because the broker's access list is per topic.
 */
export function sentOf(error: Error | null | undefined, topic: string): Sent {
  if (error === null || error === undefined) return { ok: true };
  const code = codeOf(error);
  const isRefusal = typeof code === "number" && code >= REFUSAL;
  return {
    ok: false,
    retry: !isRefusal,
    reason: isRefusal ? `${words(error)} (topic ${topic})` : words(error),
  };
}

/** A window over publishes that are not acknowledged yet: at most `size` inside, the others wait in order (F82). */
export interface InFlight {
  /** True once a slot is taken; false: the window closed while this one waited. */
  enter(): Promise<boolean>;
  leave(): void;
  /** Turns away everyone who waits, and everyone who comes. */
  close(): void;
}

/** MQTT.js keeps no outbound quota of its own, and brokers hang up on clients that exceed theirs. */
export function inFlightWindow(size: number): InFlight {
  let inside = 0;
  let closed = false;
  let waiting: ((entered: boolean) => void)[] = [];
  return {
    enter() {
      if (closed) return Promise.resolve(false);
      if (inside < size) {
        inside += 1;
        return Promise.resolve(true);
      }
      const { promise, resolve } = Promise.withResolvers<boolean>();
      waiting.push(resolve);
      return promise;
    },
    leave() {
      const next = waiting.shift();
      // The slot is handed over: who comes in between cannot overtake.
      if (next === undefined) inside -= 1;
      else next(true);
    },
    close() {
      closed = true;
      const turnedAway = waiting;
      waiting = [];
      for (const settle of turnedAway) settle(false);
    },
  };
}

/** Retained topics come at once; a charger that tells everything every second stays below this for ever. */
const BURST = 200;
const PER_SECOND = 50;

/** Lets the messages of one charger through at a bounded rate, before anyone reads them (F95). */
export function floodGate(now: () => Instant): () => boolean {
  let left = BURST;
  let at = now();
  return () => {
    const passed = now() - at;
    at = now();
    // A clock that was set back gives nothing and takes nothing.
    left = Math.min(BURST, left + (Math.max(passed, 0) / seconds(1)) * PER_SECOND);
    if (left < 1) return false;
    left -= 1;
    return true;
  };
}
