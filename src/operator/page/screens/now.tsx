import { useState } from "preact/hooks";

import { type Departure, type EnergyEvent, type Hold, post, Refused } from "../api.ts";
import {
  compliance,
  eventsNow,
  isStale,
  leavingNext,
  sitePower,
  slackState,
  type Trouble,
  troubles,
} from "../derive.ts";
import { amps, askText, kilowattHours, kilowatts, nearTime, setpointText, span } from "../format.ts";
import { scopeName } from "../holdEffect.tsx";
import { endOverride, overrideSite, overrideVehicle } from "../hold.tsx";
import { Act, Age, Cell, Dialog, Glyph, ReasonField, Section, State } from "../parts.tsx";
import { eventPath, vehiclePath } from "../router.ts";
import {
  alarms,
  chargers,
  departures,
  events,
  hasDepartures,
  holds,
  now,
  status,
  vehicles,
  zone,
} from "../store.ts";
import { t } from "../texts.ts";

const words = t.now;
const timeOf = (iso: string): string => nearTime(zone.value, Date.parse(iso), now.value);

/** S1: who will not make it, why, what may be done, and whether the system lives. */
export const Now = () => (
  <div class="now">
    <h1 class="unseen" tabIndex={-1}>
      {words.title}
    </h1>
    <Banner />
    <Leaving />
    <div class="now-side">
      <Troubles />
      <Holds />
      <Power />
    </div>
  </div>
);

function Banner() {
  const { active, next } = eventsNow(events.all.value, now.value);
  const [first, ...others] = active;
  const [coming] = next;
  return (
    <section class={`banner ${first === undefined ? "is-quiet" : "is-active"}`} aria-label={words.event}>
      {first === undefined ? <p class="banner-name">{words.noEvent}</p> : <Active event={first} />}
      <p class="banner-next">
        {others.length > 0 && <span>{words.moreEvents(others.length)}. </span>}
        {coming?.start === undefined ? (
          words.noNext
        ) : (
          <a href={eventPath(coming.id)}>
            {words.nextEvent(
              coming.name ?? coming.id,
              timeOf(coming.start),
              span(Date.parse(coming.start) - now.value),
            )}
          </a>
        )}
      </p>
    </section>
  );
}

function Active({ event }: { readonly event: EnergyEvent }) {
  const { good, total, bad } = compliance(event.id, chargers.all.value);
  const left = event.end === undefined ? 0 : Date.parse(event.end) - now.value;
  return (
    <>
      <div class="banner-main">
        <p class="banner-name">
          <Glyph shape="down" />
          <span>{event.name ?? event.id}</span>
          <small>{event.id}</small>
        </p>
        <p class="banner-ask">{words.ask(askText(event.ask), event.vehicles?.length ?? 0)}</p>
      </div>
      <p class="banner-time">
        {event.start !== undefined && event.end !== undefined && (
          <>
            <strong>
              {timeOf(event.start)}–{timeOf(event.end)}
            </strong>
            <span>{words.left(span(Math.max(0, left)))}</span>
          </>
        )}
      </p>
      <p class="banner-follow">
        {total === 0 ? (
          <span>{words.noneUnder}</span>
        ) : (
          <State
            shown={{
              word: words.follow(good, total),
              shape: bad.length === 0 ? "dot" : "triangle",
              tone: bad.length === 0 ? "good" : "warn",
            }}
          />
        )}
        {event.modified !== undefined && <small>{words.changed(timeOf(event.modified))}</small>}
      </p>
      <div class="banner-acts">
        <a class="button plain" href={eventPath(event.id)}>
          {words.details}
        </a>
        <Act role="operator" label={words.siteHold} onPress={overrideSite} />
      </div>
    </>
  );
}

/** Vehicles shown without a departure. More are on the bay board. */
const MOST_ROWS = 24;

function Leaving() {
  const known = leavingNext(departures.all.value, now.value);
  const inList = new Set(known.map(({ vehicle }) => vehicle));
  const rest = chargers.all.value
    .flatMap(({ vehicle, asked, hold }) =>
      vehicle === null || inList.has(vehicle) || (asked === null && hold === null) ? [] : [vehicle],
    )
    .slice(0, Math.max(0, MOST_ROWS - known.length));
  const short = known.filter((departure) => slackState(departure).tone === "bad").length;
  const unknown = known.filter(({ slackS }) => slackS === null).length;
  const aside = (
    <span class="counts">
      {short > 0 && <State shown={{ word: words.shortCount(short), shape: "cross", tone: "bad" }} />}
      {unknown > 0 && <State shown={{ word: words.unknownCount(unknown), shape: "ring", tone: "mute" }} />}
      {known.length > 0 && short === 0 && unknown === 0 && (
        <State shown={{ word: words.allMake, shape: "dot", tone: "good" }} />
      )}
    </span>
  );
  const names = words.columns;
  return (
    <Section name="leaving" title={words.leaving} aside={aside}>
      {known.length === 0 && (
        <p class="quiet">{hasDepartures.value ? words.noDepartures : words.noDeparturesYet}</p>
      )}
      {known.length + rest.length > 0 && (
        <table class="rows">
          <thead>
            <tr>
              <th>{names.vehicle}</th>
              <th>{names.bay}</th>
              <th>{names.leaves}</th>
              <th>{names.slack}</th>
              <th class="number">{names.missing}</th>
              <th class="number">{names.power}</th>
              <th>{names.ready}</th>
              <th>
                <span class="unseen">{names.action}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {known.map((departure) => (
              <Row key={departure.vehicle} vehicle={departure.vehicle} departure={departure} />
            ))}
            {rest.map((vehicle) => (
              <Row key={vehicle} vehicle={vehicle} departure={null} />
            ))}
          </tbody>
        </table>
      )}
    </Section>
  );
}

function Row({ vehicle: id, departure }: { readonly vehicle: string; readonly departure: Departure | null }) {
  const vehicle = vehicles.of(id);
  const charger = vehicle?.charger == null ? undefined : chargers.of(vehicle.charger);
  const name = vehicle?.name ?? id;
  const names = words.columns;
  const slack = departure === null ? null : slackState(departure);
  const isOld = charger !== undefined && isStale(charger, now.value);
  const tone = slack?.tone === "bad" ? "is-bad" : "";
  const isExplained = departure !== null && departure.cause !== null;
  const row = (
    <tr class={tone}>
      <th scope="row">
        <a href={vehiclePath(id)}>{name}</a>
      </th>
      <td data-label={names.bay}>{vehicle?.charger ?? "–"}</td>
      <Cell label={names.leaves} name="strong-time">
        {departure === null ? null : timeOf(departure.at)}
      </Cell>
      <Cell label={names.slack}>
        {slack === null ? null : (
          <State
            shown={slack}
            {...(departure?.slackS == null ? {} : { extra: span(departure.slackS * 1000) })}
          />
        )}
      </Cell>
      <Cell label={names.missing} name="number">
        {departure?.remainingWh == null || departure.remainingWh === 0
          ? null
          : kilowattHours(departure.remainingWh)}
      </Cell>
      <td data-label={names.power} class={`number${isOld ? " is-stale" : ""}`}>
        {charger?.measured?.powerW == null ? "–" : kilowatts(charger.measured.powerW)}
        {charger?.asked != null && <small> / {setpointText(charger.allowed)}</small>}
        {charger?.asked != null && <small class="cause">{charger.asked.event}</small>}
      </td>
      <Cell label={names.ready}>{departure?.readyAt == null ? null : timeOf(departure.readyAt)}</Cell>
      <td class="act">
        {charger?.hold == null ? (
          <Act
            role="operator"
            label={words.chargeNow}
            name={`${words.chargeNow} ${name}`}
            kind={slack?.tone === "bad" ? "strong" : "plain"}
            onPress={() => overrideVehicle(id)}
          />
        ) : (
          <State shown={{ word: words.held, shape: "hand", tone: "info" }} />
        )}
      </td>
    </tr>
  );
  if (!isExplained) return row;
  return (
    <>
      {row}
      <tr class={`why ${tone}`}>
        <td colSpan={COLUMNS}>{departure.because}</td>
      </tr>
    </>
  );
}

/** Columns of the table of departures. */
const COLUMNS = 8;

function Troubles() {
  const found = troubles(alarms.all.value, status.value, chargers.all.value, vehicles.all.value);
  const [asked, setAsked] = useState<Trouble | null>(null);
  return (
    <Section
      name="trouble"
      title={words.trouble}
      aside={<span class="count">{found.length === 0 ? "" : found.length}</span>}
    >
      {found.length === 0 ? (
        <p class="quiet">
          <State shown={{ word: words.noTrouble, shape: "dot", tone: "good" }} />
        </p>
      ) : (
        <ul class="troubles">
          {found.map((trouble) => (
            <TroubleRow key={trouble.key} trouble={trouble} onAcknowledge={() => setAsked(trouble)} />
          ))}
        </ul>
      )}
      {asked?.alarm != null && <Acknowledge trouble={asked} onClose={() => setAsked(null)} />}
    </Section>
  );
}

const SHAPE = { bad: "cross", warn: "triangle", info: "ring" } as const;

function TroubleRow({
  trouble,
  onAcknowledge,
}: {
  readonly trouble: Trouble;
  readonly onAcknowledge: () => void;
}) {
  const { tone, message, action, since, alarm, vehicle } = trouble;
  const acknowledged = alarm?.acknowledged ?? null;
  return (
    <li class={`trouble-row ${acknowledged === null ? tone : "mute"}`}>
      <Glyph shape={SHAPE[tone]} />
      <div>
        <p class="trouble-what">
          {vehicle === null ? message : <a href={vehiclePath(vehicle)}>{message}</a>}
        </p>
        <p class="trouble-do">{action}</p>
        <p class="trouble-age">
          {since !== null && words.since(span(Math.max(0, now.value - Date.parse(since))))}
          {acknowledged !== null && ` · ${words.acknowledged(acknowledged.by)}`}
        </p>
      </div>
      {alarm?.state === "open" && <Act role="operator" label={words.acknowledge} onPress={onAcknowledge} />}
    </li>
  );
}

function Acknowledge({ trouble, onClose }: { readonly trouble: Trouble; readonly onClose: () => void }) {
  const [note, setNote] = useState(t.alarm.presets[0] ?? "");
  const [problem, setProblem] = useState("");
  const submit = async (): Promise<void> => {
    try {
      alarms.put(await post(`alarms/${encodeURIComponent(trouble.key)}/acknowledge`, { note: note.trim() }));
      onClose();
    } catch (error) {
      setProblem(error instanceof Refused ? `${error.message}. ${error.detail}` : String(error));
    }
  };
  return (
    <Dialog title={t.alarm.title} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <p>{trouble.message}</p>
        <p class="hint">{t.alarm.will}</p>
        <ReasonField label={t.alarm.note} presets={t.alarm.presets} value={note} onChange={setNote} />
        <p class="problem" role="alert">
          {problem}
        </p>
        <div class="buttons">
          <button type="button" class="plain" onClick={onClose}>
            {t.hold.cancel}
          </button>
          <button class="strong">{t.alarm.submit}</button>
        </div>
      </form>
    </Dialog>
  );
}

function Holds() {
  const inForce = holds.all.value.filter(({ state }) => state === "open");
  if (inForce.length === 0) return null;
  return (
    <Section name="holds" title={words.holds} aside={<span class="count">{inForce.length}</span>}>
      <ul class="troubles">
        {inForce.map((hold) => (
          <HoldRow key={hold.id} hold={hold} />
        ))}
      </ul>
    </Section>
  );
}

const HoldRow = ({ hold }: { readonly hold: Hold }) => (
  <li class="trouble-row info">
    <Glyph shape="hand" />
    <div>
      <p class="trouble-what">
        {scopeName(hold.scope)}: {hold.kind === "exempt" ? t.limiter.exempt : t.limiter.hold}
        {hold.until !== null && `, ${timeOf(hold.until)}`}
      </p>
      <p class="trouble-do">{t.hold.by(hold.by, hold.reason)}</p>
    </div>
    <Act
      role="operator"
      label={t.hold.end}
      name={`${t.hold.end} ${scopeName(hold.scope)}`}
      onPress={() => endOverride(hold)}
    />
  </li>
);

function Power() {
  const { measured, limited, free, allowed, phases, silent } = sitePower(chargers.all.value);
  const top = Math.max(measured, allowed + free, 1);
  const part = (watts: number): string => `${(100 * watts) / top}%`;
  return (
    <Section name="power" title={words.power} aside={<strong class="big">{kilowatts(measured)}</strong>}>
      <div class="bar" aria-hidden="true">
        <i class="bar-limited" style={{ width: part(limited) }} />
        <i class="bar-free" style={{ width: part(free) }} />
      </div>
      <dl class="power-parts">
        <div>
          <dt>
            <i class="key limited" /> {words.powerLimited}
          </dt>
          <dd>
            {kilowatts(limited)}
            {allowed > 0 && <small> / {kilowatts(allowed)}</small>}
          </dd>
        </div>
        <div>
          <dt>
            <i class="key free" /> {words.powerFree}
          </dt>
          <dd>{kilowatts(free)}</dd>
        </div>
        <div>
          <dt>{words.phases}</dt>
          <dd>{phases.map((current) => amps(Math.round(current)).replace(" A", "")).join(" · ")}</dd>
        </div>
      </dl>
      {silent > 0 && (
        <p class="hint">
          <Glyph shape="triangle" /> {words.powerSilent(silent)}
        </p>
      )}
      <p class="trouble-age">
        <Age at={newestReading()} />
      </p>
    </Section>
  );
}

/** Time of the newest reading of the site. */
const newestReading = (): string | null =>
  chargers.all.value.reduce<string | null>((newest, { measured }) => {
    if (measured === null) return newest;
    return newest === null || measured.at > newest ? measured.at : newest;
  }, null);
