import {
  brokerAccess,
  mosquittoAcl,
  mosquittoBridgeAcl,
  SUGGESTED_USER,
} from "../../chargers/broker/access.ts";
import { sectionOf } from "../../chargers/broker/address.ts";
import { isOcppFile } from "../../config/ocpp.ts";
import { configFile, siteConfiguration, bridgeConfiguration } from "../configuration.ts";
import { type ExitCode, say, type Verb } from "../output.ts";

/** `acl`: the access list of each broker of this site, as a file for mosquitto. */
function acl(named: string | undefined): ExitCode {
  const file = configFile(named);
  if (file !== undefined && isOcppFile(file)) return bridgeAcl(file);
  const loaded = siteConfiguration(named);
  if (loaded === null) return 2;
  const { config, profiles } = loaded;
  const site = config.site.id;
  for (const [name, broker] of [["", config.mqtt] as const, ...config.brokers]) {
    const chargers = config.chargers.filter((charger) => charger.broker === name);
    const { prefix, reach, username } = broker;
    if (name !== "" && chargers.length === 0) continue;
    const where = reach.kind === "url" ? URL.parse(reach.url)?.host : "inside setpointd";
    say(`# ${sectionOf(name)} (${where ?? "?"}), site ${site}, chargers: ${chargers.length}`);
    if (reach.kind === "embedded") {
      say(
        "# The embedded broker enforces these rights by itself, except for chargers of other makes than native.",
      );
      continue;
    }
    if (username === null) say(`# ${sectionOf(name)}.username is not set: give setpointd a user of its own.`);
    const access = brokerAccess({
      site,
      prefix,
      chargers,
      profiles,
      isHome: name === "",
      takesHolds: config.operator.mqttHolds,
      homeAssistant: config.homeAssistant.discovery ? config.homeAssistant.prefix : null,
    });
    for (const line of mosquittoAcl(access, { user: username ?? SUGGESTED_USER, site, prefix })) say(line);
    say("");
  }
  return 0;
}

/** The part of that list for the bridge, by its own configuration. */
function bridgeAcl(file: string): ExitCode {
  const loaded = bridgeConfiguration(file);
  if (loaded === null) return 2;
  const { site, stations, mqtt } = loaded.config;
  const { prefix, username } = mqtt;
  if (username === null) say("# mqtt.username is not set: give the bridge a user of its own.");
  const chargers = stations.flatMap(({ connectors }) => connectors.map(({ charger }) => charger));
  for (const line of mosquittoBridgeAcl(chargers, { user: username ?? "ocpp", site, prefix })) say(line);
  return 0;
}

export const aclVerb: Verb = (verb, { config, done }) => {
  verb.action(() => {
    done(acl(config()));
  });
};
