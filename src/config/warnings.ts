import { isNative } from "../domain/charger.ts";
import { identityKey } from "../domain/vehicle.ts";
import { listed } from "../platform/text.ts";
import { brokerSections } from "./checks.ts";
import { type Finding, MOST_MISTAKES, nearest } from "./explain.ts";
import { isLoopback, isExposed } from "./fields/address.ts";
import type { ConfigFile } from "./schema.ts";
import { receiverWarnings } from "./sections/alarms.ts";
import { tooManyRequests } from "./sections/vtn.ts";

/** Settings that work, but are probably a mistake. */
export function warnings(file: ConfigFile): readonly Finding[] {
  const all: Finding[] = [];
  for (const key of ["baseUrl", "tokenUrl"] as const)
    if (isExposed(file.vtn[key]))
      all.push({
        path: ["vtn", key],
        found: `${file.vtn[key]}, over which secrets travel in the clear`,
        expected: "https://",
      });
  all.push(...receiverWarnings(file.alarms));
  const family = /\/(?:vtn|energy-coordination)(?:\/v\d+)?(?:\/events)?$/i.exec(file.vtn.baseUrl)?.[0];
  if (family !== undefined)
    all.push({
      path: ["vtn", "baseUrl"],
      found: `${file.vtn.baseUrl}, to which /${file.vtn.family}/v1/events is added`,
      expected: `${file.vtn.baseUrl.slice(0, -family.length)}, without the path family: vtn.family names that`,
    });
  const requests = tooManyRequests(file.vtn.prices);
  if (requests !== null)
    all.push({
      path: ["vtn", "prices", "cron"],
      found: `${file.vtn.prices.cron}, which is ${requests} requests an hour`,
      expected: "at most 60, or some prices are not fetched: fewer regions, or less often",
    });
  if (file.webhook !== undefined && file.webhook.auth === undefined)
    all.push({
      path: ["webhook"],
      found: "no auth: a delivery only triggers a fetch, its body is never acted on",
      expected: "auth with hmac, standardWebhooks or bearer; or auth: none, if that is meant",
    });
  for (const [path, { url, password }] of brokerSections(file))
    if (url !== undefined && password !== undefined && isExposed(url))
      all.push({
        path: [...path, "url"],
        found: `${url}, over which the password travels in the clear`,
        expected: "mqtts:// or wss://",
      });
  for (const [path, { embedded, username }] of brokerSections(file)) {
    if (embedded === undefined || username !== undefined || isLoopback(embedded.listen.host)) continue;
    all.push({
      path: [...path, "embedded", "listen"],
      found: "a broker that other machines reach without a password",
      expected: "username and password, or a network that only chargers are on",
    });
  }
  for (const [index, { departures, battery }] of file.vehicles.entries())
    for (const [at, { soc }] of departures.entries())
      if (soc !== undefined && battery === undefined)
        all.push({
          path: ["vehicles", index, "departures", at, "soc"],
          found: "a state of charge of a vehicle without battery: whether it will be reached is not known",
          expected: "battery: { capacity: KWH } at the vehicle, or energy instead of soc",
        });
  all.push(...unknownIdentities(file));
  if (file.chargers.length === 0)
    all.push({
      path: ["chargers"],
      found: "no chargers",
      expected: "at least one, or there is nothing to drive",
    });
  return all;
}

/** Kinds of identities that profiles and OCPP chargers report. A native charger may report others. */
const KINDS = ["mac", "evccid", "rfid", "vin", "name", "emaid"];

/** Key of a MAC address of 6 bytes, or of 8 where the modem reports an EUI-64. */
const MAC_KEY = /^mac (?:[\da-f]{4}){3,4}$/;

/** Identities that a charger can hardly report: no event would apply to their vehicles. */
function unknownIdentities({ chargers, vehicles }: ConfigFile): readonly Finding[] {
  const mayReportOthers = chargers.some(isNative);
  return vehicles
    .flatMap(({ identities }, index) =>
      identities.flatMap(({ kind, value }, at): readonly Finding[] => {
        const path = ["vehicles", index, "identities", at];
        if (kind === "mac" && !MAC_KEY.test(identityKey(kind, value)))
          return [
            {
              path,
              found: `${kind} ${JSON.stringify(value)}, which is no MAC address`,
              expected: '12 hexadecimal digits, e.g. "02:AA:BB:00:00:01"',
            },
          ];
        const meant = nearest(kind, KINDS);
        if (KINDS.includes(kind) || (meant === null && mayReportOthers)) return [];
        return [
          {
            path,
            found: `the kind ${JSON.stringify(kind)}, which no make is known to report`,
            expected: `${meant === null ? "" : `did you mean ${meant}? `}one of: ${KINDS.join(", ")}`,
          },
        ];
      }),
    )
    .slice(0, MOST_MISTAKES);
}

/** Vehicles that a warning names. */
const MOST_NAMED = 3;

/** Vehicles without identities that are fixed to chargers that report one. A token of no vehicle makes them unknown there. */
export function namelessVehicles(
  { vehicles }: Pick<ConfigFile, "vehicles">,
  identifying: ReadonlySet<string>,
): readonly Finding[] {
  const found = vehicles.flatMap(({ id, charger, identities }, index) =>
    charger !== undefined && identities.length === 0 && identifying.has(charger)
      ? [{ index, text: `${id} at ${charger}` }]
      : [],
  );
  const [first] = found;
  if (first === undefined) return [];
  const named = found.map(({ text }) => text);
  return [
    {
      path: ["vehicles", first.index],
      found: `no identities, at a charger that may report one: ${listed(named, MOST_NAMED)}`,
      expected:
        'identities of each, e.g. [{ rfid: "04A2B3C4" }]: no event applies while its charger reports an identity that no vehicle has',
    },
  ];
}
