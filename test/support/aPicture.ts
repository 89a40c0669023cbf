import type { EventArchive } from "../../src/domain/event.ts";
import { Depot, type DepotSetup } from "../../src/control/state.ts";
import type { Remembered, StoredScope } from "../../src/domain/changes.ts";
import { iso } from "../../src/domain/units.ts";
import { aCharger, aVehicle, settingsWith, SITE_KEY } from "./aCharger.ts";

export const NOTHING_STORED: EventArchive = { event: () => null, summary: () => null };

/** The picture alone, with two chargers and a vehicle: nothing runs. */
export const aPicture = (setup: Partial<DepotSetup> = {}): Depot =>
  new Depot({
    chargers: [aCharger(), aCharger({ id: "bay-02" })],
    vehicles: [aVehicle()],
    settings: settingsWith(),
    siteKey: SITE_KEY,
    epoch: 7,
    archive: NOTHING_STORED,
    wallClock: iso,
    unsure: false,
    ...setup,
  });

/** What a store has that remembers nothing but this. */
export const rememberedOf = (changes: Partial<Remembered & StoredScope>): Remembered & StoredScope => ({
  events: [],
  edited: [],
  commands: [],
  reasons: new Map(),
  holds: [],
  duties: [],
  outbox: [],
  lookedAt: null,
  recordedAt: null,
  aliveAt: null,
  ...changes,
});
