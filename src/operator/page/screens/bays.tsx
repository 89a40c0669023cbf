import { signal, useComputed } from "@preact/signals";

import type { Charger } from "../apiAnswers.ts";
import { chargerState, followState, isStale, limiterOf, slackState } from "../derive.ts";
import { amps, kilowatts, loadedPhase, nearTime, percent, setpointText } from "../format.ts";
import { Age, Glyph, State, Title } from "../parts.tsx";
import { vehiclePath } from "../router.ts";
import { chargers, departures, now, site, vehicles, zone } from "../store.ts";
import { t } from "../texts.ts";

const words = t.bays;

const FILTERS = ["all", "short", "faults", "inEvent", "held", "absent"] as const;
type Filter = (typeof FILTERS)[number];
const filter = signal<Filter>("all");

function passes(charger: Charger, chosen: Filter): boolean {
  switch (chosen) {
    case "all":
      return true;
    case "short": {
      const departure = charger.vehicle === null ? undefined : departures.of(charger.vehicle);
      return departure !== undefined && slackState(departure).tone === "bad";
    }
    case "faults":
      return chargerState(charger).tone === "bad";
    case "inEvent":
      return charger.asked !== null;
    case "held":
      return charger.hold !== null;
    case "absent":
      return charger.occupant === "nobody" || charger.measured?.state === "unplugged";
  }
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
 * S2: every bay where it is in the yard. A filter dims the others and moves nothing. The board itself follows only the
 * list of chargers: with 200 of them a reading must not draw every tile.
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

const countOf = (name: Filter): number =>
  chargers.all.value.filter((charger) => passes(charger, name)).length;

function Count() {
  const text = useComputed(() => words.shown(countOf(filter.value), chargers.all.value.length));
  return <span class="count">{text}</span>;
}

const Filters = () => (
  <div class="chips" role="group" aria-label={words.filter}>
    {FILTERS.map((name) => (
      <Chip key={name} name={name} />
    ))}
  </div>
);

function Chip({ name }: { readonly name: Filter }) {
  const count = useComputed(() => countOf(name));
  return (
    <button
      type="button"
      class="chip"
      aria-pressed={filter.value === name}
      onClick={() => (filter.value = name)}
    >
      {words[name]}
      <span class="count">{count}</span>
    </button>
  );
}

/** Follows its charger. The clock draws it again only where that changes what it shows. */
function Tile({ id }: { readonly id: string }) {
  const charger = chargers.of(id);
  const isOld = useComputed(() => {
    const current = chargers.of(id);
    return current !== undefined && isStale(current, now.value);
  });
  const leaves = useComputed(() => {
    const vehicle = chargers.of(id)?.vehicle ?? null;
    const departure = vehicle === null ? undefined : departures.of(vehicle);
    return departure === undefined ? "" : nearTime(zone.value, Date.parse(departure.at), now.value);
  });
  if (charger === undefined) return null;
  const { vehicle, measured, heardAt } = charger;
  const state = chargerState(charger);
  const limiter = limiterOf(charger);
  const follow = followState(charger);
  const departure = vehicle === null ? undefined : departures.of(vehicle);
  const slack = departure === undefined ? null : slackState(departure);
  const name =
    vehicle === null
      ? charger.occupant === "unknown"
        ? t.charger.unknownVehicle
        : t.charger.nobody
      : (vehicles.of(vehicle)?.name ?? vehicle);
  const current = loadedPhase(measured?.currentsA);
  const drawn =
    measured === null
      ? "–"
      : current !== null
        ? amps(current)
        : measured.powerW === null
          ? "–"
          : kilowatts(measured.powerW);
  const dimmed = passes(charger, filter.value) ? "" : " is-dimmed";
  const stale = isOld.value ? " is-stale" : "";
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
        {charger.soc !== null && <span class="tile-soc">{percent(charger.soc)}</span>}
      </span>
      <span class="tile-state">
        <State shown={state} />
      </span>
      <span class="tile-levels">
        <span>
          <small>{words.set}</small> {setpointText(charger.allowed)}
        </span>
        <span class="arrow" aria-hidden="true">
          →
        </span>
        <span class={stale === "" ? "" : "is-stale"}>
          <span class="unseen">{words.measured}</span> {drawn}
        </span>
        {charger.asked !== null && (
          <span class={`tile-follow ${follow.tone}`} title={follow.word}>
            <Glyph shape={follow.shape} />
            <span class="unseen">{follow.word}</span>
          </span>
        )}
      </span>
      <span class="tile-foot">
        {departure === undefined || slack === null ? (
          <span />
        ) : (
          <span class={`state ${slack.tone}`}>
            <Glyph shape={slack.shape} />
            {words.leaves(leaves.value)}
          </span>
        )}
        <Age at={heardAt} never={words.neverHeard} />
      </span>
    </>
  );
  return (
    <li class={`tile ${state.tone}${dimmed}${stale}`}>
      {vehicle === null ? (
        <div class="tile-body">{content}</div>
      ) : (
        <a class="tile-body" href={vehiclePath(vehicle)}>
          {content}
        </a>
      )}
    </li>
  );
}
