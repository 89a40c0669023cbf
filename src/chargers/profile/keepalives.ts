import type { Instant, Millis } from "../../core/units.ts";
import type { Bound } from "./bind.ts";
import { moment, type Publish, rendered } from "./publishes.ts";

/** A message that has to be repeated as long as this charger is to obey us, or to tell us something. */
export interface Keepalive {
  readonly every: Millis;
  /** It only asks for telemetry. */
  readonly asksOnly: boolean;
  /** The one for a moment; the first after a connection may be another. */
  readonly publishAt: (now: Instant, first: boolean) => Publish;
}

/** What to repeat for one charger. Chargers of one gateway may share a topic: the same message is needed only once. */
export const keepalivesOf = ({ profile, values }: Bound): readonly Keepalive[] =>
  profile.keepalive.map(({ every, topic, text, json, first: opening, asksOnly }) => ({
    every,
    asksOnly,
    publishAt: (now, first) => {
      const payload = first && opening !== undefined ? { text: opening, json: undefined } : { text, json };
      return rendered(
        { topic, ...payload },
        new Map<string, string | number | null>([...values, ...moment(now)]),
      );
    },
  }));

/** Those of them that keep it obeying. */
export const commandingOf = (bound: Bound): readonly Keepalive[] =>
  keepalivesOf(bound).filter(({ asksOnly }) => !asksOnly);
