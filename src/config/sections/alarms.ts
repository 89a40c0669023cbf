import * as z from "zod";

import type { Millis } from "../../domain/units.ts";
import type { Finding, Path } from "../explain.ts";
import { isExposed, parseWebUrl } from "../fields/address.ts";
import { duration } from "../fields/quantities.ts";
import {
  openFirst,
  type OpenSecret,
  secret,
  type Secret,
  secrets,
  type SecretSource,
} from "../fields/secret.ts";

/** Kinds of receivers. */
export const RECEIVERS = ["alertmanager", "webhook"] as const;
const MOST_RECEIVERS = 8;

const ADDRESS =
  "an address that starts with https:// or http://, without user or password, e.g. https://alerts.example/hook; or { file: PATH } or { env: NAME } with one that holds a token";

/** An address that may hold a token, as those of chat services do. */
const address = z.union(
  [z.string().refine((text) => parseWebUrl(text) !== null, { error: ADDRESS }), secret],
  { error: ADDRESS },
);

/** Values of these header fields are secrets. */
const SECRET_FIELD = /authorization|cookie|token|secret|key|password/i;

const FIELD = "text in ASCII, or { file: PATH } or { env: NAME }";

const headers = z
  .record(
    z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/),
    z.union([z.string().regex(/^[\u0020-\u007E]{0,1024}$/, { error: FIELD }), secret], { error: FIELD }),
  )
  .superRefine((fields, context) => {
    for (const [name, value] of Object.entries(fields))
      if (typeof value === "string" && SECRET_FIELD.test(name))
        context.addIssue({
          code: "custom",
          path: [name],
          message:
            "{ file: PATH } or { env: NAME }, never the secret itself: put the text into a file that only setpointd can read",
        });
  })
  .prefault({});

const alertmanager = z.strictObject({
  url: address.describe(
    "Address of the Alertmanager, without /api/v2, e.g. http://127.0.0.1:9093; or { file } or { env } with one that holds a token. Required.",
  ),
  headers: headers.describe(
    "Header fields of each request. A secret, such as Authorization, is { file: PATH } or { env: NAME }. Default {}.",
  ),
});

const webhook = z.strictObject({
  url: address.describe(
    "Address that gets each alarm as a POST with JSON; { file } or { env } if it holds a token. Required.",
  ),
  headers: headers.describe(
    "Header fields of each request. A secret, such as Authorization, is { file: PATH } or { env: NAME }. Default {}.",
  ),
  secret: secrets
    .optional()
    .describe(
      "Secret of the signature in X-Payload-Signature: HMAC-SHA256 of the raw body in base64, as the partner signs. The first of a list signs. Left out: requests are not signed.",
    ),
  repeat: duration("1m", "7d")
    .prefault("4h")
    .describe("Time after which an alarm that is open and not acknowledged is sent again. Default 4h."),
});

const receiver = z.strictObject({
  alertmanager: alertmanager
    .optional()
    .describe("Sends alarms to an Alertmanager (API v2), which routes, groups and silences them."),
  webhook: webhook.optional().describe("Sends alarms to an HTTP server of yours."),
});

export const alarmSection = z.strictObject({
  notify: z
    .array(receiver)
    .max(MOST_RECEIVERS)
    .prefault([])
    .describe(
      "Receivers of alarms, each with exactly one of alertmanager and webhook. What cannot be delivered is sent again until it is. Default [].",
    ),
});

type Section = z.infer<typeof alarmSection>;

/** A receiver of alarms. */
export interface ReceiverConfig {
  readonly kind: (typeof RECEIVERS)[number];
  /** Kind and host, e.g. `webhook alerts.example`. A second one of the same host has a number. */
  readonly name: string;
  /** Read again for each request. */
  readonly url: Secret;
  readonly headers: () => Readonly<Record<string, string>>;
  /** Null: requests are not signed. */
  readonly secret: Secret | null;
  /** Null: an Alertmanager repeats by its own settings. */
  readonly repeat: Millis | null;
}

/** Secrets that would travel in the clear. */
export const receiverWarnings = ({ notify }: Section): readonly Finding[] =>
  notify.flatMap((entry, index) =>
    RECEIVERS.flatMap((kind) => {
      const { url, headers: fields = {} } = entry[kind] ?? {};
      const hasSecret = Object.values(fields).some((value) => typeof value !== "string");
      if (typeof url !== "string" || !hasSecret || !isExposed(url)) return [];
      return {
        path: ["alarms", "notify", index, kind, "url"],
        found: `${url}, over which secrets travel in the clear`,
        expected: "https://",
      };
    }),
  );

const urlFault = (text: string): string | null =>
  parseWebUrl(text) === null
    ? "which is not an address that starts with https:// or http://, without user or password"
    : null;

/** Receivers of alarms, in the order of the file. `open`: reads a secret, and reports one that cannot be read. */
export function receiversOf({ notify }: Section, open: OpenSecret): readonly ReceiverConfig[] {
  const names = new Map<string, number>();
  return notify.flatMap((entry, index) =>
    RECEIVERS.flatMap((kind): readonly ReceiverConfig[] => {
      const found = entry[kind];
      if (found === undefined) return [];
      const path: Path = ["alarms", "notify", index, kind];
      const read = (
        value: string | SecretSource,
        at: Path,
        fault: (text: string) => string | null = () => null,
      ) => (typeof value === "string" ? () => value : open(value, at, fault));
      const url = read(found.url, [...path, "url"], urlFault);
      const fields = Object.entries(found.headers).map(
        ([name, value]) => [name.toLowerCase(), read(value, [...path, "headers", name])] as const,
      );
      const name = `${kind} ${parseWebUrl(url())?.host ?? ""}`;
      const number = (names.get(name) ?? 0) + 1;
      names.set(name, number);
      const signing = "secret" in found ? found.secret : undefined;
      return [
        {
          kind,
          name: number === 1 ? name : `${name} ${number}`,
          url,
          headers: () => Object.fromEntries(fields.map(([field, value]) => [field, value()])),
          secret: signing === undefined ? null : openFirst(signing, [...path, "secret"], open),
          repeat: "repeat" in found ? found.repeat : null,
        },
      ];
    }),
  );
}
