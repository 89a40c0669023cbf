import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { get } from "../api.ts";
import type { Fleet, FleetSite } from "../apiAnswers.ts";
import { agoOf, type Shown, bad, good, mute, warn } from "../derive.ts";
import { useLoaded } from "../effects.ts";
import { span } from "../format.ts";
import { Age, Cell, HeadRow, Section, State, Title } from "../parts.tsx";
import { alive, followClock, now } from "../store.ts";
import { t } from "../texts.ts";

const words = t.sites;

/** Ms between two requests of the page of the list, and of the numbers of the fleet. */
const EVERY = 5_000;
/** Sites of a page of the list. */
const ROWS = 50;
/** A state that is older, in ms, is no state: a leader reports each at least once a minute. */
const STALE = 180_000;

const FILTERS = ["all", "alarms", "unled"] as const;
type Filter = (typeof FILTERS)[number];

/** Null: not loaded yet. */
export const fleet = signal<Fleet | null>(null);
const filter = signal<Filter>("all");
const text = signal("");
/** The last site before each page that was opened. The last of them is shown. */
const cursors = signal<readonly string[]>([""]);

/** Shows the first page of another choice. */
function choose(change: () => void): void {
  change();
  cursors.value = [""];
}

/** Path of the sites that are shown, with one more that tells whether there is another page. */
function pathOf(): string {
  const asked = new URLSearchParams({ limit: String(ROWS + 1), after: cursors.value.at(-1) ?? "" });
  if (text.value.trim() !== "") asked.set("text", text.value.trim());
  if (filter.value !== "all") asked.set("state", filter.value);
  return `sites?${asked}`;
}

/** S10: the sites of a fleet. */
export function Sites() {
  useEffect(() => {
    const load = async (): Promise<void> => {
      const found = await get<Fleet>("fleet");
      // The list has no stream: this is its sign of life.
      alive();
      followClock(found.now);
      fleet.value = found;
    };
    const tryLoad = (): void => void load().catch(() => undefined);
    tryLoad();
    const timer = setInterval(tryLoad, EVERY);
    return () => clearInterval(timer);
  }, []);
  const { value, problem } = useLoaded<readonly FleetSite[]>(pathOf(), EVERY);
  const all = value ?? [];
  const rows = all.slice(0, ROWS);
  return (
    <>
      <Title>{words.title}</Title>
      <Filters />
      {problem !== null && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      <Section name="sites" title={words.list} aside={<Pages rows={rows} hasMore={all.length > ROWS} />}>
        {rows.length === 0 ? (
          <p class="quiet">{value === null ? t.loading : words.none}</p>
        ) : (
          <table class="rows">
            <HeadRow columns={words.columns} />
            <tbody>
              {rows.map((row) => (
                <Row key={row.site} row={row} />
              ))}
            </tbody>
          </table>
        )}
      </Section>
      <Processes />
    </>
  );
}

const Filters = () => (
  <div class="sites-filters">
    <div class="chips" role="group" aria-label={words.filter}>
      {FILTERS.map((name) => (
        <button
          key={name}
          type="button"
          class="chip"
          aria-pressed={filter.value === name}
          onClick={() => choose(() => (filter.value = name))}
        >
          {words[name]}
          <span class="count">{fleet.value?.[name === "all" ? "sites" : name] ?? ""}</span>
        </button>
      ))}
    </div>
    <label>
      <span class="unseen">{words.search}</span>
      <input
        type="search"
        placeholder={words.search}
        value={text.value}
        onInput={({ currentTarget }) => choose(() => (text.value = currentTarget.value))}
      />
    </label>
  </div>
);

function Pages({ rows, hasMore }: { readonly rows: readonly FleetSite[]; readonly hasMore: boolean }) {
  const before = (cursors.value.length - 1) * ROWS;
  const last = rows.at(-1)?.site;
  return (
    <div class="pages" role="group" aria-label={words.pages}>
      <span class="count">{rows.length > 0 && words.range(before + 1, before + rows.length)}</span>
      <button
        type="button"
        disabled={before === 0}
        onClick={() => (cursors.value = cursors.value.slice(0, -1))}
      >
        {words.previous}
      </button>
      <button
        type="button"
        disabled={!hasMore || last === undefined}
        onClick={() => last !== undefined && (cursors.value = [...cursors.value, last])}
      >
        {words.next}
      </button>
    </div>
  );
}

/** State of a site: of several, the gravest. */
function stateOf({ leader, ready, alarms, worst, stateAt }: FleetSite): Shown {
  if (leader === null) return bad(words.noLeader);
  if (ready === false) return warn(words.starting);
  if (alarms === null || agoOf(stateAt, now.value) > STALE) return mute(words.unknown);
  if (alarms === 0) return good(words.well);
  if (worst === "critical") return bad(words.open(alarms));
  return worst === "warning" ? warn(words.open(alarms)) : { ...mute(words.open(alarms)), tone: "info" };
}

const chargersOf = (live: number, total: number): Shown =>
  live < total ? warn(t.strip.live(live, total)) : good(t.strip.live(live, total));

function Row({ row }: { readonly row: FleetSite }) {
  const { site, leader, since, self, vehicles, chargers, live, stateAt, page } = row;
  const { columns } = words;
  const link = self ? `/sites/${encodeURIComponent(site)}/` : page;
  const isOld = agoOf(stateAt, now.value) > STALE;
  return (
    <tr>
      <th scope="row">{link === null ? site : <a href={link}>{site}</a>}</th>
      <td data-label={columns.state}>
        <State shown={stateOf(row)} />
      </td>
      <Cell label={columns.chargers}>
        {chargers === null || live === null ? null : isOld ? (
          <span class="is-stale">{t.strip.live(live, chargers)}</span>
        ) : (
          <State shown={chargersOf(live, chargers)} />
        )}
      </Cell>
      <td data-label={columns.vehicles}>{vehicles}</td>
      <Cell label={columns.leader}>{leader}</Cell>
      <Cell label={columns.since}>{since === null ? null : span(agoOf(since, now.value))}</Cell>
      <td data-label={columns.age} class={isOld ? "is-stale" : ""}>
        <Age at={stateAt} />
      </td>
    </tr>
  );
}

/** The processes that lead the sites. */
function Processes() {
  const { value } = fleet;
  if (value === null) return null;
  const { processColumns: columns } = words;
  return (
    <Section name="processes" title={words.processes}>
      {value.processes.length === 0 ? (
        <p class="quiet">
          <State shown={bad(words.noProcess)} />
        </p>
      ) : (
        <table class="rows">
          <HeadRow columns={columns} />
          <tbody>
            {value.processes.map(({ process, self, led, most }) => (
              <tr key={process}>
                <th scope="row">{self ? words.self(process) : process}</th>
                <td data-label={columns.led}>{led}</td>
                <td data-label={columns.most}>{most}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Section>
  );
}
