import { brokerAccess, mosquittoAcl } from "../../chargers/broker/access.ts";
import { sectionOf } from "../../chargers/broker/address.ts";
import { siteConfiguration } from "../configuration.ts";
import { type ExitCode, say } from "../output.ts";
import type { Verb } from "../verb.ts";

/** Used where the configuration names no user at the broker. */
const SUGGESTED_USER = "depot";

/** `acl`: what each broker of this site has to allow, as a file for mosquitto. */
function acl(named: string | undefined): ExitCode {
  const loaded = siteConfiguration(named);
  if (loaded === null) return 2;
  const { config, profiles } = loaded;
  const site = config.site.id;
  for (const [name, broker] of [["", config.mqtt] as const, ...config.brokers]) {
    const chargers = config.chargers.filter((charger) => charger.broker === name);
    const { prefix, reach, username } = broker;
    if (name !== "" && chargers.length === 0) continue;
    const where = reach.kind === "url" ? URL.parse(reach.url)?.host : "inside setpointd";
    say(`# ${sectionOf(name)} (${where ?? "?"}), site ${site}, ${chargers.length} chargers`);
    if (reach.kind === "embedded") {
      say(
        "# The embedded broker keeps to these rights by itself, but for chargers of other makes than native.",
      );
      continue;
    }
    if (username === null) say(`# ${sectionOf(name)}.username is not set: give setpointd a user of its own.`);
    const access = brokerAccess({ site, prefix, chargers, profiles, isHome: name === "" });
    for (const line of mosquittoAcl(access, { user: username ?? SUGGESTED_USER, site, prefix })) say(line);
    say("");
  }
  return 0;
}

export const aclVerb: Verb = (program, { config, done }) => {
  program
    .command("acl")
    .description("print the access list that each broker of this site needs, for mosquitto")
    .action(() => {
      done(acl(config()));
    });
};
