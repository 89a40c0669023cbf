import { createHmac } from "node:crypto";

/**
 * The MQTT client id of a site: the same for every process of the site, so that the next one takes the session over, and
 * not to be guessed by a charger, which could throw us off the broker with it (DESIGN 2).
 */
export function mqttClientId(site: string, siteKey: Uint8Array): string {
  const digest = createHmac("sha256", siteKey).update("mqtt client id").digest("hex");
  return `setpointd-${site}-${digest.slice(0, 8)}`;
}
