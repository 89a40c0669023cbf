import type { OcppConfig } from "../config/ocpp.ts";
import type { Instant } from "../domain/units.ts";
import type { Calls } from "./calls.ts";
import type { StationPorts } from "./outlet.ts";
import { Upstream, type UpstreamOptions } from "./proxy.ts";
import type { Dialect, Meaning } from "./wire/dialect.ts";
import { type Call, type Reply, writeCall, writeReply } from "./wire/frame.ts";

/** A WebSocket of a station. */
export interface Link {
  readonly address: string;
  /** Header of its login. Null: none. */
  readonly authorization: string | null;
  /** Versions of OCPP that the station offers, best first. */
  readonly offered: readonly Dialect[];
  readonly send: (text: string) => void;
  /** Closes with a reason that the station can log. */
  readonly close: (reason: string) => void;
}

/** The connection of a station with our calls on it. */
export interface Connected {
  readonly since: Instant;
  readonly link: Link;
  readonly dialect: Dialect;
  readonly calls: Calls;
  /** Null: we are its only central system. */
  readonly upstream: Upstream | null;
}

/** Time until a version that the upstream has refused is tried again, ms. The station has to connect again for it. */
const TRIED_AGAIN_AFTER = 10 * 60_000;
/** Time until the refusal of a version is forgotten, ms. It may have been one of a proxy, or of an older system. */
const FORGOTTEN_AFTER = 24 * 60 * 60_000;

/** Versions of OCPP that the upstream has refused for one station. */
export class RefusedVersions {
  readonly #now: () => Instant;
  readonly #refusedAt = new Map<Dialect, Instant>();

  constructor(now: () => Instant) {
    this.#now = now;
  }

  /** The first version that was not refused in the last day, else the one whose refusal is oldest. `offered`: best first. */
  best(offered: readonly Dialect[]): Dialect | undefined {
    const since = (each: Dialect): number => {
      const at = this.#refusedAt.get(each) ?? 0;
      return this.#now() - at < FORGOTTEN_AFTER ? at : 0;
    };
    return offered.toSorted((a, b) => since(a) - since(b))[0];
  }

  /** The version to try after a refusal. Null: the station offers none, or it was refused a short time ago. */
  next(refused: Dialect, offered: readonly Dialect[]): Dialect | null {
    const now = this.#now();
    this.#refusedAt.set(refused, now);
    const other = this.best(offered);
    if (other === undefined || other === refused) return null;
    return now - (this.#refusedAt.get(other) ?? 0) < TRIED_AGAIN_AFTER ? null : other;
  }
}

/** The connection of a charger that has an upstream. */
interface RelayedConnection extends Pick<
  UpstreamOptions,
  "identity" | "authorization" | "dialect" | "former" | "onVersionRefused"
> {
  readonly calls: Calls;
  /** A request of the upstream, as the charger gets it. */
  readonly toCharger: (call: Call) => Call;
}

/** The relay of one connection. Null: we are the only central system. */
export function upstreamFor(
  { calls, toCharger, ...connection }: RelayedConnection,
  { upstream, callTimeout }: Pick<OcppConfig, "upstream" | "callTimeout">,
  { relayStore, random, log }: Pick<StationPorts, "relayStore" | "random" | "log">,
): Upstream | null {
  if (upstream === null || relayStore === null) return null;
  const relay: Upstream = new Upstream({
    ...connection,
    url: upstream.url,
    ca: () => upstream.ca?.current() ?? null,
    deadline: callTimeout,
    store: relayStore,
    random,
    log,
    toStation: (call, text) => {
      const { id } = call;
      const changed = toCharger(call);
      return calls.pass({
        id,
        text: changed === call ? text : writeCall(id, changed.action, changed.payload),
        onTimeout: () => relay.answer(writeReply(id, NO_ANSWER)),
      });
    },
  });
  return relay;
}

const NO_ANSWER: Reply = { ok: false, code: "GenericError", description: "the charger did not answer" };

/** Id of the transaction that a message starts. Null: none. */
export const startedIn = (meanings: readonly Meaning[]): string | null =>
  meanings.find((meaning) => meaning.kind === "started")?.transaction ?? null;

/** Meanings with the transaction id of the answer that the charger got. */
export const named = (meanings: readonly Meaning[], reply: Reply, dialect: Dialect): readonly Meaning[] =>
  meanings.map((meaning) =>
    meaning.kind === "started" && reply.ok
      ? { ...meaning, transaction: dialect.transactionIn(reply.payload) ?? meaning.transaction }
      : meaning,
  );

/** Unique over restarts: seconds of our time, and counted up within one. It fits 32 bits until 2084. */
export const nextTransactionId = (last: number, now: Instant): number =>
  Math.max(last + 1, Math.floor(now / 1000) - 1_500_000_000);
