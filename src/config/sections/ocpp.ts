import * as z from "zod";

import { address } from "../fields/address.ts";
import { count, duration, quantity, topicName } from "../fields/quantities.ts";
import { pem, secrets } from "../fields/secret.ts";
import { brokerSection } from "./mqtt.ts";

/** A part of a URL: what a charger sends after the path. */
const identity = z
  .string({ error: "the identity that the charger sends, 1 to 48 characters without a slash or a blank" })
  .regex(/^[^\s/?#\p{Cc}]{1,48}$/u);

const connectorEntry = z.strictObject({
  id: count(0, 1000).describe(
    "Number of the connector in OCPP, from 1 (evseId in OCPP 2.0.1). 0: the whole station, for outlets that share power. Required.",
  ),
  charger: topicName.describe("id of this charger in the daemon's configuration. Required, unique."),
  unit: z
    .enum(["A", "W"])
    .optional()
    .describe("Unit of the limits, A or W. Left out: the unit that the charger reports to allow."),
  stackLevel: count(0, 10_000)
    .optional()
    .describe(
      "Stack level of our charging profiles. Higher wins over profiles of the same purpose. Left out: the highest that the charger allows.",
    ),
  phases: count(1, 3).prefault(3).describe("Phases for converting between A and W, 1 to 3. Default 3."),
  voltage: quantity(100, 500, "volts", 230)
    .prefault(230)
    .describe("Voltage between phase and neutral for the same conversion, in V. Default 230."),
  sendPhases: z
    .boolean()
    .prefault(false)
    .describe("Sends phases as numberPhases of each limit. Some makes need it. Default false."),
  profileKind: z
    .enum(["absolute", "relative"])
    .prefault("absolute")
    .describe(
      "Kind of our charging profiles. relative: for a make that ignores absolute ones. Default absolute.",
    ),
  writesPerHour: count(1, 3600)
    .prefault(60)
    .describe(
      "Charging profiles written per hour, 1 to 3600, to spare the flash memory. A lower number makes the limit outlast the bridge longer. Default 60.",
    ),
});

const stationEntry = z.strictObject({
  identity: identity.describe("Identity of the charger, the last part of its URL. Required, unique."),
  password: secrets
    .optional()
    .describe(
      "Password of the charger (security profiles 1 and 2), as { file: PATH } or { env: NAME }. During a rotation a list.",
    ),
  certificate: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe(
      "Common name of the charger's client certificate (security profile 3). Needs ocpp.tls.clientCa.",
    ),
  connectors: z.array(connectorEntry).min(1).max(64).describe("Its connectors and their chargers. Required."),
});

const tags = z.union(
  [z.literal("all"), z.strictObject({ tags: z.array(z.string().min(1).max(255)).max(100_000) })],
  { error: 'all, or { tags: ["04A2B3C4", ...] }' },
);

export const ocppFile = z.strictObject({
  site: topicName.describe("site.id of the daemon's configuration. Required."),
  state: z
    .string()
    .min(1)
    .prefault("./ocpp-state")
    .describe(
      "Directory of the stored state; relative to $STATE_DIRECTORY if systemd sets it, otherwise to this file. Default ./ocpp-state.",
    ),
  mqtt: brokerSection.describe("The broker that the daemon uses, with the same prefix."),
  ocpp: z
    .strictObject({
      listen: address
        .prefault("0.0.0.0:9000")
        .describe("Host and port that the chargers connect to. Default 0.0.0.0:9000."),
      path: z
        .string({ error: "a path that starts with a slash and does not end with one, e.g. /ocpp" })
        .regex(/^(\/[A-Za-z0-9._~-]{1,64}){0,4}$/)
        .prefault("/ocpp")
        .describe("Path before the identity: ws://host:9000/ocpp/<identity>. Default /ocpp."),
      tls: z
        .strictObject({
          cert: pem.describe("PEM file of the certificate, with its chain. Required within tls."),
          key: pem.describe("PEM file of its private key. Required within tls."),
          clientCa: pem
            .optional()
            .describe("PEM file of the authority that signed the chargers' certificates (profile 3)."),
        })
        .optional()
        .describe(
          "Serves wss (security profiles 2 and 3). The files are read again each minute and on SIGHUP. Left out: ws.",
        ),
      authorize: tags
        .prefault("all")
        .describe(
          "Tokens that may charge: all, or { tags: [..] }. In proxy mode: while the upstream is away.",
        ),
      allowAnonymous: z
        .boolean()
        .prefault(false)
        .describe(
          "Accepts stations without password and certificate. Only in a network of their own. On loopback they are accepted with a warning. Default false.",
        ),
      heartbeat: duration("10s", "1d")
        .prefault("60s")
        .describe("Interval of the chargers' heartbeats. Default 60s."),
      callTimeout: duration("1s", "5m")
        .prefault("30s")
        .describe("Longest wait for the answer to a request of ours. Default 30s."),
      meterValues: z
        .strictObject({
          every: duration("1s", "1h")
            .prefault("10s")
            .describe("Interval of meter values that is set in the chargers. Default 10s."),
          measurands: z
            .array(z.string().regex(/^[A-Za-z0-9.-]{1,64}$/))
            .min(1)
            .max(20)
            .prefault(["Power.Active.Import", "Current.Import", "Energy.Active.Import.Register"])
            .describe(
              "Measurands that are set in the chargers. Default Power.Active.Import, Current.Import, Energy.Active.Import.Register.",
            ),
          configure: z
            .boolean()
            .prefault(true)
            .describe("Changes the settings of the chargers. false: as they are. Default true."),
        })
        .prefault({})
        .describe("Meter values that the daemon needs for its verdicts."),
    })
    .prefault({})
    .describe("Listener for the chargers."),
  upstream: z
    .strictObject({
      url: z
        .string({ error: "ws:// or wss:// with a host and a path, e.g. wss://csms.example/ocpp" })
        .regex(/^wss?:\/\/[^\s@?#]+[^\s@?#/]$/)
        .describe(
          "Address of the other central system, without the identity, which is appended. Required within upstream.",
        ),
      ca: pem
        .optional()
        .describe("PEM file of the authority of its certificate. Left out: the system's authorities."),
    })
    .optional()
    .describe(
      "Another central system that the chargers belong to: every station is relayed to it, with its own credentials. Left out: we are their only central system.",
    ),
  status: address
    .prefault("127.0.0.1:9080")
    .describe("Host and port of the bridge's own status and metrics, on loopback. Default 127.0.0.1:9080."),
  stations: z
    .array(stationEntry)
    .max(20_000)
    .prefault([])
    .describe("The chargers that may connect. Default []."),
});
