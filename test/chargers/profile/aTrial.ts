import {
  instantiateProfile,
  type ProfileInstance,
  type Params,
} from "../../../src/chargers/profile/instance.ts";
import type { Profile } from "../../../src/chargers/profile/schema.ts";
import { trial } from "../../../src/chargers/profile/tryProfile.ts";
import { instant } from "../../../src/domain/units.ts";
import { loadProfiles } from "../../../src/daemon/loadProfiles.ts";

export const NOON = instant(Date.UTC(2026, 10, 21, 12));

const loaded = loadProfiles(null);

/** The built-in profiles. */
export const builtIn: ReadonlyMap<string, Profile> = loaded.profiles;
export const brokenBuiltIn = loaded.broken;

export function profileNamed(name: string): Profile {
  const profile = builtIn.get(name);
  if (profile === undefined) throw new Error(`no profile ${name}`);
  return profile;
}

export function boundTo(name: string, params: Params): ProfileInstance {
  const binding = instantiateProfile(profileNamed(name), params);
  if (!binding.ok) throw new Error(binding.reason);
  return binding.instance;
}

interface TriedPublish {
  readonly topic: string;
  readonly payload: string;
}

/** What `profile try` answers for one charger, in short. */
export interface TriedCharger {
  /** The whole answer to an action. */
  readonly answer: (action: string, input?: object) => unknown;
  /** What is published for an action, each as `topic payload`. */
  readonly told: (action: string, input?: object) => readonly string[];
  /** The payload of the only publish, as JSON. */
  readonly json: (action: string, input?: object) => unknown;
  /** What a message means; objects are put into JSON. */
  readonly means: (topic: string, payload: unknown) => unknown;
  /** The whole answer to a message. */
  readonly heard: (topic: string, payload: unknown) => unknown;
}

export function aTrial(profile: string, params: Params = {}): TriedCharger {
  const answerLine = trial(builtIn, () => NOON);
  const ask = (line: object): unknown => JSON.parse(answerLine(JSON.stringify({ profile, params, ...line })));
  const publishes = (action: string, input: object): readonly TriedPublish[] => {
    const answer = ask({ action, input }) as { publishes?: readonly TriedPublish[]; error?: string };
    if (answer.publishes === undefined) throw new Error(answer.error);
    return answer.publishes;
  };
  const heard = (topic: string, payload: unknown): unknown =>
    ask({ topic, payload: typeof payload === "string" ? payload : JSON.stringify(payload) });
  return {
    answer: (action, input = {}) => ask({ action, input }),
    told: (action, input = {}) => publishes(action, input).map(({ topic, payload }) => `${topic} ${payload}`),
    json: (action, input = {}) => JSON.parse(publishes(action, input)[0]?.payload ?? ""),
    heard,
    means: (topic, payload) => (heard(topic, payload) as { means: unknown }).means,
  };
}
