import type { Config } from "../config/schema.ts";
import type { HoldRequest } from "../control/holds/lifecycle.ts";
import { DepartureBoard } from "../departures/board.ts";
import { Departures } from "../departures/pipeline.ts";
import { ShortfallWatch } from "../departures/watch.ts";
import type { Alarm } from "../domain/alarm.ts";
import type { StoredDepartures } from "../domain/store.ts";
import type { VehicleId } from "../domain/units.ts";
import { OperatorDepartures } from "../operator/departures.ts";
import { timesOfDay } from "../platform/text.ts";
import type { Site } from "./site.ts";

/** The departures of the running site. Nothing is forecast before a subscription to `forecast$`. */
export function siteDepartures(
  site: Site,
  settings: Pick<Config, "departures" | "departureGuard">,
  stored: StoredDepartures & { readonly alarms: readonly Alarm[] },
  hold: (request: HoldRequest) => void,
) {
  const { store, state, config, now, monotonic } = site;
  const timeOfDay = timesOfDay(config.site.timezone);
  const before = stored.alarms.filter(
    ({ kind, state: alarmState }) => kind === "departureShort" && alarmState !== "cleared",
  );
  const board = new DepartureBoard({
    state,
    configured: settings.departures,
    stored: stored.departures,
    plugIns: stored.plugIns,
    timeOfDay,
  });
  const watch = new ShortfallWatch(before.flatMap(({ subject }) => subject ?? []));
  const departures = new Departures(state, settings, board, watch, {
    now,
    monotonic,
    write: (changes) => void store.writeUntilStored(changes),
    hold,
  });
  return {
    forecast$: departures.follow(),
    facts: departures.facts.bind(departures),
    counts: () => departures.counts(),
    setFor: (vehicle: VehicleId) => board.setFor(vehicle),
    api: new OperatorDepartures({
      state,
      departures,
      now,
      timeOfDay,
      commit: (changes) => {
        store.write(changes);
        return store.committed();
      },
    }),
  };
}
