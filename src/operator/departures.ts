import { hash } from "node:crypto";

import type { ControlState } from "../control/state.ts";
import { departureView, type Expected } from "../departures/board.ts";
import { CSV_HEADER, readDepartures } from "../departures/csv.ts";
import type { Departures } from "../departures/pipeline.ts";
import { auditRow, type Json } from "../domain/audit.ts";
import type { Change, Stored } from "../domain/changes.ts";
import { departureKey, formatNeed, needView, type SetDeparture } from "../domain/departure.ts";
import { type Instant, iso, type VehicleId } from "../domain/units.ts";
import { type Vehicle, vehicleNamed } from "../domain/vehicle.ts";
import type { TimeOfDay } from "../platform/clock.ts";
import { type Answer, FirstAnswers, invalid, notStored, noSuch } from "./answer.ts";
import { bodyIn, resolved } from "./departureRequest.ts";

/** Requests about departures: from the API and the command line. */
export interface DepartureApi {
  readonly list: () => Answer<Json>;
  /** `by`: name of the person. */
  readonly set: (vehicle: string, body: unknown, by: string) => Promise<Answer<Json>>;
  readonly clear: (vehicle: string, by: string) => Promise<Answer<Json>>;
  /** The vehicle stays on one day: neither a weekly departure nor one that was set applies. */
  readonly skip: (vehicle: string, body: unknown, by: string) => Promise<Answer<Json>>;
  /** Departures of a CSV file. `key`: a repeated one gets the first answer. */
  readonly importCsv: (text: unknown, by: string, key: string | null) => Promise<Answer<Json>>;
  readonly of: DepartureOf;
}

/** The departure of a vehicle in the answers about it. Null: none. */
export type DepartureOf = (vehicle: VehicleId) => Json;

interface DepartureParts {
  readonly state: ControlState;
  readonly departures: Departures;
  readonly now: () => Instant;
  readonly timeOfDay: TimeOfDay;
  /** Stores changes. Resolves after their commit. */
  readonly commit: (changes: readonly Change[]) => Promise<Stored>;
}

/** The next departure of each vehicle, or why nothing was replaced. */
type Replaced = Answer<Json> | readonly (Expected | null)[];

/** Answers requests about departures. */
export class OperatorDepartures implements DepartureApi {
  readonly #parts: DepartureParts;
  /** By idempotency key. */
  readonly #answers = new FirstAnswers();
  /** The last replacement, which the next one waits for. */
  #replacing: Promise<unknown> = Promise.resolve();
  /** True: it is not known whether the last replacement is stored. */
  #isUnknown = false;

  constructor(parts: DepartureParts) {
    this.#parts = parts;
  }

  list(): Answer<Json> {
    const { departures, now } = this.#parts;
    return { ok: true, value: departures.list().map((expected) => departureView(expected, now())) };
  }

  readonly of = (vehicle: VehicleId): Json => this.#view(this.#parts.departures.board.expected(vehicle));

  async set(name: string, body: unknown, by: string): Promise<Answer<Json>> {
    const { state, now, timeOfDay } = this.#parts;
    const vehicle = vehicleNamed(state.vehicles.values(), name);
    if (vehicle === null) return noSuch("vehicle", name, [...state.vehicles.keys()]);
    const read = bodyIn(body, timeOfDay, now());
    if ("ok" in read) return read;
    const departure: SetDeparture = { vehicle: vehicle.id, ...read, source: "api", by, setAt: now() };
    const done = await this.#replaceFor(vehicle, () => [departure], this.#setRow(vehicle, departure));
    return "ok" in done ? done : { ok: true, value: this.#view(done.next) };
  }

  async clear(name: string, by: string): Promise<Answer<Json>> {
    const { state, departures, now } = this.#parts;
    const vehicle = vehicleNamed(state.vehicles.values(), name);
    if (vehicle === null) return noSuch("vehicle", name, [...state.vehicles.keys()]);
    // The departure may be on its way to the store.
    await this.#replacing;
    const isSet = departures.board.setFor(vehicle.id).some(({ at }) => at > now());
    if (!isSet && !this.#isUnknown) return nothingSet(vehicle, departures.expected(vehicle.id));
    const message = `${by} cleared the departure of ${vehicle.name}`;
    const done = await this.#replaceFor(
      vehicle,
      () => [],
      this.#row(vehicle, message, { by, cleared: true }),
    );
    if ("ok" in done) return done;
    return { ok: true, value: { vehicle: vehicle.id, next: this.#view(done.next) } };
  }

  async skip(name: string, body: unknown, by: string): Promise<Answer<Json>> {
    const { state, departures, now } = this.#parts;
    const vehicle = vehicleNamed(state.vehicles.values(), name);
    if (vehicle === null) return noSuch("vehicle", name, [...state.vehicles.keys()]);
    const date = (body as { readonly date?: unknown } | null)?.date;
    const weekly = typeof date === "string" ? departures.board.weeklyOn(vehicle.id, date, now()) : null;
    const ahead = (): readonly SetDeparture[] =>
      departures.board.setFor(vehicle.id).filter(({ at }) => at > now());
    const isSet = ahead().some(({ at, isSkipped }) => isSkipped !== true && this.#dayOf(at) === date);
    if ((weekly === null && !isSet) || typeof date !== "string")
      return invalid({
        path: "date",
        found: typeof date === "string" ? date : null,
        expected: `a day within a month on which ${vehicle.name} has a departure ahead, as YYYY-MM-DD`,
      });
    const skipped: readonly SetDeparture[] =
      weekly === null
        ? []
        : [{ vehicle: vehicle.id, ...weekly, source: "api", by, setAt: now(), isSkipped: true }];
    const others = (): readonly SetDeparture[] => ahead().filter(({ at }) => this.#dayOf(at) !== date);
    const message = `${by} skipped the departure of ${vehicle.name} on ${date}`;
    const row = this.#row(vehicle, message, { by, skipped: date });
    const done = await this.#replaceFor(vehicle, () => [...others(), ...skipped], row);
    if ("ok" in done) return done;
    return { ok: true, value: { vehicle: vehicle.id, date, next: this.#view(done.next) } };
  }

  async importCsv(text: unknown, by: string, key: string | null): Promise<Answer<Json>> {
    if (typeof text !== "string")
      return invalid({
        path: "",
        found: null,
        expected: `text/csv with the header ${CSV_HEADER.join(",")}`,
      });
    const requested = hash("sha256", JSON.stringify([text, by]));
    // A repeated import would put its departures on record again.
    return this.#answers.once(key, requested, (onKnown) => this.#import(text, by, onKnown));
  }

  /** `onKnown`: called with the answer of an import that was in doubt, once it is known to be stored. */
  async #import(text: string, by: string, onKnown: (stored: Answer<Json>) => void): Promise<Answer<Json>> {
    const { state, timeOfDay, now } = this.#parts;
    const read = readDepartures(text);
    const found = resolved(state, read, { by, timeOfDay, now: now() });
    if ("ok" in found) return found;
    const rows = [...found].flatMap(([id, set]) => {
      const vehicle = state.vehicles.get(id);
      return vehicle === undefined ? [] : set.map((departure) => this.#setRow(vehicle, departure));
    });
    const stored = { ok: true, value: { departures: read.departures.length, vehicles: found.size } } as const;
    const done = await this.#replace(
      () => found,
      rows,
      () => onKnown(stored),
    );
    return "ok" in done ? done : stored;
  }

  /** Replaces what is set for one vehicle. `next`: its next departure. Null: it has none. */
  async #replaceFor(
    { id }: Vehicle,
    set: () => readonly SetDeparture[],
    row: Change,
  ): Promise<Answer<Json> | { readonly next: Expected | null }> {
    const done = await this.#replace(() => new Map([[id, set()]]), [row]);
    return "ok" in done ? done : { next: done[0] ?? null };
  }

  /**
   * Replaces what is set for these vehicles, after the commit. One at a time: the next one deletes what this one has set.
   * `onKnown`: called once a commit in doubt is known to be stored.
   */
  #replace(
    wanted: () => ReadonlyMap<VehicleId, readonly SetDeparture[]>,
    rows: readonly Change[],
    onKnown?: () => void,
  ): Promise<Replaced> {
    const done = this.#replacing.then(() => this.#replaceNow(wanted(), rows, onKnown));
    this.#replacing = done.catch(() => undefined);
    return done;
  }

  async #replaceNow(
    wanted: ReadonlyMap<VehicleId, readonly SetDeparture[]>,
    rows: readonly Change[],
    onKnown: (() => void) | undefined,
  ): Promise<Replaced> {
    const { departures, commit } = this.#parts;
    if (this.#isUnknown)
      return notStored({ reason: "it is not known yet whether an earlier one was stored" });
    const changes: Change[] = [];
    const kept = new Map<VehicleId, readonly SetDeparture[]>();
    for (const [vehicle, set] of wanted) {
      const past = this.#stays(vehicle, set);
      for (const each of departures.board.setFor(vehicle))
        if (!past.includes(each)) changes.push({ kind: "departureForgotten", key: departureKey(each) });
      changes.push(...set.map((departure) => ({ kind: "departure", departure }) as const));
      kept.set(vehicle, [...past, ...set]);
    }
    const committed = await commit([...changes, ...rows]);
    const apply = () => [...kept].map(([vehicle, set]) => departures.replace(vehicle, set));
    if (committed.ok) return apply();
    this.#isUnknown = committed.isStored !== undefined;
    void committed.isStored?.then((isStored) => {
      this.#isUnknown = false;
      if (!isStored) return;
      apply();
      onKnown?.();
    });
    return notStored(committed, "the departures");
  }

  /** Departures that stay beside new ones: those that have passed, and skipped days without a new one. */
  #stays(vehicle: VehicleId, set: readonly SetDeparture[]): readonly SetDeparture[] {
    const { departures, now } = this.#parts;
    // Departures that have passed still replace the weekly ones of their day. A skipped day stays skipped.
    const days = new Set(set.map(({ at }) => this.#dayOf(at)));
    return departures.board
      .setFor(vehicle)
      .filter(
        ({ at, isSkipped }) =>
          at <= now() || (set.length > 0 && isSkipped === true && !days.has(this.#dayOf(at))),
      );
  }

  #setRow(vehicle: Vehicle, { at, need, source, by }: SetDeparture): Change {
    const when = `${this.#parts.state.wallClock(at)} with ${formatNeed(need)}`;
    return this.#row(vehicle, `${by} set the departure of ${vehicle.name}: ${when}`, {
      by,
      at: iso(at),
      need: needView(need),
      source,
    });
  }

  #row(vehicle: Vehicle, message: string, facts: Readonly<Record<string, Json>>): Change {
    return auditRow("operator", this.#parts.now(), message, {
      vehicle: vehicle.id,
      facts: { departure: vehicle.id, ...facts },
    });
  }

  #view(expected: Expected | null): Json {
    return expected === null ? null : departureView(expected, this.#parts.now());
  }

  /** The day of a moment in the zone of the site. */
  #dayOf(at: Instant): string {
    return this.#parts.timeOfDay(at, 0, 0, 0).date;
  }
}

function nothingSet({ id, name }: Vehicle, next: Expected | null): Answer<Json> {
  const detail =
    next === null
      ? `${name} has no departure`
      : `the next departure of ${name} is a weekly one of the configuration: ${iso(next.departure.at)}`;
  return { ok: false, problem: { status: 404, title: `no departure is set for ${id}`, detail, errors: [] } };
}
