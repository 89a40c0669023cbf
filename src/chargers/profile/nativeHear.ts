import { ackPayload, readPayload, telemetryPayload } from "../nativePayload.ts";
import { type Heard, type Means, NOTHING_HEARD } from "./means.ts";

/** Last levels of the topics that a native charger speaks on (DESIGN 6.2). */
export const NATIVE_LEAVES: readonly string[] = ["ack", "telemetry", "online"];

/** The native topics of any charger of any site (DESIGN 6.2); the daemon subscribes by its own prefix and site. */
export const NATIVE_FILTERS: readonly string[] = NATIVE_LEAVES.map((leaf) => `+/+/chargers/+/${leaf}`);

/** What a native message means; read by the same schemas as the daemon reads it. */
export function hearNative(topic: string, payload: string): Heard {
  const [, leaf] = /(?:^|\/)chargers\/[^/]+\/(telemetry|ack|online)$/.exec(topic) ?? [];
  if (leaf === "telemetry") return { means: telemetryMeans(payload), answer: null };
  if (leaf === "ack") return ackHeard(payload);
  const online = payload.trim();
  if (leaf !== "online" || (online !== "true" && online !== "false")) return NOTHING_HEARD;
  return { means: { online: online === "true" }, answer: null };
}

function telemetryMeans(payload: string): Means {
  const read = readPayload(telemetryPayload, Buffer.from(payload));
  if (!read.ok) return {};
  const { state, vehicle, identity, powerW, currentsA, voltagesV, energyWh, sessionWh, soc, limitA } =
    read.value;
  const named =
    typeof vehicle === "string"
      ? { vehicleId: vehicle, vehicleIdKind: "vehicle" }
      : identity
        ? { vehicleId: identity.value, vehicleIdKind: identity.kind }
        : { vehicleId: vehicle === null || identity === null ? null : undefined };
  const told: Readonly<Record<keyof Means, unknown>> | object = {
    state,
    ...named,
    powerW,
    currentsA,
    voltagesV,
    energyWh,
    sessionEnergyWh: sessionWh,
    socPct: soc,
    limitA,
  };
  return present(told);
}

const present = (told: object): Means =>
  Object.fromEntries(Object.entries(told).filter(([, value]) => value !== undefined));

function ackHeard(payload: string): Heard {
  const read = readPayload(ackPayload, Buffer.from(payload));
  return read.ok
    ? { means: {}, answer: { accepted: read.value.accepted, reason: read.value.reason } }
    : NOTHING_HEARD;
}
