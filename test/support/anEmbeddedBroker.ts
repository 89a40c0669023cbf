import pino from "pino";

import { EmbeddedBroker, type EmbeddedBrokerOptions } from "../../src/chargers/broker/embedded.ts";

/** How the daemon of the tests connects to it. */
export const DAEMON = { clientId: "setpointd-depot", username: "setpointd", password: "inside" };

/** An embedded broker on a free port of loopback, for the site `depot`. */
export const anEmbeddedBroker = (chosen: Partial<EmbeddedBrokerOptions> = {}): Promise<EmbeddedBroker> =>
  EmbeddedBroker.listen({
    host: "127.0.0.1",
    port: 0,
    credentials: null,
    daemon: DAEMON,
    shared: [],
    root: "setpointd/depot",
    mostConnections: 1_000,
    monotonic: () => performance.now(),
    log: pino({ level: "silent" }),
    ...chosen,
  });
