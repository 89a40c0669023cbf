import { signal } from "@preact/signals";

import type { Charger } from "../apiTypes.ts";
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

/** S2: every bay where it is in the yard. A filter dims the others and moves nothing. */
export function Bays() {
  const chosen = filter.value;
  const yard = lanes();
  const all = chargers.all.value;
  const count = all.filter((charger) => passes(charger, chosen)).length;
  return (
    <>
      <Title aside={<span class="count">{words.shown(count, all.length)}</span>}>{words.title}</Title>
      <div class="chips" role="group" aria-label={words.filter}>
        {FILTERS.map((name) => (
          <button
            key={name}
            type="button"
            class="chip"
            aria-pressed={chosen === name}
            onClick={() => (filter.value = name)}
          >
            {words[name]}
            <span class="count">{all.filter((charger) => passes(charger, name)).length}</span>
          </button>
        ))}
      </div>
      {yard.map((lane, index) => (
        <section key={lane[0]} class="lane" aria-label={words.lane(index + 1)}>
          {yard.length > 1 && <h2>{words.lane(index + 1)}</h2>}
          <ul class="tiles">
            {lane.map((id) => (
              <Tile key={id} id={id} chosen={chosen} />
            ))}
          </ul>
        </section>
      ))}
    </>
  );
}

function Tile({ id, chosen }: { readonly id: string; readonly chosen: Filter }) {
  const charger = chargers.of(id);
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
  const dimmed = passes(charger, chosen) ? "" : " is-dimmed";
  const stale = isStale(charger, now.value) ? " is-stale" : "";
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
            {words.leaves(nearTime(zone.value, Date.parse(departure.at), now.value))}
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
