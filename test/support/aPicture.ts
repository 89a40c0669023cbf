import type { Change, StoredState, StoredScope } from "../../src/domain/changes.ts";
import { restoringState } from "../../src/control/recovery.ts";
import type { EventArchive } from "../../src/domain/event.ts";
import { ControlState, type ControlSetup } from "../../src/control/state.ts";
import { type Instant, iso } from "../../src/domain/units.ts";
import { runToEnd } from "../../src/platform/cooperative.ts";
import { aCharger, aVehicle, settingsWith, SITE_KEY } from "./aCharger.ts";

export const NOTHING_STORED: EventArchive = {
  whole: async () => new Map(),
  summaries: async () => new Map(),
};

/** The picture alone, with two chargers and a vehicle: nothing runs. */
export const aPicture = (setup: Partial<ControlSetup> = {}): ControlState =>
  new ControlState({
    chargers: [aCharger(), aCharger({ id: "bay-02" })],
    vehicles: [aVehicle()],
    settings: settingsWith(),
    siteKey: SITE_KEY,
    epoch: 7,
    archive: NOTHING_STORED,
    wallClock: iso,
    assertAll: false,
    ...setup,
  });

/** What a store has that remembers nothing but this. */
export const rememberedOf = (changes: Partial<StoredState & StoredScope>): StoredState & StoredScope => ({
  events: [],
  edited: [],
  commands: [],
  reasons: new Map(),
  holds: [],
  bindings: [],
  observePeriod: null,
  duties: [],
  outbox: [],
  evaluatedAt: null,
  recordedAt: null,
  aliveAt: null,
  ...changes,
});

/** A start, without a break. */
export const restoreState = (state: ControlState, stored: StoredState, now: Instant): readonly Change[] =>
  runToEnd(restoringState(state, stored, now));
