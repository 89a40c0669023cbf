import { BIRTH, birthTopic } from "../native/homeAssistant.ts";
import { holdRequestTopic, isUnder } from "../native/messages.ts";
import type { ConnectionOptions, HoldMessage } from "./address.ts";
import { FloodGate } from "./flowControl.ts";

/** Listeners by topic, for one broker. */
export interface TopicRouter<Listener> {
  readonly connect: (filter: string, listener: Listener) => void;
  readonly listeners: (topic: string) => ReadonlySet<Listener>;
}

/**
 * Exact topics are looked up. The few filters with + are tried one by one. `below`: the listener to the topics below this
 * one that end with one of the leaves.
 */
export function topicRouter<Listener>(
  leaves: readonly string[] = [],
  below: (root: string) => Listener | undefined = () => undefined,
): TopicRouter<Listener> {
  /** Arrays: of 60,000 topics most have one listener, and a set of one takes three times the memory. */
  const exact = new Map<string, readonly Listener[]>();
  const wild: { readonly levels: readonly string[]; readonly listener: Listener }[] = [];
  return {
    connect(filter, listener) {
      if (filter.includes("+")) wild.push({ levels: filter.split("/"), listener });
      else {
        const others = exact.get(filter);
        exact.set(filter, others === undefined ? [listener] : [...others, listener]);
      }
    },
    listeners(topic) {
      const found = new Set(exact.get(topic));
      const end = topic.lastIndexOf("/");
      const isBelow = leaves.includes(topic.slice(end + 1));
      const native = isBelow ? below(topic.slice(0, Math.max(end, 0))) : undefined;
      if (native !== undefined) found.add(native);
      for (const { levels, listener } of wild) if (isUnder(topic, levels)) found.add(listener);
      return found;
    },
  };
}

/** Handlers of messages to the site itself, by topic, at its own broker. */
export function siteMessages(
  prefix: string,
  { site, now, log, onHoldMessage, homeAssistant }: ConnectionOptions,
): ReadonlyMap<string, (message: HoldMessage) => void> {
  const handlers = new Map<string, (message: HoldMessage) => void>();
  const gate = new FloodGate(now());
  if (onHoldMessage !== undefined)
    handlers.set(holdRequestTopic(prefix, site), (message) => {
      if (gate.admits(now())) onHoldMessage(message);
      else log.warn("request for a hold discarded: too many messages in a second");
    });
  if (homeAssistant !== undefined)
    handlers.set(birthTopic(homeAssistant.prefix), ({ payload }) => {
      if (payload.toString("utf8") === BIRTH) homeAssistant.onBirth();
    });
  return handlers;
}
