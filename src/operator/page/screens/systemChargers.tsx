import { useMemo, useState } from "preact/hooks";

import { get } from "../api.ts";
import type { AuditRow, Charger } from "../apiAnswers.ts";
import { type ChargerFigures, type Delays, figuresIn, type Trial } from "../commands.ts";
import { chargerState, followState, type Shown } from "../derive.ts";
import { amps, dayOf, kilowatts, nearTime, percent, setpointText, span } from "../format.ts";
import { Age, HeadRow, Section, State, Wide } from "../parts.tsx";
import { fusePower } from "../power.ts";
import { chargers, now, site, status, vehicles, zone } from "../store.ts";
import { t } from "../texts.ts";

const words = t.system;
const DAY = 86_400_000;

/** The rows of the last day, and since when they are complete. */
export function lastDay(rows: readonly AuditRow[]): {
  readonly rows: readonly AuditRow[];
  readonly since: number;
} {
  const oldest = Math.min(now.value, ...rows.map(({ at }) => Date.parse(at)));
  const since = Math.max(oldest, now.value - DAY);
  return { rows: rows.filter(({ at }) => Date.parse(at) >= since), since };
}

/**
 * The chargers now, over the last day, and what was tried on each. `rows`: null until they are loaded. `isCut`: the
 * record has older ones.
 */
export function Chargers({
  rows,
  isCut,
}: {
  readonly rows: readonly AuditRow[] | null;
  readonly isCut: boolean;
}) {
  return (
    <>
      <Section name="system-chargers" title={words.chargers}>
        <Wide name="system-chargers">
          <HeadRow columns={words.columns} />
          <tbody>
            {chargers.all.value.map((charger) => (
              <ChargerRow key={charger.charger} charger={charger} />
            ))}
          </tbody>
        </Wide>
      </Section>
      {rows !== null && <LastDay rows={rows} />}
      {rows !== null && <Commissioning rows={rows} isCut={isCut} />}
    </>
  );
}

function ChargerRow({ charger }: { readonly charger: Charger }) {
  const { charger: id, heardAt, allowed, measured } = charger;
  return (
    <tr>
      <th scope="row">{id}</th>
      <td>{site.value?.makes[id] ?? "–"}</td>
      <td>
        <State shown={chargerState(charger)} />
      </td>
      <td>
        <Age at={heardAt} never={t.bays.neverHeard} />
      </td>
      <td>{setpointText(allowed)}</td>
      <td>{measured?.limitA == null ? "–" : amps(measured.limitA)}</td>
      <td>
        <State shown={followState(charger)} />
      </td>
    </tr>
  );
}

const delaysText = (delays: Delays | null): string =>
  delays === null ? "–" : words.delays(millis(delays.median), millis(delays.p95));

const millis = (ms: number): string => (ms < 10_000 ? `${Math.round(ms)} ms` : span(ms));

function LastDay({ rows }: { readonly rows: readonly AuditRow[] }) {
  const { figures, since } = useMemo(() => {
    const day = lastDay(rows);
    return { figures: figuresIn(day.rows, now.value), since: day.since };
  }, [rows]);
  return (
    <Section
      name="system-day"
      title={words.day}
      aside={<span class="count">{words.since(nearTime(zone.value, since, now.value))}</span>}
    >
      <Wide name="system-day">
        <HeadRow columns={words.dayColumns} />
        <tbody>
          {chargers.all.value.map((charger) => (
            <FigureRow key={charger.charger} charger={charger} figures={figures.get(charger.charger)} />
          ))}
        </tbody>
      </Wide>
    </Section>
  );
}

function FigureRow({
  charger: { charger, writes },
  figures,
}: {
  readonly charger: Charger;
  readonly figures: ChargerFigures | undefined;
}) {
  const judged = figures?.judged ?? 0;
  return (
    <tr>
      <th scope="row">{charger}</th>
      <td>{figures?.commands ?? 0}</td>
      <td>{writes === null ? (figures?.inHour ?? 0) : words.writes(writes.lastHour, writes.most)}</td>
      <td>{delaysText(figures?.acknowledged ?? null)}</td>
      <td>{delaysText(figures?.accepted ?? null)}</td>
      <td>{judged === 0 ? "–" : words.share(percent((100 * (figures?.followed ?? 0)) / judged), judged)}</td>
      <td>{figures?.outages ?? 0}</td>
    </tr>
  );
}

const yes = (word: string): Shown => ({ word, shape: "dot", tone: "good" });
const no = (word: string): Shown => ({ word, shape: "cross", tone: "bad" });
const open = (word: string): Shown => ({ word, shape: "ring", tone: "mute" });

/** S8: what has been tried and found right, for the site and for each charger. */
function Commissioning({ rows, isCut }: { readonly rows: readonly AuditRow[]; readonly isCut: boolean }) {
  const recent = useMemo(() => figuresIn(rows, now.value), [rows]);
  const [older, setOlder] = useState<ReadonlyMap<string, Trial | null>>(new Map());
  const [isBusy, setBusy] = useState(false);
  const all = chargers.all.value;
  const trialOf = (id: string): Trial | null => recent.get(id)?.trial ?? older.get(id) ?? null;
  const untried = all.filter(({ charger }) => trialOf(charger) === null && !older.has(charger));
  const search = async (): Promise<void> => {
    setBusy(true);
    const found = new Map(older);
    try {
      for (const { charger } of untried) {
        const path = `audit?charger=${encodeURIComponent(charger)}&kind=operator&newest=true&limit=100`;
        const own = await get<readonly AuditRow[]>(path);
        found.set(charger, figuresIn(own, now.value).get(charger)?.trial ?? null);
      }
    } finally {
      setOlder(found);
      setBusy(false);
    }
  };
  const oldest = rows.at(-1)?.at;
  return (
    <Section name="system-trials" title={words.trials.title}>
      <Steps all={all} trialOf={trialOf} />
      <Wide name="system-trials">
        <HeadRow columns={words.trials.columns} />
        <tbody>
          {all.map((charger) => (
            <TrialRow key={charger.charger} charger={charger} trial={trialOf(charger.charger)} />
          ))}
        </tbody>
      </Wide>
      <p class="hint">{words.trials.how}</p>
      {isCut && untried.length > 0 && oldest !== undefined && (
        <div class="acts acts-inside">
          <button type="button" class="plain" disabled={isBusy} onClick={() => void search()}>
            {words.trials.search}
          </button>
          <span class="hint">
            {words.trials.searched(dayOf(zone.value, Date.parse(oldest)), untried.length)}
          </span>
        </div>
      )}
    </Section>
  );
}

/** The steps of the site, each with what is missing. */
function Steps({
  all,
  trialOf,
}: {
  readonly all: readonly Charger[];
  readonly trialOf: (charger: string) => Trial | null;
}) {
  const { steps } = words.trials;
  const step = (label: string, missing: readonly string[]) => ({
    label,
    shown:
      missing.length === 0 ? yes(steps.done) : open(steps.missing(all.length - missing.length, all.length)),
    missing,
  });
  const without = (isDone: (charger: Charger) => boolean): readonly string[] =>
    all.filter((charger) => !isDone(charger)).map(({ charger }) => charger);
  const { ratings = {}, fuseA = null } = site.value ?? {};
  const fuse = fuseA === null ? null : fusePower(fuseA, ratings);
  const most = Object.values(ratings).reduce(
    (sum, { phases, voltage, maxCurrentA, maxPowerW }) =>
      sum + (maxPowerW ?? (maxCurrentA ?? 0) * phases * voltage),
    0,
  );
  const isBelow = fuse !== null && most <= fuse;
  const list = [
    {
      label: steps.broker,
      shown: status.value?.broker.connected === true ? yes(steps.done) : no(words.disconnected),
      missing: [],
    },
    step(
      steps.heard,
      without(({ heardAt }) => heardAt !== null),
    ),
    step(
      steps.vehicle,
      without(({ occupant }) => occupant === "vehicle"),
    ),
    step(
      steps.levels,
      without(({ charger }) => trialOf(charger)?.isGood === true),
    ),
    step(
      steps.silence,
      without(({ charger }) => trialOf(charger)?.silence?.isGood === true),
    ),
    {
      label: steps.fuse,
      shown:
        fuse === null
          ? open(steps.noFuse)
          : (isBelow ? yes : no)(steps.fuseOf(kilowatts(most), kilowatts(fuse))),
      missing: [],
    },
  ];
  return (
    <ol class="trial-steps">
      {list.map(({ label, shown, missing }) => (
        <li key={label}>
          <span>{label}</span> <State shown={shown} />
          {missing.length > 0 && missing.length < all.length && (
            <small class="cause"> {steps.without(missing.slice(0, 8).join(", "), missing.length - 8)}</small>
          )}
        </li>
      ))}
    </ol>
  );
}

function TrialRow({ charger, trial }: { readonly charger: Charger; readonly trial: Trial | null }) {
  const { trials } = words;
  const { charger: id, occupant, vehicle, heardAt } = charger;
  const silence = trial?.silence ?? null;
  return (
    <tr>
      <th scope="row">{id}</th>
      <td>
        <State shown={heardAt === null ? open(t.bays.neverHeard) : yes(trials.heard)} />
      </td>
      <td>
        <State
          shown={
            occupant === "vehicle"
              ? yes(vehicle === null ? "" : (vehicles.of(vehicle)?.name ?? vehicle))
              : open(occupant === "unknown" ? t.charger.unknownVehicle : t.charger.nobody)
          }
        />
      </td>
      <td title={trial?.words}>
        {trial === null ? (
          <State shown={open(trials.untried)} />
        ) : (
          <>
            <State shown={trial.isGood ? yes(trials.good) : no(trials.bad)} />
            <small class="cause">
              {trial.levels.map(({ asked, isGood }) => `${asked} ${isGood ? "✓" : "✗"}`).join(", ")}
            </small>
          </>
        )}
      </td>
      <td>
        {silence === null ? (
          <State shown={open(trials.untried)} />
        ) : (
          <State
            shown={(silence.isGood === null ? open : silence.isGood ? yes : no)(
              trials.silence(silence.seen, span(silence.afterMs)),
            )}
          />
        )}
      </td>
      <td>{trial === null ? "–" : dayOf(zone.value, Date.parse(trial.at))}</td>
    </tr>
  );
}
