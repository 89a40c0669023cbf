import * as z from "zod";

import type { Finding } from "../explain.ts";
import { address, type Address, isLoopback, trustedProxies } from "../fields/address.ts";
import type { KeyPair, OpenPem, PemSource } from "../fields/pem.ts";
import { pem } from "../fields/secret.ts";

export const operatorSection = z.strictObject({
  listen: address
    .prefault("127.0.0.1:8080")
    .describe(
      "Host and port of the API, health and metrics. Default 127.0.0.1:8080. Other than loopback needs access: login.",
    ),
  hosts: z
    .array(z.string().regex(/^[A-Za-z0-9][A-Za-z0-9.-]{0,252}$/))
    .max(64)
    .prefault([])
    .describe(
      "Further host names of this listener, e.g. a DNS name. Its addresses, localhost and this machine's own name need not be listed. Default [].",
    ),
  access: z
    .enum(["open", "login"])
    .prefault("open")
    .describe(
      "Who may use the listener. open: everyone who reaches it, on loopback only. login: users and tokens of setpointd user and setpointd token, with tls or trustProxy. Default open.",
    ),
  trustProxy: trustedProxies.describe(
    "Addresses or networks of your reverse proxies, which serve HTTPS: their X-Forwarded-For and X-Forwarded-Proto are trusted. true trusts every sender. Default false.",
  ),
  mqttHolds: z
    .boolean()
    .prefault(false)
    .describe(
      "Accepts holds from MQTT: the body of POST holds on <prefix>/<site>/holds/set at the site's own broker; the answer goes to holds/result. Everyone who may publish there may open one. Default false.",
    ),
  tls: z
    .strictObject({
      cert: pem.describe("PEM file of the listener's certificate, with its chain. Required within tls."),
      key: pem.describe("PEM file of that certificate's private key. Required within tls."),
    })
    .optional()
    .describe(
      "Serves the people on site over HTTPS. The files are read again on SIGHUP. Leave it out behind a reverse proxy that serves HTTPS.",
    ),
});

type Section = z.infer<typeof operatorSection>;

export interface OperatorConfig {
  readonly listen: Address;
  readonly hosts: readonly string[];
  readonly access: "open" | "login";
  readonly trustProxy: boolean | readonly string[];
  readonly mqttHolds: boolean;
  /** Null: plain HTTP. */
  readonly tls: PemSource<KeyPair> | null;
}

export const operatorConfig = (section: Section, openPem: OpenPem): OperatorConfig => ({
  ...section,
  tls: section.tls === undefined ? null : openPem.keyPair(section.tls, ["operator", "tls"]),
});

/** Without a login only this machine may reach the listener. With one, passwords must not travel in the clear. */
export function accessChecks({ listen, access, trustProxy, tls }: Section): readonly Finding[] {
  if (isLoopback(listen.host)) return [];
  const path = ["operator", "access"];
  if (access === "open")
    return [
      {
        path,
        found: `open at ${listen.host}, where other machines reach the API without a login`,
        expected:
          "login, with operator.tls or with operator.trustProxy behind a reverse proxy; or operator.listen on 127.0.0.1",
      },
    ];
  if (tls !== undefined || trustProxy !== false) return [];
  return [
    {
      path,
      found: `login in the clear at ${listen.host}: passwords and tokens could be read on the network`,
      expected: "operator.tls, or operator.trustProxy with the reverse proxy that serves HTTPS",
    },
  ];
}
