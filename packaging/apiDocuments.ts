import { writeFileSync } from "node:fs";
import * as z from "zod";

import { BIRTH, birthTopic, discoveryTopic, SITE_STATE } from "../src/chargers/native/homeAssistant.ts";
import {
  gatewayOnlineTopic,
  HOLD_RESULT,
  holdRequestTopic,
  nativeTopics,
  siteTopic,
} from "../src/chargers/native/messages.ts";
import {
  ackPayload,
  discoveryPayload,
  pricesPayload,
  rebootPayload,
  setPayload,
  siteStatePayload,
  statePayload,
  telemetryPayload,
} from "../src/chargers/native/payload.ts";
import type { Json } from "../src/domain/audit.ts";
import { instant } from "../src/domain/units.ts";
import { holdEndRequest, holdSchema } from "../src/operator/holdRequest.ts";
import { answers } from "../src/operator/http/answers.ts";
import { fleetRoutes, SiteOfRequest } from "../src/operator/http/fleet.ts";
import { openApi } from "../src/operator/http/openapi.ts";
import { problemBody } from "../src/operator/http/problem.ts";
import { routesOf } from "../src/operator/http/server.ts";
import type { OperatorViews } from "../src/operator/http/views.ts";

export const ASYNCAPI_FILE = new URL("../docs/asyncapi.json", import.meta.url);
export const OPENAPI_FILE = new URL("../docs/openapi.json", import.meta.url);

const text = (document: Json): string => `${JSON.stringify(document, null, 2)}\n`;

/** The routes of a listener of a fleet that never starts. */
const rows = () =>
  routesOf(
    Promise.withResolvers<OperatorViews>().promise,
    {
      access: { kind: "open" },
      now: () => instant(0),
      monotonic: () => 0,
      record: () => {},
      page: null,
      fleet: { request: new SiteOfRequest(), routes: fleetRoutes({ fleet: never, sites: never }) },
    },
    null,
  );

const never = () => Promise.withResolvers<never>().promise;

/** The HTTP API for the people on site, from the schemas that check its requests. */
export const openApiText = (): string => text(openApi(rows()));

/** A problem as MQTT carries it. */
const refusal = problemBody.pick({ title: true, status: true, detail: true, errors: true }).strict();

/** The native MQTT topics, from the schemas that read their payloads. */
export const asyncApiText = (): string =>
  text(
    asyncApi({
      hold: z.union([holdSchema, holdEndRequest]),
      holdResult: z.union([answers.openedHold, answers.hold, refusal]),
      alarm: answers.alarm,
    }),
  );

/** Stand for the levels of a topic while the addresses are made. */
const LEVELS = {
  prefix: "PREFIX",
  site: "SITE",
  charger: "CHARGER",
  region: "REGION",
  alarm: "ALARM",
  discoveryPrefix: "DISCOVERY",
  device: "DEVICE",
} as const;

const PARAMETERS: Readonly<Record<string, Json>> = {
  prefix: { description: "mqtt.prefix of the configuration.", default: "setpointd" },
  site: { description: "site.id of the configuration." },
  charger: { description: "id of the charger in the configuration." },
  region: { description: "A price region, e.g. NO1." },
  discoveryPrefix: { description: "homeAssistant.prefix of the configuration.", default: "homeassistant" },
  device: {
    description:
      "setpointd_<site> or setpointd_<site>_<charger>; characters but letters, digits, _ and - as -code-.",
  },
  alarm: { description: "key of the alarm, e.g. broker or offline:bay-01." },
};

/** JSON Schema of a payload as the sender writes it, and of the named schemas that it refers to. */
function schemaOf(schema: z.ZodType): {
  readonly payload: Json;
  readonly parts: Readonly<Record<string, Json>>;
} {
  const { $schema: _, ...made } = z.toJSONSchema(schema, {
    io: "input",
    target: "draft-7",
    unrepresentable: "any",
  });
  const text = JSON.stringify(made).replaceAll('"#/definitions/', '"#/components/schemas/');
  const { definitions: parts = {}, ...payload } = JSON.parse(text) as Record<string, Json>;
  return { payload, parts: parts as Readonly<Record<string, Json>> };
}

interface Topic {
  readonly topic: string;
  readonly summary: string;
  /** send: setpointd publishes it. */
  readonly action: "send" | "receive";
  readonly isRetained: boolean;
  readonly payload: z.ZodType;
}

/** Schemas of bodies that the HTTP API shares with these topics. */
interface SharedBodies {
  readonly hold: z.ZodType;
  /** The hold with its effect, or the problem. */
  readonly holdResult: z.ZodType;
  readonly alarm: z.ZodType;
}

function topics(bodies: SharedBodies): Readonly<Record<string, Topic>> {
  const { prefix, site, charger, region, alarm, discoveryPrefix, device } = LEVELS;
  const native = nativeTopics(prefix, site, charger);
  if (native === null) throw new Error("the placeholders of topics are no levels");
  return {
    set: {
      topic: native.set,
      summary:
        'A setpoint, a pause or a release. The charger obeys it for lease seconds, and refuses one of a lower epoch. unit is A for a current and W for a power; value, unit and until are null for pause and release. Ignore a message whose v you do not know: doctor and the test of the brokers publish {"v":0}, without other members, to see whether the broker accepts it.',
      action: "send",
      isRetained: false,
      payload: setPayload,
    },
    reboot: {
      topic: native.reboot,
      summary:
        "A person asks for a reboot. A charger may ignore it. It may answer on ack with this id; its online becomes false and true again.",
      action: "send",
      isRetained: false,
      payload: rebootPayload,
    },
    ack: {
      topic: native.ack,
      summary: "The charger accepts or refuses the set, or the reboot, of this id.",
      action: "receive",
      isRetained: false,
      payload: ackPayload,
    },
    telemetry: {
      topic: native.telemetry,
      summary: "Readings of the charger. Every member but at may be absent.",
      action: "receive",
      isRetained: false,
      payload: telemetryPayload,
    },
    online: {
      topic: native.online,
      summary: "true or false; false is the last will of the charger.",
      action: "receive",
      isRetained: true,
      payload: z.boolean(),
    },
    state: {
      topic: native.state,
      summary: "What is asked, allowed and measured, the verdict, its reason and its end.",
      action: "send",
      isRetained: true,
      payload: statePayload,
    },
    gatewayOnline: {
      topic: gatewayOnlineTopic(prefix, site),
      summary: "true or false; false is the last will of setpointd.",
      action: "send",
      isRetained: true,
      payload: z.boolean(),
    },
    holdRequest: {
      topic: holdRequestTopic(prefix, site),
      summary:
        "A hold, in the shape of POST /api/v1/holds (docs/openapi.json); or the end of the hold that applies to a charger or a vehicle. Only with operator.mqttHolds: true; a retained message is refused.",
      action: "receive",
      isRetained: false,
      payload: bodies.hold,
    },
    holdResult: {
      topic: siteTopic(prefix, site, HOLD_RESULT),
      summary:
        "The answer to each holdRequest, in the order of their arrival: the hold with its effect, or the problem with status, title, detail and errors.",
      action: "send",
      isRetained: false,
      payload: bodies.holdResult,
    },
    prices: {
      topic: siteTopic(prefix, site, `prices/${region}`),
      summary: "The price series of one region.",
      action: "send",
      isRetained: true,
      payload: pricesPayload,
    },
    siteState: {
      topic: siteTopic(prefix, site, SITE_STATE),
      summary:
        "Mode, active events, the next event, and open alarms of the site. Only with homeAssistant.discovery: true.",
      action: "send",
      isRetained: true,
      payload: siteStatePayload,
    },
    discovery: {
      topic: discoveryTopic(discoveryPrefix, device),
      summary:
        "Description of the site or of a charger for Home Assistant's device discovery. Empty once it is removed. Only with homeAssistant.discovery: true.",
      action: "send",
      isRetained: true,
      payload: discoveryPayload,
    },
    homeAssistantStatus: {
      topic: birthTopic(discoveryPrefix),
      summary: "online: Home Assistant has started, and gets the descriptions again.",
      action: "receive",
      isRetained: false,
      payload: z.string().meta({ examples: [BIRTH] }),
    },
    alarms: {
      topic: siteTopic(prefix, site, `alarms/${alarm}`),
      summary: "An open or acknowledged alarm, as GET /api/v1/alarms shows it. Empty once it has cleared.",
      action: "send",
      isRetained: true,
      payload: bodies.alarm,
    },
  };
}

/** `PREFIX/SITE/...` becomes `{prefix}/{site}/...`. */
const addressOf = (topic: string): string =>
  Object.entries(LEVELS).reduce((text, [name, level]) => text.replace(level, `{${name}}`), topic);

const parametersOf = (address: string): Record<string, Json> =>
  Object.fromEntries(
    [...address.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => [name, PARAMETERS[name] ?? {}]),
  );

/** The native MQTT topics as AsyncAPI 3, from the schemas that read their payloads. */
function asyncApi(bodies: SharedBodies): Json {
  const all = Object.entries(topics(bodies));
  const schemas = all.map(([name, { payload }]) => [name, schemaOf(payload)] as const);
  return {
    asyncapi: "3.0.0",
    info: {
      title: "setpointd native MQTT",
      version: "1",
      description:
        "Topics of chargers with the profile native, and of the site. Times are ISO 8601 with a zone, currents in A, powers in W. Unknown members are ignored.",
      license: { name: "Apache-2.0" },
    },
    defaultContentType: "application/json",
    channels: Object.fromEntries(
      all.map(([name, { topic, summary }]) => {
        const address = addressOf(topic);
        return [
          name,
          {
            address,
            summary,
            parameters: parametersOf(address),
            messages: { [name]: { $ref: `#/components/messages/${name}` } },
          },
        ];
      }),
    ),
    operations: Object.fromEntries(
      all.map(([name, { action, isRetained }]) => [
        `${action}${name[0]?.toUpperCase()}${name.slice(1)}`,
        {
          action,
          channel: { $ref: `#/channels/${name}` },
          messages: [{ $ref: `#/channels/${name}/messages/${name}` }],
          bindings: { mqtt: { qos: 1, retain: isRetained } },
        },
      ]),
    ),
    components: {
      messages: Object.fromEntries(schemas.map(([name, { payload }]) => [name, { name, payload }])),
      schemas: Object.assign({}, ...schemas.map(([, { parts }]) => parts)) as Readonly<Record<string, Json>>,
    },
  };
}

if (import.meta.main) {
  writeFileSync(OPENAPI_FILE, openApiText());
  writeFileSync(ASYNCAPI_FILE, asyncApiText());
}
