import { ErrorWithSubackPacket, ReasonCodes } from "mqtt";

import type { Sent } from "../../domain/command.ts";
import type { Millis } from "../../domain/units.ts";
import { codeOf, messageOf } from "../../platform/text.ts";

/** End of a connection. */
export interface Ended {
  readonly kind: EndKind;
  readonly reason: string;
}

type EndKind =
  /** The broker does not support this MQTT version. */
  | "version"
  /** The broker hung up before it answered CONNECT. */
  | "unanswered"
  /** The broker accepted the connection, and did not answer CONNECT in time. */
  | "silent"
  /** The broker refused our credentials. */
  | "denied"
  /** The broker refused CONNECT for another reason. */
  | "refused"
  /** No connection, or no answer in time. */
  | "unreachable"
  /** The connection was up, and was lost. */
  | "dropped"
  /** Another client connected with our id. */
  | "takenOver"
  /** Our own stop. */
  | "stopped";

/** CONNACK 1 (MQTT 3.1.1) and 0x84 (MQTT 5). */
const VERSION_REFUSED: ReadonlySet<unknown> = new Set([1, 0x84]);
/** CONNACK 4 and 5 (MQTT 3.1.1); bad name or password, not authorized, bad method (MQTT 5). */
const IDENTITY_REFUSED: ReadonlySet<unknown> = new Set([4, 5, 0x86, 0x87, 0x8c]);
const TAKEN_OVER = 0x8e;
/** Codes of PUBACK, CONNACK (MQTT 5, 2.4) and SUBACK (MQTT 3.1.1, 3.9.3) from here on are refusals. */
const REFUSAL = 0x80;

/** Some system errors have a code and no message. */
const textOf = (error: Error): string => (error.message === "" ? String(codeOf(error)) : messageOf(error));

/** Prefix of the library before the text for a reason code. */
const REFUSED_PREFIX = /^Connection refused: /;

/** Message of the library without an answer to CONNECT. */
const NO_ANSWER = "connack timeout";

/** End of a connection by an error. `greeted`: the broker had accepted it before. `isReached`: TCP was. */
export function endOfError(error: Error, greeted: boolean, isReached = false): Ended {
  const code = codeOf(error);
  const reason = textOf(error).replace(REFUSED_PREFIX, "");
  if (greeted) return { kind: "dropped", reason };
  if (isReached && reason === NO_ANSWER) return { kind: "silent", reason };
  if (VERSION_REFUSED.has(code)) return { kind: "version", reason };
  if (IDENTITY_REFUSED.has(code)) return { kind: "denied", reason };
  if (typeof code === "number") return { kind: "refused", reason };
  const hungUp = code === "ECONNRESET" || code === "EPIPE";
  return { kind: hungUp ? "unanswered" : "unreachable", reason };
}

/** The broker closed the connection without a DISCONNECT packet. */
export const endOfClose = (greeted: boolean): Ended => ({
  kind: greeted ? "dropped" : "unanswered",
  reason: "the broker closed the connection",
});

/** The broker did not answer in time. `topic`: of a publish. Null: of a subscription. */
export const endOfSilence = (topic: string | null, deadline: Millis): Ended => ({
  kind: "dropped",
  reason: `no ${topic === null ? "SUBACK" : "PUBACK"} within ${deadline / 1000} s${topic === null ? "" : ` (topic ${topic})`}`,
});

const REASONS: Readonly<Record<number, string>> = ReasonCodes;

/** The broker sent DISCONNECT, which only MQTT 5 brokers do. */
export function endOfDisconnect(code: number): Ended {
  if (code === TAKEN_OVER)
    return { kind: "takenOver", reason: "another client connected with our client id (0x8e)" };
  const details = [REASONS[code] ?? "", `0x${code.toString(16).padStart(2, "0")}`].filter(Boolean);
  return { kind: "dropped", reason: `the broker disconnected us (${details.join(", ")})` };
}

/**
 * Result of a publish. A refusal is not retried: the broker would refuse again. Its reason names the topic,
 * because access lists are per topic.
 */
export function sentOf(error: Error | null | undefined, topic: string): Sent {
  if (error === null || error === undefined) return { ok: true };
  const code = codeOf(error);
  const isRefusal = typeof code === "number" && code >= REFUSAL;
  return {
    ok: false,
    retry: !isRefusal,
    reason: isRefusal ? `${textOf(error)} (topic ${topic})` : textOf(error),
  };
}

/**
 * Filters that a SUBACK refused. Contrary to its type, the error has no packet if the connection ended
 * before the SUBACK.
 */
export function refusedIn(error: Error, filters: readonly string[]): readonly string[] {
  const packet: ErrorWithSubackPacket["packet"] | undefined =
    error instanceof ErrorWithSubackPacket ? error.packet : undefined;
  const granted = packet?.granted ?? [];
  return filters.filter((_, index) => Number(granted[index] ?? 0) >= REFUSAL);
}

/** Names the refused filters. Without any: the message of the error. */
export const refusalOf = (error: Error, refused: readonly string[]): string =>
  refused.length === 0 ? error.message : `refused by the broker: ${refused.join(", ")}`;

export type Refusal = Extract<Sent, { readonly ok: false }>;

const TOO_LARGE = "too large: ";
export const isTooLarge = (reason: string): boolean => reason.startsWith(TOO_LARGE);

/** Most bytes of a packet beside its topics and its payload: header, lengths, packet id, properties. */
const OVERHEAD_BYTES = 17;

/**
 * Refusal of a publish that the broker would end the connection for, with all others in flight. Null: it is small enough.
 * `largest`: bytes of a packet.
 */
export function refusalOfSize(topic: string, payload: string, largest: number): Refusal | null {
  // A character is three bytes at most.
  if ((topic.length + payload.length) * 3 + OVERHEAD_BYTES <= largest) return null;
  const bytes = Buffer.byteLength(topic) + Buffer.byteLength(payload) + OVERHEAD_BYTES;
  if (bytes <= largest) return null;
  const reason = `${TOO_LARGE}${bytes} bytes, and the broker takes packets of at most ${largest} (topic ${topic})`;
  return { ok: false, retry: false, reason };
}

const MOST_FILTERS = 500;
/** Bytes of a filter beside its text: its length and its options. */
const FILTER_BYTES = 3;

/** Filters in a SUBSCRIBE, so that it is at most `largest` bytes. */
export function filtersPerPacket(
  filters: readonly string[],
  largest: number,
  most: number = MOST_FILTERS,
): number {
  const longest = filters.reduce((most, filter) => Math.max(most, Buffer.byteLength(filter)), 0);
  const fitting = Math.floor((largest - OVERHEAD_BYTES) / (longest + FILTER_BYTES));
  return Math.max(1, Math.min(most, fitting));
}

/** Reason why a broker is not connected, as a sentence. `end`: of the last connection. `place`: host and port. */
export function describeTrouble(end: Ended | null, place: string, section: string): string {
  if (end === null) return `the broker ${place} cannot be reached`;
  const { kind, reason } = end;
  if (kind === "denied")
    return `the broker ${place} refuses us (${reason}): check ${section}.username and ${section}.password`;
  if (kind === "takenOver")
    return `the broker ${place} ended our connection: ${reason}, perhaps a second gateway of this site`;
  return `the broker ${place} ${kind === "refused" ? "refuses us" : "cannot be reached"} (${reason})`;
}
