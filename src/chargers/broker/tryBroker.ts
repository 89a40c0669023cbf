import type { BrokerSession } from "./session.ts";

/** Result of trying one broker: login, subscriptions and publishes. */
export type BrokerTrial = {
  /** As in the configuration; "" is the site's own. */
  readonly name: string;
  readonly connected: boolean;
  /** Why it is not connected, as far as is known. */
  readonly trouble: string;
  /** False: MQTT 3.1.1, whose broker does not tell that it refuses a publish. */
  readonly tellsRefusals: boolean;
  readonly refusedFilters: readonly string[];
  readonly publishes: readonly PublishTrial[];
};

type PublishTrial = {
  readonly topic: string;
  /** Null: the broker has taken it. */
  readonly refusal: string | null;
  /** False: nobody subscribes to it. True: somebody does, or the broker does not tell. */
  readonly isHeard: boolean;
};

/** A `set` of version 0: every native charger ignores a version that it does not know (DESIGN 6.2). */
const IGNORED = '{"v":0}';

/** Tries to publish on each topic what commands nobody. Subscriptions were answered when the connection was made. */
export async function tryBroker(
  name: string,
  session: Pick<BrokerSession, "connected" | "trouble" | "terms" | "tryPublish">,
  topics: readonly string[],
): Promise<BrokerTrial> {
  const publishes = session.connected
    ? await Promise.all(
        topics.map(async (topic) => {
          const { sent, isHeard } = await session.tryPublish(topic, IGNORED);
          return { topic, refusal: sent.ok ? null : sent.reason, isHeard };
        }),
      )
    : [];
  const { connected, trouble, terms } = session;
  const { version, refusedFilters } = terms;
  return { name, connected, trouble, tellsRefusals: version === 5, refusedFilters, publishes };
}
