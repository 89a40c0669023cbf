import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";

import { download, problemText } from "../api.ts";
import type { AuditRow, Configuration, Token } from "../apiAnswers.ts";
import { type ChargerFigures, type Delays, figuresIn } from "../commands.ts";
import { chargerState, followState, bad } from "../derive.ts";
import { amps, dayOf, exactTime, nearTime, percent, setpointText, span } from "../format.ts";
import { useLoaded, useSteady } from "../effects.ts";
import { Reboot } from "../actions.tsx";
import { naming } from "../holdWords.ts";
import { Act, HeadRow, Section, State, Wide } from "../parts.tsx";
import { brokersAway, chargers, mayAct, now, person, site, status, thisMinute, zone } from "../store.ts";
import { t } from "../texts.ts";
import { HeardAgo } from "./bays.tsx";
import { Commissioning } from "./commissioning.tsx";

const words = t.system;
const DAY = 86_400_000;
/** Ms between two requests for what the stream does not carry. */
export const RECORD_EVERY = 60_000;

export const Facts = ({ children }: { readonly children: ComponentChildren }) => (
  <dl class="pairs">{children}</dl>
);

export const Pair = ({
  label,
  children,
}: {
  readonly label: string;
  readonly children: ComponentChildren;
}) => (
  <div>
    <dt>{label}</dt>
    <dd>{children}</dd>
  </div>
);

/** The rows of the last day, and since when they are complete. Follows no clock: the rows are loaded each minute. */
export function lastDay(rows: readonly AuditRow[]): {
  readonly rows: readonly AuditRow[];
  readonly since: number;
} {
  const at = now.peek();
  const oldest = Math.min(at, ...rows.map(({ at }) => Date.parse(at)));
  const since = Math.max(oldest, at - DAY);
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
            {chargers.ids.value.map((id) => (
              <ChargerRow key={id} id={id} />
            ))}
          </tbody>
        </Wide>
        {status.value !== null && (
          <p class="hint">{words.restartsMean(naming.time(status.value.startedAt))}</p>
        )}
      </Section>
      {rows !== null && <LastDay rows={rows} />}
      {rows !== null && <Commissioning rows={rows} isCut={isCut} />}
    </>
  );
}

/** Row of a charger, drawn again only when it changes: 200 chargers report many times a second. */
function ChargerRow({ id }: { readonly id: string }) {
  const { value: row } = useSteady(() => {
    const charger = chargers.of(id);
    if (charger === undefined) return null;
    const { allowed, measured, firmware, restarts, reboot } = charger;
    return {
      state: chargerState(charger, brokersAway.value),
      set: setpointText(allowed),
      limit: measured?.limitA == null ? "–" : amps(measured.limitA),
      follows: followState(charger, brokersAway.value),
      firmware: firmware ?? "–",
      restarts: words.restarts[restarts.counted](restarts.count),
      reboot: reboot?.sentence ?? null,
    };
  });
  if (row === null) return null;
  return (
    <tr>
      <th scope="row">{id}</th>
      <td>{site.value?.makes[id] ?? "–"}</td>
      <td>
        <State shown={row.state} />
      </td>
      <td>
        <HeardAgo id={id} />
      </td>
      <td>{row.set}</td>
      <td>{row.limit}</td>
      <td>
        <State shown={row.follows} />
      </td>
      <td>{row.firmware}</td>
      <td>{row.restarts}</td>
      <td>
        <Reboot id={id} name={`${t.reboot.label} ${id}`} />
        {row.reboot !== null && <small> {row.reboot}</small>}
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
    return { figures: figuresIn(day.rows, now.peek()), since: day.since };
  }, [rows]);
  return (
    <Section
      name="system-day"
      title={words.day}
      aside={<span class="count">{words.since(nearTime(zone.value, since, thisMinute.value))}</span>}
    >
      <Wide name="system-day">
        <HeadRow columns={words.dayColumns} />
        <tbody>
          {chargers.ids.value.map((id) => (
            <FigureRow key={id} id={id} figures={figures.get(id)} />
          ))}
        </tbody>
      </Wide>
    </Section>
  );
}

function FigureRow({ id, figures }: { readonly id: string; readonly figures: ChargerFigures | undefined }) {
  const { value: writes } = useSteady(() => chargers.of(id)?.writes ?? null);
  const judged = figures?.judged ?? 0;
  return (
    <tr>
      <th scope="row">{id}</th>
      <td>{figures?.commands ?? 0}</td>
      <td>{writes === null ? (figures?.inHour ?? 0) : words.writes(writes.lastHour, writes.most)}</td>
      <td>{delaysText(figures?.acknowledged ?? null)}</td>
      <td>{delaysText(figures?.accepted ?? null)}</td>
      <td>{judged === 0 ? "–" : words.share(percent((100 * (figures?.followed ?? 0)) / judged), judged)}</td>
      <td>{figures?.outages ?? 0}</td>
    </tr>
  );
}

/** Days before the end of a token at which it is marked. */
const TOKEN_ENDS_SOON = 14;

/** Tokens of programs. Only an integrator may read them. A site without a login has none. */
export function Tokens() {
  const may = mayAct("integrator") && person.value?.via !== "open";
  const { value } = useLoaded<readonly Token[]>(may ? "tokens" : null, RECORD_EVERY);
  if (value === null) return null;
  return (
    <Section name="system-tokens" title={words.tokens}>
      {value.length === 0 ? (
        <p class="quiet">{words.noTokens}</p>
      ) : (
        <Facts>
          {value.map(({ name, role, expiresAt }) => (
            <Pair key={name} label={`${name}, ${role}`}>
              <TokenEnd at={expiresAt} />
            </Pair>
          ))}
        </Facts>
      )}
    </Section>
  );
}

function TokenEnd({ at }: { readonly at: string | null }) {
  if (at === null) return <>{words.neverEnds}</>;
  const left = Date.parse(at) - now.value;
  if (left <= 0) return <State shown={bad(words.expired)} />;
  const text = words.ends(dayOf(zone.value, Date.parse(at)));
  if (left > TOKEN_ENDS_SOON * DAY) return <>{text}</>;
  return <State shown={{ word: text, shape: "triangle", tone: "warn" }} />;
}

export function Program() {
  const [current, fixed] = [status.value, site.value];
  const { value } = useLoaded<Configuration>(mayAct("integrator") ? "configuration" : null, RECORD_EVERY);
  if (current === null) return null;
  const started = Date.parse(current.startedAt);
  const onDisk = value?.file == null ? null : value;
  return (
    <Section name="system-program" title={words.program}>
      <Facts>
        <Pair label={words.version}>{fixed?.version ?? "–"}</Pair>
        <Pair label={words.started}>
          {dayOf(zone.value, started)} {exactTime(zone.value, started)}
        </Pair>
        <Pair label={words.runsFor}>{span(now.value - started)}</Pair>
        <Pair label={words.run}>{current.epoch}</Pair>
      </Facts>
      {(onDisk !== null || !mayAct("integrator")) && <SupportArchive />}
    </Section>
  );
}

/** Saves a support archive. The gateway tries itself for it, for up to a minute. */
function SupportArchive() {
  const [isBusy, setBusy] = useState(false);
  const [text, setText] = useState("");
  const save = async (): Promise<void> => {
    setBusy(true);
    setText(words.archiveRuns);
    try {
      const name = `setpointd-bundle-${new Date(now.peek()).toISOString().slice(0, 16).replaceAll(":", "")}.tar.gz`;
      await download("bundle", name);
      setText(words.archiveSaved(name));
    } catch (error) {
      setText(problemText(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <div class="acts acts-inside">
      <Act role="integrator" label={words.archive} onPress={() => void (isBusy || save())} />
      <output class="hint">{text}</output>
    </div>
  );
}
