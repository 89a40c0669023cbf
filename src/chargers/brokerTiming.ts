import { millis, minutes, seconds, type Millis } from "../core/units.ts";

/** Every deadline of a broker session; all monotonic. */
export interface BrokerTiming {
  /** TCP, TLS, and the broker's answer to CONNECT together. */
  readonly connectTimeout: Millis;
  /** From a publish or a subscription on the wire to its acknowledgement. */
  readonly ackDeadline: Millis;
  /** A silent broker is noticed after one and a half of these. */
  readonly keepalive: Millis;
  readonly backoffFloor: Millis;
  readonly backoffCeiling: Millis;
  /** A connection that lasted this long was a success: the back-off starts over. */
  readonly steadyAfter: Millis;
  /** Another client with our id is there: we stay away this long instead of throwing it out in turn (F84). */
  readonly takenOverPause: Millis;
  /** An orderly stop takes at most this long. */
  readonly stopWithin: Millis;
}

/** DESIGN 2 and 5.7. */
export const brokerTiming: BrokerTiming = {
  connectTimeout: seconds(5),
  ackDeadline: seconds(5),
  keepalive: seconds(10),
  backoffFloor: millis(500),
  backoffCeiling: seconds(30),
  steadyAfter: seconds(10),
  takenOverPause: minutes(1),
  stopWithin: seconds(1),
};
