import { Mosquitto } from "../support/mosquitto.ts";
import { Side } from "./side.ts";
import { Daemon } from "./daemon.ts";
import { benchDepot } from "./depot.ts";
import { NOTHING_DROPPED } from "./fanout.ts";
import { Sender } from "./partner.ts";
import { Subscriber } from "./subscriber.ts";

/** A daemon and a bare relay on one broker with one subscriber, to be asked the same in turns. */
export interface Rivals extends AsyncDisposable {
  readonly daemon: Daemon;
  readonly toDaemon: Sender;
  readonly toRelay: Sender;
  readonly subscriber: Subscriber;
}

/** `window`: deliveries at once, and publishes at once in the relay; the daemon has 20 of the latter. */
export async function rivals(chargers: number, connections: number): Promise<Rivals> {
  await using stack = new AsyncDisposableStack();
  const broker = stack.use(await Mosquitto.start({ extra: NOTHING_DROPPED }));
  const depot = stack.use(await benchDepot({ chargers, broker: broker.url }));
  const daemon = stack.use(await Daemon.start(depot));
  const relay = stack.use(await Side.start<number>("floor/relay", [broker.url, depot.directory, "20"]));
  const subscriber = stack.use(await Subscriber.on(broker.url));
  const toDaemon = stack.use(new Sender(depot.webhook, connections));
  const toRelay = stack.use(new Sender(`http://127.0.0.1:${relay.ready}`, connections));
  await daemon.hasBroker();
  const running = stack.move();
  return {
    daemon,
    toDaemon,
    toRelay,
    subscriber,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}
