import type { Heartbeats } from "../../src/chargers/broker/heartbeats.ts";
import { topicRouter } from "../../src/chargers/broker/topicRouter.ts";
import type { ProfileInstance } from "../../src/chargers/profile/instance.ts";
import { instanceSettings, applyProfileLimits } from "../../src/chargers/profile/level.ts";
import type { Profile } from "../../src/chargers/profile/schema.ts";
import { compileTelemetry } from "../../src/chargers/profile/telemetryMap.ts";
import type { ProfileDriver } from "../../src/chargers/profileDriver.ts";
import { loadProfiles } from "../../src/daemon/loadProfiles.ts";
import type { Charger } from "../../src/domain/charger.ts";
import { amperes, type ChargerId, chargerId, type Instant } from "../../src/domain/units.ts";
import { switchedOn } from "../../src/sim/charger.ts";
import { MODELS } from "../../src/sim/mixedFloor.ts";
import type { Message } from "../../src/sim/models/model.ts";
import { type SimulatedModel, simulatedModel } from "../../src/sim/simulatedModel.ts";
import { physical } from "./bay.ts";
import { OTHER_MODELS } from "./otherMakes.ts";
import type { PlannedCharger, PlannedMake } from "./plan.ts";

const { profiles } = loadProfiles(null);

function profileOf({ profile: name }: PlannedMake): Profile {
  const profile = profiles.get(name);
  if (profile === undefined) throw new Error(`there is no profile ${name}`);
  return profile;
}

/** A configured charger as its make has it; one of no make stays as it is. */
export const equippedAs = (outlet: Charger, make: PlannedMake | undefined): Charger =>
  make === undefined
    ? outlet
    : applyProfileLimits({ ...outlet, profile: make.profile, params: make.params }, profileOf(make));

/** One outlet of a make with all that lies between it and the gateway. Moments are true time; what is past is over. */
export interface ProfiledBay {
  readonly plan: PlannedCharger;
  readonly id: ChargerId;
  readonly bound: ProfileInstance;
  /** Whether the gateway listens to a topic. */
  readonly isHeard: (topic: string) => boolean;
  /** Where it shows that it is there. */
  readonly alive: string | null;
  ticks: number;
  made: SimulatedModel;
  /** The gateway's end; null: there is no gateway. */
  line: { readonly speaks: ProfileDriver; readonly beats: Heartbeats } | null;
  /** What the broker keeps. */
  readonly kept: Map<string, Message>;
  /** What it said last on each topic. */
  readonly said: Map<string, string>;
  guest: string | null;
  connected: boolean;
  /** Something was sent to it. */
  wasTold: boolean;
  /** Messages to it keep their order. */
  lastArrival: number;
  offUntil: number;
  muteUntil: number;
}

/** `outlet`: as it is configured and equipped. */
export function profiledBay(
  plan: PlannedCharger,
  outlet: Charger,
  guest: string | null,
  now: Instant,
): ProfiledBay {
  const { make } = plan;
  if (make === undefined) throw new Error(`${plan.id} is of no make`);
  const binding = instanceSettings(outlet, profileOf(make));
  if (!binding.ok) throw new Error(binding.reason);
  const { instance: bound } = binding;
  const most = amperes(plan.maxCurrent);
  const traits = {
    id: chargerId(plan.id),
    phases: plan.phases,
    voltage: 230,
    minCurrent: amperes(6),
    maxCurrent: most,
    ownDefault: most,
    ramp: 4,
  };
  const simulated = (MODELS.get(make.profile) ?? OTHER_MODELS.get(make.profile))?.(bound.values);
  if (simulated === undefined) throw new Error(`${make.profile} cannot be simulated`);
  const board = topicRouter<true>();
  const ear = compileTelemetry(bound);
  for (const filter of ear.filters) board.connect(filter, true);
  return {
    plan,
    id: traits.id,
    bound,
    isHeard: (topic) => board.listeners(topic).size > 0,
    alive: ear.alive,
    ticks: 0,
    made: simulatedModel(simulated, switchedOn(traits, physical(guest, plan), now)),
    line: null,
    kept: new Map(),
    said: new Map(),
    guest,
    connected: true,
    wasTold: false,
    lastArrival: 0,
    offUntil: 0,
    muteUntil: 0,
  };
}
