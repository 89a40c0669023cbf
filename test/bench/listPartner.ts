/**
 * The simulated partner as a process of its own, so that spelling a long list stops nobody's clock but its own:
 * `listPartner.ts FILE` serves the events of a file (JSON), and reads it anew on every order.
 */
import { readFileSync } from "node:fs";
import { pino } from "pino";

import type { WireEvent } from "../../src/sim/events.ts";
import { SimulatedPartner } from "../../src/sim/partner.ts";
import { SECRET } from "./depot.ts";
import { now } from "./partner.ts";

/** What it says of itself. */
export interface ListPartner {
  readonly url: string;
  /** How often the list was asked for. */
  readonly lists: number;
  /** The last event of the file, with the revision that it is served with. */
  readonly last: WireEvent | undefined;
}

const partner = await SimulatedPartner.start({
  host: "127.0.0.1",
  port: 0,
  clientId: "bench",
  clientSecret: SECRET,
  webhook: null,
  now,
  log: pino({ level: "silent" }),
});

function tell(): void {
  const events: readonly WireEvent[] = JSON.parse(readFileSync(process.argv[2] ?? "", "utf8"));
  // One that is served already keeps its revision.
  const served = events.map((event) => partner.stored(event.ID) ?? partner.put(event));
  const said: ListPartner = {
    url: partner.baseUrl,
    lists: partner.faults.requests.list,
    last: served.at(-1),
  };
  process.send?.(said);
}
process.on("message", tell);
tell();
