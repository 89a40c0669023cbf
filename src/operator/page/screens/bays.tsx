import { computed, signal, useComputed } from "@preact/signals";
import { useState } from "preact/hooks";

import type { Charger } from "../apiAnswers.ts";
import { BindDialog } from "../binding.tsx";
import {
  agoOf,
  chargerState,
  followState,
  isStale,
  isUnnamed,
  limiterOf,
  type Shown,
  slackState,
} from "../derive.ts";
import { useSteady } from "../effects.ts";
import { drawnText, nearTime, percent, setpointText, span } from "../format.ts";
import { Act, Glyph, State, Title } from "../parts.tsx";
import { vehiclePath } from "../router.ts";
import {
  alarms,
  brokersAway,
  chargers,
  departures,
  now,
  site,
  thisMinute,
  vehicles,
  zone,
} from "../store.ts";
import { t } from "../texts.ts";

const words = t.bays;

/** True: an alarm of this charger is open, and its fact holds now. */
const isAlarmed = (id: string): boolean =>
  alarms.all.value.some(
    ({ subject, state, goneSince }) => subject === id && state !== "cleared" && goneSince === null,
  );

const FILTERS = {
  all: () => true,
  short: ({ vehicle }: Charger) => {
    const departure = departures.of(vehicle ?? "");
    return departure !== undefined && slackState(departure).tone === "bad";
  },
  faults: (charger: Charger) =>
    isAlarmed(charger.charger) || chargerState(charger, brokersAway.value).tone === "bad",
  inEvent: ({ asked }: Charger) => asked !== null,
  held: ({ hold }: Charger) => hold !== null,
  /** No vehicle is there. Of a charger without a message nothing is known. */
  absent: (charger: Charger) =>
    charger.measured !== null &&
    ((charger.occupant === "nobody" && !isUnnamed(charger)) || charger.measured.state === "unplugged"),
};
type Filter = keyof typeof FILTERS;
const NAMES = Object.keys(FILTERS) as Filter[];
const filter = signal<Filter>("all");
/** Part of the name of a bay or of its vehicle. "": all. */
const search = signal("");

function isFound(id: string): boolean {
  const wanted = search.value.trim().toLowerCase();
  const vehicle = chargers.of(id)?.vehicle ?? "";
  const names = [id, vehicle, vehicles.of(vehicle)?.name ?? ""];
  return names.some((name) => name.toLowerCase().includes(wanted));
}

/** Lanes in the order of the yard. It never changes with what happens. Chargers that the board leaves out follow. */
function lanes(): readonly (readonly string[])[] {
  const known = chargers.ids.value;
  const board = site.value?.board ?? [];
  const placed = new Set(board.flat());
  const rest = known.filter((id) => !placed.has(id));
  return [...board.map((lane) => lane.filter((id) => known.includes(id))), rest].filter(
    (lane) => lane.length > 0,
  );
}

/**
 * S2: every bay where it is in the yard. A filter dims the others and moves nothing; a search leaves them out. The board
 * itself follows only the list of chargers: with 200 of them a reading must not draw every tile.
 */
export function Bays() {
  const yard = lanes();
  return (
    <>
      <Title aside={<Count />}>{words.title}</Title>
      <Filters />
      {yard.map((lane, index) => (
        <section key={lane[0]} class="lane" aria-label={words.lane(index + 1)}>
          {yard.length > 1 && <h2>{words.lane(index + 1)}</h2>}
          <ul class="tiles">
            {lane.map((id) => (
              <Tile key={id} id={id} />
            ))}
          </ul>
        </section>
      ))}
    </>
  );
}

/** Drawn once a second, and not with each of the readings in between. */
const counts = computed(() => {
  void now.value;
  void chargers.ids.value;
  const found = chargers.all.peek().filter(({ charger }) => isFound(charger));
  return Object.fromEntries(NAMES.map((name) => [name, found.filter(FILTERS[name]).length])) as Readonly<
    Record<Filter, number>
  >;
});

const Count = () => (
  <span class="count">
    {useComputed(() => words.shown(counts.value[filter.value], chargers.ids.value.length))}
  </span>
);

const Filters = () => (
  <div class="sites-filters">
    <div class="chips" role="group" aria-label={words.filter}>
      {NAMES.map((name) => (
        <Chip key={name} name={name} />
      ))}
    </div>
    <input
      type="search"
      aria-label={words.search}
      placeholder={words.search}
      value={search.value}
      onInput={({ currentTarget }) => (search.value = currentTarget.value)}
    />
  </div>
);

const Chip = ({ name }: { readonly name: Filter }) => (
  <button
    type="button"
    class="chip"
    aria-pressed={filter.value === name}
    onClick={() => (filter.value = name)}
  >
    {words[name]}
    <span class="count">{useComputed(() => counts.value[name])}</span>
  </button>
);

/** Content of a tile. It holds no time of a reading: most readings change nothing that is shown. */
interface Face {
  readonly name: string;
  readonly vehicle: string | null;
  /** A person may name the vehicle. */
  readonly isUnnamed: boolean;
  readonly soc: string | null;
  readonly state: Shown;
  readonly limiter: Shown | null;
  readonly set: string;
  readonly drawn: string;
  /** Null: no event asks for anything. */
  readonly follow: Shown | null;
  /** Since when it does not follow. "": it does. */
  readonly badFor: string;
  /** Null: no departure is known. */
  readonly leaves: Shown | null;
  readonly isDimmed: boolean;
}

/** Null: it is not searched for. */
function faceOf(id: string): Face | null {
  const charger = chargers.of(id);
  if (charger === undefined || !isFound(id)) return null;
  const { vehicle, soc, measured } = charger;
  const departure = vehicle === null ? undefined : departures.of(vehicle);
  const known = vehicle === null ? undefined : vehicles.of(vehicle);
  const isUnknown = charger.occupant === "unknown" || isUnnamed(charger);
  const empty = isUnknown ? t.charger.unknownVehicle : measured === null ? t.strip.unknown : t.charger.nobody;
  return {
    name: vehicle === null ? empty : (known?.name ?? vehicle),
    vehicle,
    isUnnamed: isUnnamed(charger),
    soc: soc === null ? null : percent(soc),
    state: chargerState(charger, brokersAway.value),
    limiter: limiterOf(charger),
    set: setpointText(charger.allowed),
    drawn: drawnText(measured),
    follow: charger.asked === null ? null : followState(charger, brokersAway.value),
    badFor: badFor(id),
    leaves:
      departure === undefined
        ? null
        : {
            ...slackState(departure),
            word: words.leaves(nearTime(zone.value, Date.parse(departure.at), thisMinute.value)),
          },
    isDimmed: !FILTERS[filter.value](charger),
  };
}

/** Age of the open alarm about a setpoint that is not followed. */
function badFor(id: string): string {
  const alarm = alarms.of(`notFollowed:${id}`);
  if (alarm === undefined || alarm.state === "cleared") return "";
  return span(Math.max(0, thisMinute.value - Date.parse(alarm.since)));
}

/** Follows its charger. It is drawn again only when its face changes. */
function Tile({ id }: { readonly id: string }) {
  const { value: face } = useSteady(() => faceOf(id));
  const { value: isOld } = useComputed(() => {
    const charger = chargers.of(id);
    return charger !== undefined && isStale(charger, now.value, brokersAway.value);
  });
  const [isBinding, setBinding] = useState(false);
  if (face === null) return null;
  const { name, vehicle, soc, state, limiter, follow, leaves } = face;
  const stale = isOld ? " is-stale" : "";
  const content = (
    <>
      <span class="tile-head">
        <span class="tile-bay">{id}</span>
        {limiter !== null && (
          <span class="tile-limiter" title={limiter.word}>
            <Glyph shape={limiter.shape} />
            <span class="unseen">{limiter.word}</span>
          </span>
        )}
      </span>
      <span class="tile-name">
        <strong class="tile-vehicle">{name}</strong>
        {soc !== null && <span class="tile-soc">{soc}</span>}
      </span>
      <span class="tile-state">
        <State shown={state} />
      </span>
      <span class="tile-levels">
        <span>
          <small>{words.set}</small> {face.set}
        </span>
        <span class="arrow" aria-hidden="true">
          →
        </span>
        <span class={stale === "" ? "" : "is-stale"}>
          <span class="unseen">{words.measured}</span> {face.drawn}
        </span>
        {follow !== null && (
          <span class={`tile-follow ${follow.tone}`} title={follow.word}>
            <Glyph shape={follow.shape} />
            <span class="unseen">{follow.word}</span>
            {face.badFor !== "" && <small> {face.badFor}</small>}
          </span>
        )}
      </span>
      <span class="tile-foot">
        {leaves === null ? <span /> : <State shown={leaves} />}
        <HeardAgo id={id} />
      </span>
    </>
  );
  return (
    <li class={`tile ${state.tone}${face.isDimmed ? " is-dimmed" : ""}${stale}`}>
      {vehicle === null ? (
        <div class="tile-body">{content}</div>
      ) : (
        <a class="tile-body" href={vehiclePath(vehicle)}>
          {content}
        </a>
      )}
      {face.isUnnamed && (
        <Act
          role="operator"
          label={t.binding.nameIt}
          name={`${t.binding.nameIt} ${id}`}
          onPress={() => setBinding(true)}
        />
      )}
      {isBinding && <BindDialog vehicle={null} charger={id} onClose={() => setBinding(false)} />}
    </li>
  );
}

/** Age of the last message, in steps: 200 ages to the second would change the whole board every second. */
export function HeardAgo({ id }: { readonly id: string }) {
  const text = useComputed(() => {
    const age = agoOf(chargers.of(id)?.heardAt, now.value);
    return age === Infinity
      ? words.neverHeard
      : age < STEP
        ? words.justNow
        : span(Math.floor(age / STEP) * STEP);
  });
  return (
    <span class="age">
      <span class="unseen">{words.lastMessage}</span> {text}
    </span>
  );
}

/** Ms of the steps in which the board shows an age. */
const STEP = 10_000;
