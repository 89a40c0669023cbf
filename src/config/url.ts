import { isLoopback } from "./address.ts";
import { reads } from "./reads.ts";

function parse(text: string, protocols: readonly string[]): URL | null {
  const url = URL.parse(text);
  if (url === null || !protocols.includes(url.protocol) || url.hostname === "" || url.hash !== "")
    return null;
  return url.username === "" && url.password === "" ? url : null;
}

/** An https (or, warned about elsewhere, http) address without query, user or trailing slash. */
export const webUrl = reads((text) => {
  const url = parse(text, ["https:", "http:"]);
  return url === null || url.search !== "" ? null : text.replace(/\/+$/, "");
}, "an address that starts with https://, without user, password or query, e.g. https://api.partner.example");

export const brokerUrl = reads(
  (text) => (parse(text, ["mqtt:", "mqtts:", "ws:", "wss:"]) === null ? null : text),
  "an address that starts with mqtt://, mqtts://, ws:// or wss://, without user or password (they have keys of their own), e.g. mqtt://127.0.0.1:1883",
);

const IN_THE_CLEAR = ["http:", "mqtt:", "ws:"];

/** Sent in the clear over a network: only https, mqtts and wss protect a secret on its way. */
export const isExposed = (url: string): boolean => {
  const parsed = URL.parse(url);
  return parsed !== null && IN_THE_CLEAR.includes(parsed.protocol) && !isLoopback(parsed.hostname);
};
