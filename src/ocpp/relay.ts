import type { OcppConfig } from "../config/ocpp.ts";
import type { Instant } from "../domain/units.ts";
import type { Calls } from "./calls.ts";
import type { StationPorts } from "./outlet.ts";
import { Upstream, type UpstreamOptions } from "./proxy.ts";
import type { Dialect, Meaning } from "./wire/dialect.ts";
import { type Call, type Reply, writeCall, writeReply } from "./wire/frame.ts";

/** The connection of a charger that has an upstream. */
interface RelayedConnection extends Pick<
  UpstreamOptions,
  "identity" | "authorization" | "dialect" | "former"
> {
  readonly calls: Calls;
  /** A request of the upstream, as the charger gets it. */
  readonly toCharger: (call: Call) => Call;
}

/** The relay of one connection. Null: we are the only central system. */
export function upstreamFor(
  { identity, authorization, dialect, former, calls, toCharger }: RelayedConnection,
  { upstream, callTimeout }: Pick<OcppConfig, "upstream" | "callTimeout">,
  { relayStore, random, log }: Pick<StationPorts, "relayStore" | "random" | "log">,
): Upstream | null {
  if (upstream === null || relayStore === null) return null;
  const relay: Upstream = new Upstream({
    url: upstream.url,
    ca: () => upstream.ca?.current() ?? null,
    identity,
    authorization,
    dialect,
    deadline: callTimeout,
    former,
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
