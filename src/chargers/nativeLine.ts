import { amperes } from "../core/units.ts";
import type { Line, LinePorts } from "./line.ts";
import { PAST, secondsLeft } from "./line.ts";
import { readNative, writeSet, type NativeTopics } from "./native.ts";

/** A charger that speaks the native topics (DESIGN 6.2). */
export function nativeLine(
  { set, ack, telemetry, online }: NativeTopics,
  [prefix, site]: readonly [prefix: string, site: string],
  { now, publish, say }: LinePorts,
): Line {
  let limit = amperes(0);
  return {
    topics: [ack, telemetry, online],
    async send(command, lease) {
      const expirySeconds = () => secondsLeft(command, lease, now());
      if (expirySeconds() <= 0) return PAST;
      // Not retained: a charger that reboots next week must not find this setpoint waiting.
      return publish(set, writeSet(command, lease), { retain: false, expirySeconds });
    },
    hear(topic, payload, retained) {
      const message = readNative(prefix, site, topic, payload, now(), retained);
      if (message === undefined) return;
      if (message.kind === "telemetry") limit = amperes(message.telemetry.limitA ?? limit);
      say(message);
    },
    // 0 may be a pause, or that nobody charges.
    shows: () => (limit <= 0 ? null : { kind: "current", amperes: limit }),
    brokerUp() {},
    brokerDown() {},
    [Symbol.dispose]() {},
  };
}
