import type { Surroundings } from "../app.ts";
import type { Config } from "../config/schema.ts";
import type { Millis } from "../core/units.ts";
import { VtnClient } from "../vtn/client.ts";
import type { Fetched } from "../vtn/fetched.ts";
import { TokenSource } from "../vtn/token.ts";
import type { LiveLines } from "./liveLines.ts";

/** Asks the partner for a token and for the list of events, and compares its clock with ours. */
export async function tryPartner(
  { vtn, clock }: Config,
  world: Surroundings,
  lines: LiveLines,
): Promise<void> {
  await using tokens = new TokenSource({ ...vtn, ...world });
  const token = await tokens.get();
  if (token.kind === "failed") {
    const isRefused = token.status !== null && [400, 401, 403].includes(token.status);
    lines.failed(
      "token",
      token.reason,
      isRefused
        ? "the partner does not know these credentials: check vtn.clientId, vtn.clientSecret and vtn.scope"
        : "an access token from vtn.tokenUrl: check its address and the network",
    );
    for (const item of ["events", "clock"]) lines.untried(item, "without a token the partner is not asked");
    return;
  }
  lines.ok("token", `issued by ${new URL(vtn.tokenUrl).host} to ${vtn.clientId}`);
  await using client = new VtnClient({ ...vtn, ...world, tokens });
  const fetched = await client.list();
  if (fetched.kind === "failed") {
    lines.failed("events", fetched.reason, "a list of events from vtn.baseUrl with vtn.family");
    lines.untried("clock", "there is no answer to compare with");
    return;
  }
  lines.ok("events", eventsInWords(fetched));
  tellSkew(fetched.skew, clock.maxSkew, lines);
}

function eventsInWords(fetched: Exclude<Fetched, { kind: "failed" }>): string {
  const notices = fetched.kind === "read" ? fetched.delivery.notices : [];
  const [first, ...others] = notices.filter((notice) => notice.kind === "rejected");
  const count = `${notices.length} in the partner's list`;
  return first === undefined
    ? count
    : `${count}, of which ${others.length + 1} cannot be read (${first.path}: ${first.reason})`;
}

function tellSkew(skew: Millis | null, maxSkew: Millis, lines: LiveLines): void {
  if (skew === null) return lines.untried("clock", "the partner's answers have no Date to compare with");
  const words = `${Math.round(Math.abs(skew) / 1000)} s ${skew < 0 ? "behind" : "ahead of"} the partner's`;
  if (Math.abs(skew) <= maxSkew) lines.ok("clock", words);
  else
    lines.failed(
      "clock",
      words,
      `at most ${maxSkew / 1000} s (clock.maxSkew): set the time of this machine, by NTP for one`,
    );
}
