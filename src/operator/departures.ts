import { hash } from "node:crypto";

import type { ControlState } from "../control/state.ts";
import { departureView, type Expected } from "../departures/board.ts";
import { CSV_HEADER, readDepartures } from "../departures/csv.ts";
import type { Departures } from "../departures/pipeline.ts";
import { auditRow, type Json } from "../domain/audit.ts";
import type { Change, Stored } from "../domain/changes.ts";
import { departureKey, formatNeed, needView, type SetDeparture } from "../domain/departure.ts";
import { type Instant, iso, type VehicleId } from "../domain/units.ts";
import type { Vehicle } from "../domain/vehicle.ts";
import type { TimeOfDay } from "../platform/text.ts";
import { type Answer, FirstAnswers, invalid, keyOfAnother, notStored } from "./answer.ts";
import { bodyIn, noSuchVehicle, resolved, vehicleNamed } from "./departureRequest.ts";

/** Requests about departures: from the API and the command line. */
export interface DepartureApi {
  readonly list: () => Answer<Json>;
  /** `by`: name of the person. */
  readonly set: (vehicle: string, body: unknown, by: string) => Promise<Answer<Json>>;
  readonly clear: (vehicle: string, by: string) => Promise<Answer<Json>>;
  /** The vehicle stays on one day of its weekly departures. */
  readonly skip: (vehicle: string, body: unknown, by: string) => Promise<Answer<Json>>;
  /** Departures of a CSV file. `key`: a repeated one gets the first answer. */
  readonly importCsv: (text: unknown, by: string, key: string | null) => Promise<Answer<Json>>;
  readonly of: DepartureOf;
}

/** The departure of a vehicle in the answers about it. Null: none. */
export type DepartureOf = (vehicle: VehicleId) => Json;

interface Parts {
  readonly state: ControlState;
  readonly departures: Departures;
  readonly now: () => Instant;
  readonly timeOfDay: TimeOfDay;
  /** Stores changes. Resolves after their commit. */
  readonly commit: (changes: readonly Change[]) => Promise<Stored>;
}

export function departureApi({ state, departures, now, timeOfDay, commit }: Parts): DepartureApi {
  const answers = new FirstAnswers();

  const view = (expected: Expected | null): Json =>
    expected === null ? null : departureView(expected, now());

  const dayOf = (at: Instant): string => timeOfDay(at, 0, 0, 0).date;

  /** Replaces what is set for these vehicles, after the commit. */
  const replace = async (
    wanted: ReadonlyMap<VehicleId, readonly SetDeparture[]>,
    rows: readonly Change[],
  ): Promise<Answer<Json> | readonly (Expected | null)[]> => {
    const changes: Change[] = [];
    const kept = new Map<VehicleId, readonly SetDeparture[]>();
    for (const [vehicle, set] of wanted) {
      // Departures that have passed still replace the weekly ones of their day. A skipped day stays skipped.
      const days = new Set(set.map(({ at }) => dayOf(at)));
      const past = departures.board
        .setFor(vehicle)
        .filter(
          ({ at, isSkipped }) =>
            at <= now() || (set.length > 0 && isSkipped === true && !days.has(dayOf(at))),
        );
      for (const each of departures.board.setFor(vehicle))
        if (!past.includes(each)) changes.push({ kind: "departureForgotten", key: departureKey(each) });
      changes.push(...set.map((departure) => ({ kind: "departure", departure }) as const));
      kept.set(vehicle, [...past, ...set]);
    }
    const committed = await commit([...changes, ...rows]);
    if (!committed.ok) return notStored(committed.reason);
    return [...kept].map(([vehicle, set]) => departures.replace(vehicle, set));
  };

  const row = (
    vehicle: Vehicle,
    words: string,
    by: string,
    details: Readonly<Record<string, Json>>,
  ): Change =>
    auditRow("operator", now(), words, {
      vehicle: vehicle.id,
      facts: { departure: vehicle.id, by, ...details },
    });

  const setRow = (vehicle: Vehicle, { at, need, source, by }: SetDeparture): Change =>
    row(
      vehicle,
      `${by} set the departure of ${vehicle.name}: ${state.wallClock(at)} with ${formatNeed(need)}`,
      by,
      {
        at: iso(at),
        need: needView(need),
        source,
      },
    );

  const imported = async (text: string, by: string): Promise<Answer<Json>> => {
    const read = readDepartures(text);
    const found = resolved(state, read, by, timeOfDay, now());
    if ("ok" in found) return found;
    const rows = [...found].flatMap(([id, set]) => {
      const vehicle = state.vehicles.get(id);
      return vehicle === undefined ? [] : set.map((departure) => setRow(vehicle, departure));
    });
    const done = await replace(found, rows);
    if ("ok" in done) return done;
    return { ok: true, value: { departures: read.departures.length, vehicles: found.size } };
  };

  return {
    list: () => ({ ok: true, value: departures.list().map((expected) => departureView(expected, now())) }),

    of: (vehicle) => view(departures.board.expected(vehicle)),

    async set(name, body, by) {
      const vehicle = vehicleNamed(state, name);
      if (vehicle === null) return noSuchVehicle(state, name);
      const read = bodyIn(body, timeOfDay, now());
      if ("ok" in read) return read;
      const departure: SetDeparture = { vehicle: vehicle.id, ...read, source: "api", by, setAt: now() };
      const done = await replace(new Map([[vehicle.id, [departure]]]), [setRow(vehicle, departure)]);
      if ("ok" in done) return done;
      return { ok: true, value: view(done[0] ?? null) };
    },

    async clear(name, by) {
      const vehicle = vehicleNamed(state, name);
      if (vehicle === null) return noSuchVehicle(state, name);
      const isSet = departures.board.setFor(vehicle.id).some(({ at }) => at > now());
      if (!isSet) return nothingSet(vehicle, departures.expected(vehicle.id));
      const done = await replace(new Map([[vehicle.id, []]]), [
        row(vehicle, `${by} cleared the departure of ${vehicle.name}`, by, { cleared: true }),
      ]);
      if ("ok" in done) return done;
      return { ok: true, value: { vehicle: vehicle.id, next: view(done[0] ?? null) } };
    },

    async skip(name, body, by) {
      const vehicle = vehicleNamed(state, name);
      if (vehicle === null) return noSuchVehicle(state, name);
      const date = (body as { readonly date?: unknown } | null)?.date;
      const weekly = typeof date === "string" ? departures.board.weeklyOn(vehicle.id, date, now()) : null;
      if (weekly === null || typeof date !== "string")
        return invalid({
          path: "date",
          found: typeof date === "string" ? date : null,
          expected: `a day within a month on which ${vehicle.name} has a weekly departure ahead, e.g. ${dayOf(now())}`,
        });
      const skipped: SetDeparture = {
        vehicle: vehicle.id,
        ...weekly,
        source: "api",
        by,
        setAt: now(),
        isSkipped: true,
      };
      const others = departures.board.setFor(vehicle.id).filter(({ at }) => at > now() && dayOf(at) !== date);
      const done = await replace(new Map([[vehicle.id, [...others, skipped]]]), [
        row(vehicle, `${by} skipped the departure of ${vehicle.name} on ${date}`, by, { skipped: date }),
      ]);
      if ("ok" in done) return done;
      return { ok: true, value: { vehicle: vehicle.id, date, next: view(done[0] ?? null) } };
    },

    async importCsv(text, by, key) {
      if (typeof text !== "string")
        return invalid({
          path: "",
          found: null,
          expected: `text/csv with the header ${CSV_HEADER.join(",")}`,
        });
      if (key === null) return imported(text, by);
      const requested = hash("sha256", JSON.stringify([text, by]));
      const first = answers.get(key, requested);
      if (first !== undefined) return first ?? keyOfAnother(key);
      const answer = imported(text, by);
      answers.add(key, requested, answer);
      return answer;
    },
  };
}

function nothingSet({ id, name }: Vehicle, next: Expected | null): Answer<Json> {
  const detail =
    next === null
      ? `${name} has no departure`
      : `the next departure of ${name} is a weekly one of the configuration: ${iso(next.departure.at)}`;
  return { ok: false, problem: { status: 404, title: `no departure is set for ${id}`, detail, errors: [] } };
}
