import type { BrokerSession } from "./session.ts";

/** Result of trying one broker: login, subscriptions and publishes. */
export type BrokerTrial = {
  /** As in the configuration; "" is the site's own. */
  readonly name: string;
  readonly connected: boolean;
  /** Reason why it is not connected, as far as known. */
  readonly trouble: string;
  /** False: MQTT 3.1.1, which does not report a refused publish. */
  readonly reportsRefusals: boolean;
  readonly refusedFilters: readonly string[];
  readonly publishes: readonly PublishTrial[];
};

type PublishTrial = {
  readonly topic: string;
  /** Null: the broker accepted it. */
  readonly refusal: string | null;
  /** False: the topic has no subscriber. True: it has one, or the broker does not report it. */
  readonly hasSubscriber: boolean;
};

/** A `set` of version 0: every native charger ignores unknown versions. */
const IGNORED = '{"v":0}';

/** Publishes a payload without effect on each topic. Subscriptions were answered at connect. */
export async function tryBroker(
  name: string,
  session: Pick<BrokerSession, "connected" | "trouble" | "terms" | "tryPublish">,
  topics: readonly string[],
): Promise<BrokerTrial> {
  const publishes = session.connected
    ? await Promise.all(
        topics.map(async (topic) => {
          const { sent, hasSubscriber } = await session.tryPublish(topic, IGNORED);
          return { topic, refusal: sent.ok ? null : sent.reason, hasSubscriber };
        }),
      )
    : [];
  const { connected, trouble, terms } = session;
  const { version, refusedFilters } = terms;
  return { name, connected, trouble, reportsRefusals: version === 5, refusedFilters, publishes };
}
