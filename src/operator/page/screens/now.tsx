import type { AuditRow, Hold } from "../apiAnswers.ts";
import type { SiteEvent } from "../derive.ts";
import { compliance, eventsNow, followOf } from "../derive.ts";
import { useLoaded } from "../effects.ts";
import { revisionsIn } from "../eventRecord.ts";
import { amps, askText, kilowatts, revisedText, span } from "../format.ts";
import { scopeName } from "../holdEffect.tsx";
import { endOverride, overrideSite } from "../hold.tsx";
import { holdLine } from "../holdPreview.ts";
import { naming } from "../holdWords.ts";
import { Act, Age, Glyph, Section, State } from "../parts.tsx";
import { fusePower, sitePower } from "../power.ts";
import { eventPath } from "../router.ts";
import { brokersAway, chargers, events, holds, now, site, status, zone } from "../store.ts";
import { t } from "../texts.ts";
import { Leaving } from "./leaving.tsx";
import { Troubles } from "./troubles.tsx";

const words = t.now;

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
  const { active, next } = eventsNow(events.all.value, now.value, chargers.all.value);
  const [first, ...others] = active;
  const [coming] = next;
  return (
    <section class={`banner ${first === undefined ? "is-quiet" : "is-active"}`} aria-label={words.event}>
      {first === undefined ? <p class="banner-name">{words.noEvent}</p> : <Active event={first} />}
      <p class={`banner-next${coming === undefined && others.length === 0 ? " is-none" : ""}`}>
        {others.length > 0 && <span>{words.moreEvents(others.length)}. </span>}
        {coming?.start === undefined ? (
          others.length === 0 && words.noNext
        ) : (
          <a href={eventPath(coming.id)}>
            {words.nextEvent(
              coming.name ?? coming.id,
              naming.time(coming.start),
              span(Date.parse(coming.start) - now.value),
            )}
          </a>
        )}
      </p>
    </section>
  );
}

function Active({ event }: { readonly event: SiteEvent }) {
  const follow = compliance(event.id, chargers.all.value, brokersAway.value);
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
              {naming.time(event.start)}–{naming.time(event.end)}
            </strong>
            <span>{words.left(span(Math.max(0, left)))}</span>
          </>
        )}
      </p>
      <p class="banner-follow">
        {follow.total === 0 ? (
          <span>{words.noneUnder}</span>
        ) : (
          <State shown={followOf(follow, status.value)} />
        )}
        <Revised event={event} />
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

/** Rows of the record in which the last revision of an event is looked for. */
const REVISION_ROWS = 1000;

/** The partner's last change, and its time. */
function Revised({ event: { id, modified } }: { readonly event: SiteEvent }) {
  const path = `audit?event=${encodeURIComponent(id)}&newest=true&limit=${REVISION_ROWS}`;
  const rows = useLoaded<readonly AuditRow[]>(path, 0, modified);
  const last = revisionsIn(rows.value ?? []).find(({ changes }) => changes.length > 0);
  if (modified === undefined) return null;
  if (last === undefined) return <small>{words.changed(naming.time(modified))}</small>;
  const { fields } = t.event;
  const changes = last.changes.map(({ what, before, after }) =>
    words.change(fields[what], revisedText(zone.value, what, before), revisedText(zone.value, what, after)),
  );
  return <small class="revised">{words.revised(naming.time(last.at), changes.join(", "))}</small>;
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
      <p class="trouble-what">{holdLine(hold, scopeName(hold.scope), naming)}</p>
      <p class="trouble-do">{t.hold.by(hold.by, hold.reason)}</p>
      {(hold.costs ?? []).map(({ event, sentence }) => (
        <p key={event} class="trouble-do">
          {sentence}
        </p>
      ))}
    </div>
    <Act
      role="operator"
      label={t.hold.end}
      name={`${t.hold.end} ${scopeName(hold.scope)}`}
      onPress={() => endOverride(hold)}
    />
  </li>
);

/** Chargers regulate no finer than this. */
const TOLERANCE = 1.05;

/** Power by what limits it. The scale ends at the main fuse, if one is configured. */
function Power() {
  const { fuseA = null, ratings = {} } = site.value ?? {};
  const { measured, limited, free, allowed, limits, phases, silent, reserved } = sitePower(
    chargers.all.value,
    ratings,
    brokersAway.value,
  );
  const isHeard = silent < chargers.all.value.length;
  // No reading is no power of 0.
  const measuredText = (text: string): string => (isHeard ? text : t.strip.unknown);
  const fuse = fuseA === null ? null : fusePower(fuseA, ratings);
  const top = Math.max(fuse ?? 0, measured + reserved, allowed + free, 1);
  const part = (watts: number): string => `${(100 * watts) / top}%`;
  const over = fuse === null ? 0 : measured + reserved - fuse;
  return (
    <Section
      name="power"
      title={words.power}
      aside={<strong class="big">{measuredText(kilowatts(measured))}</strong>}
    >
      <div class="bar" aria-hidden="true">
        <i class="bar-limited" style={{ width: part(limited) }} />
        <i class="bar-free" style={{ width: part(free) }} />
        <i class="bar-reserved" style={{ width: part(reserved) }} />
        {allowed > 0 && <b class="mark-allowed" style={{ left: part(allowed) }} />}
        {fuse !== null && <b class="mark-fuse" style={{ left: part(fuse) }} />}
      </div>
      <dl class="power-parts">
        <div>
          <dt>
            <i class="key limited" /> {words.powerLimited}
          </dt>
          <dd>{measuredText(kilowatts(limited))}</dd>
        </div>
        {allowed > 0 && (
          <div>
            <dt>
              <i class="key allowed" /> {words.powerAllowed}
            </dt>
            <dd>{kilowatts(allowed)}</dd>
          </div>
        )}
        {limits.map(({ event, drawn, allowed: most }) => (
          <div key={event} class="power-event">
            <dt>{event === null ? words.powerHeld : <a href={eventPath(event)}>{event}</a>}</dt>
            <dd>
              {drawn > most * TOLERANCE ? (
                <State
                  shown={{
                    word: words.powerAbove(kilowatts(drawn), kilowatts(most)),
                    shape: "triangle",
                    tone: "warn",
                  }}
                />
              ) : (
                words.powerOf(kilowatts(drawn), kilowatts(most))
              )}
            </dd>
          </div>
        ))}
        <div>
          <dt>
            <i class="key free" /> {words.powerFree}
          </dt>
          <dd>{measuredText(kilowatts(free))}</dd>
        </div>
        {silent > 0 && (
          <div>
            <dt>
              <i class="key reserved" /> {words.powerReserved(silent)}
            </dt>
            <dd>{kilowatts(reserved)}</dd>
          </div>
        )}
        {fuse !== null && fuseA !== null && (
          <div>
            <dt>
              <i class="key fuse" /> {words.fuse}
            </dt>
            <dd>{words.fuseOf(kilowatts(fuse), amps(fuseA))}</dd>
          </div>
        )}
        <div>
          <dt>{words.phases}</dt>
          <dd>
            {measuredText(phases.map((current) => amps(Math.round(current)).replace(" A", "")).join(" · "))}
          </dd>
        </div>
      </dl>
      {over > 0 && (
        <p class="hint">
          <State shown={{ word: words.overFuse(kilowatts(over)), shape: "triangle", tone: "bad" }} />
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
