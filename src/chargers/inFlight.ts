/** A window over publishes that are not acknowledged yet: at most `size` inside, the others wait in order (F82). */
export interface InFlight {
  /** True once a slot is taken; false: the window closed while this one waited. */
  enter(): Promise<boolean>;
  leave(): void;
  /** Turns away everyone who waits, and everyone who comes. */
  close(): void;
}

/** MQTT.js keeps no outbound quota of its own, and brokers hang up on clients that exceed theirs. */
export function inFlightWindow(size: number): InFlight {
  let inside = 0;
  let closed = false;
  let waiting: ((entered: boolean) => void)[] = [];
  return {
    enter() {
      if (closed) return Promise.resolve(false);
      if (inside < size) {
        inside += 1;
        return Promise.resolve(true);
      }
      const { promise, resolve } = Promise.withResolvers<boolean>();
      waiting.push(resolve);
      return promise;
    },
    leave() {
      const next = waiting.shift();
      // The slot is handed over: who comes in between cannot overtake.
      if (next === undefined) inside -= 1;
      else next(true);
    },
    close() {
      closed = true;
      const turnedAway = waiting;
      waiting = [];
      for (const settle of turnedAway) settle(false);
    },
  };
}
