import { useMemo } from "preact/hooks";

import type { AuditRow, Charger } from "../apiAnswers.ts";
import { type ChargerFigures, type Delays, figuresIn } from "../commands.ts";
import { chargerState, followState } from "../derive.ts";
import { amps, nearTime, percent, setpointText, span } from "../format.ts";
import { Age, HeadRow, Section, State, Wide } from "../parts.tsx";
import { chargers, now, site, zone } from "../store.ts";
import { t } from "../texts.ts";
import { Commissioning } from "./commissioning.tsx";

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
