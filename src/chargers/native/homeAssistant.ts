import type { Json } from "../../domain/audit.ts";
import { type Charger, isNative } from "../../domain/charger.ts";
import { gatewayOnlineTopic, holdRequestTopic, nativeTopics, siteTopic } from "./messages.ts";

/** State of the whole site for Home Assistant, below the root of the site. */
export const SITE_STATE = "gateway/state";

/** Message of Home Assistant after its start. */
export const BIRTH = "online";

/** Topic of the birth message. `prefix`: of Home Assistant. */
export const birthTopic = (prefix: string): string => `${prefix}/status`;

/** Topic of a device's description. `device` "+": of all devices. */
export const discoveryTopic = (prefix: string, device: string): string => `${prefix}/device/${device}/config`;

/** Id of a device: letters, digits, _ and -. Another character is written as its code, so ids stay different. */
const deviceId = (...levels: readonly string[]): string =>
  ["setpointd", ...levels]
    .join("_")
    .replace(/[^A-Za-z0-9_-]/g, (character) => `-${character.codePointAt(0)?.toString(16)}-`);

export interface DiscoveryOptions {
  readonly site: string;
  /** Prefix of our topics. */
  readonly prefix: string;
  readonly chargers: readonly Charger[];
  /** Holds are accepted from MQTT: each charger gets a button and a number. */
  readonly takesHolds: boolean;
  /** Version of setpointd. */
  readonly version: string;
}

/** Descriptions of the site and of its chargers for Home Assistant's device discovery, by device id. */
export function devicesOf(options: DiscoveryOptions): ReadonlyMap<string, Json> {
  const { site, prefix, chargers } = options;
  const found = new Map<string, Json>([[deviceId(site), siteDevice(options)]]);
  for (const charger of chargers) {
    // The state of a native charger at another broker is not published where Home Assistant reads.
    const topics = nativeTopics(prefix, site, charger.id);
    if (topics === null || (isNative(charger) && charger.broker !== "")) continue;
    found.set(deviceId(site, charger.id), chargerDevice(charger, topics.state, options));
  }
  return found;
}

/** Members that every device has. */
const common = ({ site, prefix, version }: DiscoveryOptions, stateTopic: string) => ({
  origin: { name: "setpointd", sw_version: version },
  availability: [
    {
      topic: gatewayOnlineTopic(prefix, site),
      payload_available: "true",
      payload_not_available: "false",
    },
  ],
  state_topic: stateTopic,
  qos: 1,
});

function siteDevice(options: DiscoveryOptions): Json {
  const { site, prefix, version } = options;
  const id = deviceId(site);
  const stateTopic = siteTopic(prefix, site, SITE_STATE);
  return {
    device: { identifiers: [id], name: site, manufacturer: "setpointd", model: "Site", sw_version: version },
    ...common(options, stateTopic),
    components: {
      event_active: {
        platform: "binary_sensor",
        unique_id: `${id}_event_active`,
        name: "Event active",
        value_template: "{{ 'ON' if value_json.eventsActive > 0 else 'OFF' }}",
        payload_on: "ON",
        payload_off: "OFF",
        json_attributes_topic: stateTopic,
        json_attributes_template:
          "{{ {'events': value_json.activeEvents, 'mode': value_json.mode} | tojson }}",
      },
      next_event: {
        platform: "sensor",
        unique_id: `${id}_next_event`,
        name: "Next event",
        device_class: "timestamp",
        value_template: "{{ value_json.nextEvent.start if value_json.nextEvent else None }}",
        json_attributes_topic: stateTopic,
        json_attributes_template: "{{ (value_json.nextEvent or {}) | tojson }}",
      },
      alarms: {
        platform: "sensor",
        unique_id: `${id}_alarms`,
        name: "Alarms",
        icon: "mdi:alert",
        state_class: "measurement",
        value_template: "{{ value_json.alarmsOpen }}",
        json_attributes_topic: stateTopic,
        json_attributes_template: "{{ {'kinds': value_json.alarmKinds} | tojson }}",
      },
    },
  };
}

/** States of native telemetry. */
const STATES = ["unplugged", "connected", "charging", "paused", "finished", "error", "unknown"];
/** Verdicts that need a person. */
const PROBLEMS = "['refused', 'notFollowed']";

function chargerDevice(charger: Charger, stateTopic: string, options: DiscoveryOptions): Json {
  const { site } = options;
  const id = deviceId(site, charger.id);
  return {
    device: {
      identifiers: [id],
      name: charger.id,
      manufacturer: "setpointd",
      model: charger.profile,
      via_device: deviceId(site),
    },
    ...common(options, stateTopic),
    components: {
      setpoint: {
        platform: "sensor",
        unique_id: `${id}_setpoint`,
        name: "Setpoint",
        ...levelTemplate(charger),
        state_class: "measurement",
        json_attributes_topic: stateTopic,
        // Under a hold that exempts it a charger has no setpoint: the reason is all that shows the hold.
        json_attributes_template:
          "{{ {'reason': (value_json.reason or {}).get('words'), 'event': (value_json.asked or {}).get('event'), 'hold': value_json.hold} | tojson }}",
      },
      measured: {
        platform: "sensor",
        unique_id: `${id}_measured`,
        name: "Measured power",
        device_class: "power",
        unit_of_measurement: "W",
        state_class: "measurement",
        value_template: "{{ value_json.measured.powerW if value_json.measured else None }}",
      },
      state: {
        platform: "sensor",
        unique_id: `${id}_state`,
        name: "State",
        device_class: "enum",
        options: STATES,
        value_template:
          "{{ (value_json.measured.state or 'unknown') if value_json.measured else 'unknown' }}",
      },
      problem: {
        platform: "binary_sensor",
        unique_id: `${id}_problem`,
        name: "Problem",
        device_class: "problem",
        value_template: `{{ 'ON' if value_json.verdict in ${PROBLEMS} or value_json.reachable == false else 'OFF' }}`,
        payload_on: "ON",
        payload_off: "OFF",
        json_attributes_topic: stateTopic,
        json_attributes_template:
          "{{ {'verdict': value_json.verdict, 'reachable': value_json.reachable, 'vehicle': value_json.vehicle, 'until': value_json.until} | tojson }}",
      },
      ...(options.takesHolds ? holdComponents(charger, id, options) : {}),
    },
  };
}

/** A charger with limits in watts alone is shown in watts. */
const isInWatts = ({ maxCurrent, maxPower }: Charger): boolean => maxCurrent === null && maxPower !== null;

/** A level in the unit of the charger. A pause is 0. Released: unknown. */
function levelTemplate(charger: Charger): { readonly [member: string]: Json } {
  const ratio = charger.phases * charger.voltage;
  const [unit, other, convert, deviceClass] = isInWatts(charger)
    ? ["W", "A", `* ${ratio}`, "power"]
    : ["A", "W", `/ ${ratio}`, "current"];
  return {
    device_class: deviceClass,
    unit_of_measurement: unit,
    value_template: `{% set level = value_json.allowed %}{% if not level or level.kind == 'release' %}{{ None }}{% elif level.kind == 'pause' %}0{% elif level.unit == '${other}' %}{{ (level.value ${convert}) | round(1) }}{% else %}{{ level.value }}{% endif %}`,
  };
}

/** A button that exempts the vehicle from events, and a number that holds a level: both until it is unplugged. And a button that ends either. */
function holdComponents(charger: Charger, id: string, { prefix, site }: DiscoveryOptions) {
  const commandTopic = holdRequestTopic(prefix, site);
  const request = { scope: { charger: charger.id }, until: { unplugged: true }, reason: "Home Assistant" };
  const member = isInWatts(charger) ? "powerW" : "currentA";
  const step = isInWatts(charger) ? 100 : 1;
  const [lower, most] = isInWatts(charger)
    ? [charger.minPower ?? 0, charger.maxPower ?? 0]
    : [charger.minCurrent ?? 6, charger.maxCurrent ?? 32];
  // Home Assistant refuses a number whose bounds are equal.
  const least = Math.min(lower, most - step);
  const level = JSON.stringify({ ...request, kind: "level" }).slice(0, -1);
  return {
    exempt: {
      platform: "button",
      unique_id: `${id}_exempt`,
      name: "Charge without events until unplugged",
      command_topic: commandTopic,
      payload_press: JSON.stringify({ ...request, kind: "exempt" }),
      qos: 1,
      retain: false,
    },
    end_hold: {
      platform: "button",
      unique_id: `${id}_end_hold`,
      name: "End the hold",
      command_topic: commandTopic,
      payload_press: JSON.stringify({ end: true, scope: request.scope, reason: request.reason }),
      qos: 1,
      retain: false,
    },
    hold: {
      platform: "number",
      unique_id: `${id}_hold`,
      name: "Hold level until unplugged",
      command_topic: commandTopic,
      command_template: `${level},"level":{"${member}":{{ value }}}}`,
      value_template: `{{ value_json.hold.level.${member} if value_json.hold and value_json.hold.level and value_json.hold.level.${member} is defined else None }}`,
      device_class: isInWatts(charger) ? "power" : "current",
      unit_of_measurement: isInWatts(charger) ? "W" : "A",
      min: least,
      max: most,
      step,
      mode: "box",
      qos: 1,
      retain: false,
    },
  };
}
