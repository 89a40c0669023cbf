import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { EMPTY, type Observable } from "rxjs";
import * as z from "zod";

import { devicesOf, discoveryTopic, SITE_STATE } from "../../chargers/native/homeAssistant.ts";
import { siteTopic } from "../../chargers/native/messages.ts";
import type { Config } from "../../config/schema.ts";
import { hasEnded } from "../../control/ingest/absence.ts";
import type { ControlState } from "../../control/state.ts";
import type { Sent } from "../../domain/command.ts";
import { type Instant, iso } from "../../domain/units.ts";
import type { GaugeRow } from "../../operator/gauges.ts";
import { version } from "../../platform/packageRoot.ts";
import { every, fanIn } from "../../platform/scheduling.ts";
import { fileFault } from "../../store/fault.ts";
import { readOwn, replaceFile } from "../../store/files.ts";

/** Ms. The events are walked each time. */
const EVERY = 2_000;
/** Cap on events in the attributes. */
const MOST_EVENTS = 20;
/** File in the state folder: descriptions that the broker may still keep. */
const FILE = "homeassistant.json";

const kept = z.object({ topics: z.array(z.string()) });

interface DiscoveryPorts {
  readonly config: Config;
  readonly state: ControlState;
  readonly now: () => Instant;
  /** Alarms that are not cleared, by kind. */
  readonly alarms: () => readonly GaugeRow[];
  /** Publishes a retained message at the site's own broker. Never throws. */
  readonly publish: (topic: string, payload: string) => Promise<Sent>;
  /** Logs a problem. Each is reported once. */
  readonly warn: (reason: string, message: string) => void;
}

/**
 * Describes the site and its chargers to Home Assistant, and removes what is no longer described: discovery was switched
 * off, a charger left the configuration, the prefix changed. `brokerUp$`: the site's own, "", may have lost its retained
 * messages. `birth$`: Home Assistant has started.
 */
export function homeAssistant(
  brokerUp$: Observable<string>,
  birth$: Observable<void>,
  { config, state, now, alarms, publish, warn }: DiscoveryPorts,
): Observable<unknown> {
  const { discovery, prefix } = config.homeAssistant;
  const path = join(config.state, FILE);
  const stateTopic = siteTopic(config.mqtt.prefix, config.site.id, SITE_STATE);
  const wanted = discovery ? descriptionsOf(config) : new Map<string, string>();
  const stale = keptIn(path).filter((topic) => !wanted.has(topic) && !(discovery && topic === stateTopic));
  /** Payloads that the broker does not have yet, by topic. */
  const pending = new Map<string, string>();
  /** Topics of `stale` that are not removed yet. */
  const left = new Set(stale);
  let lastState: string | null = null;
  const warned = new Set<string>();
  const warnOnce = (reason: string, message: string): void => {
    if (!warned.has(message)) warn(reason, message);
    warned.add(message);
  };

  /** False: the file cannot be stored. A full disk must not keep the chargers from their releases. */
  const remember = (): boolean => {
    const topics = [...wanted.keys(), ...(discovery ? [stateTopic] : []), ...left];
    try {
      if (topics.length > 0) replaceFile(path, JSON.stringify({ topics }));
      else if (existsSync(path)) rmSync(path);
      return true;
    } catch (error) {
      warnOnce(
        fileFault(error).reason,
        "the descriptions for Home Assistant wait: their list cannot be stored",
      );
      return false;
    }
  };
  const describeAll = (): void => {
    for (const topic of left) pending.set(topic, "");
    for (const [topic, payload] of wanted) pending.set(topic, payload);
    lastState = null;
  };
  const describeState = (): undefined => {
    if (!discovery) return;
    const text = JSON.stringify(siteState(state, alarms(), now()));
    if (text !== lastState) pending.set(stateTopic, text);
    lastState = text;
  };
  const send = async (): Promise<void> => {
    isStored ||= remember();
    if (!isStored) return;
    for (const [topic, payload] of pending) {
      pending.delete(topic);
      const sent = await publish(topic, payload);
      if (sent.ok) {
        // A list that cannot be stored names the topic still: a later run removes it again.
        if (left.delete(topic)) remember();
        continue;
      }
      if (sent.retry) {
        // A newer payload is not replaced.
        if (!pending.has(topic)) pending.set(topic, payload);
        return;
      }
      // The broker refuses this topic: the next connection tries again.
      warnOnce(
        sent.reason,
        discovery
          ? "the broker refuses a topic for Home Assistant: setpointd acl prints the rights that it needs"
          : `the broker refuses to remove a description for Home Assistant: allow ${discoveryTopic(prefix, "+")} and ${stateTopic} until it is removed, or remove it there`,
      );
    }
  };

  if (!discovery && left.size === 0) return EMPTY;
  // Stored before the first publish: what is on the broker can be removed by a later run.
  let isStored = remember();
  describeAll();
  return fanIn<void>((join) => {
    join(brokerUp$, (broker) => {
      if (broker === "") describeAll();
    });
    join(birth$, describeAll);
    // Two rounds: a slow broker gets the state as it is then.
    join(every(EVERY, describeState, 0));
    join(every(EVERY, send, 0));
  });
}

/** The description of each device, by its topic. */
function descriptionsOf({
  site,
  mqtt,
  chargers,
  operator,
  homeAssistant,
}: Config): ReadonlyMap<string, string> {
  const devices = devicesOf({
    site: site.id,
    prefix: mqtt.prefix,
    chargers,
    takesHolds: operator.mqttHolds,
    version: version(),
  });
  return new Map(
    [...devices].map(([device, description]) => [
      discoveryTopic(homeAssistant.prefix, device),
      JSON.stringify(description),
    ]),
  );
}

/** Topics that an earlier run has described. An unreadable file is as none: a person removes what is left. */
function keptIn(path: string): readonly string[] {
  if (!existsSync(path)) return [];
  try {
    const read = kept.safeParse(JSON.parse(readOwn(path).toString("utf8")));
    return read.success ? read.data.topics : [];
  } catch {
    return [];
  }
}

/** State of the site: active events, the next one, alarms. */
function siteState(state: ControlState, alarms: readonly GaugeRow[], now: Instant) {
  const open = [...state.known.values()].flatMap((known) =>
    known.kind === "live" && !hasEnded(known, now) ? [known.revision] : [],
  );
  const active = open.filter(({ start }) => start <= now);
  const [next] = open.filter(({ start }) => start > now).toSorted((a, b) => a.start - b.start);
  const raised = alarms.filter(({ value }) => value > 0);
  return {
    mode: state.mode.current,
    eventsActive: active.length,
    activeEvents: active.slice(0, MOST_EVENTS).map(({ event: { id, name } }) => ({ id, name })),
    nextEvent:
      next === undefined ? null : { id: next.event.id, name: next.event.name, start: iso(next.start) },
    alarmsOpen: raised.reduce((sum, { value }) => sum + value, 0),
    alarmKinds: [...new Set(raised.map(({ labels }) => labels["kind"] ?? ""))],
  };
}
