import { useSignalEffect } from "@preact/signals";
import type { ComponentChildren } from "preact";

import type { Fleet } from "./apiAnswers.ts";
import { eventsNow, liveChargers, type Shown, siteMode, bad, good, warn } from "./derive.ts";
import { dayOf, exactTime, span, zoneName } from "./format.ts";
import { HoldDialogs } from "./hold.tsx";
import { Age, Glyph, Missing, State, Theme } from "./parts.tsx";
import { address, base, go, isList, linkTo, path, query, route } from "./router.ts";
import { Bays } from "./screens/bays.tsx";
import { EventScreen } from "./screens/event.tsx";
import { Handover } from "./screens/handover.tsx";
import { Log } from "./screens/log.tsx";
import { Login, SessionEnded } from "./screens/login.tsx";
import { Now } from "./screens/now.tsx";
import { fleet, Sites } from "./screens/sites.tsx";
import { System } from "./screens/system.tsx";
import { Timeline } from "./screens/timeline.tsx";
import { VehicleScreen } from "./screens/vehicle.tsx";
import {
  chargers,
  connection,
  elsewhere,
  events,
  hasEnded,
  lostSince,
  now,
  person,
  refusal,
  signOut,
  status,
  vehicles,
  zone,
} from "./store.ts";
import { t } from "./texts.ts";

const TABS = [
  ["/", t.nav.now],
  ["/bays", t.nav.bays],
  ["/timeline", t.nav.timeline],
  ["/log", t.nav.log],
  ["/system", t.nav.system],
  ["/handover", t.nav.handover],
] as const;

export function App() {
  // A person without a session signs in, and then sees the screen that was asked for.
  useSignalEffect(() => {
    const isLogin = route.value.screen === "login";
    if (person.value === null && !hasEnded.value && !isLogin)
      go(`/login?to=${encodeURIComponent(address.value)}`, true);
    if (person.value != null && isLogin && !query.value.has("stay"))
      go(safePath(query.value.get("to")), true);
  });
  useSignalEffect(() => {
    document.title = [screenName(), status.value?.site ?? t.product].join(" · ");
  });
  const { screen } = route.value;
  return (
    <div class={`app screen-${screen}${connection.value === "lost" ? " is-lost" : ""}`}>
      <a class="skip" href="#main">
        {t.nav.skip}
      </a>
      <Strip />
      {!isList && <Tabs />}
      <Connection />
      <main id="main" tabIndex={-1}>
        <Screen />
      </main>
      {(person.value != null || hasEnded.value) && <HoldDialogs />}
      {hasEnded.value && <SessionEnded />}
    </div>
  );
}

/** Name of the open screen, as tabs, bookmarks and the history of the browser show it. */
function screenName(): string {
  const { value: shown } = route;
  switch (shown.screen) {
    case "vehicle":
      return vehicles.of(shown.id)?.name ?? shown.id;
    case "event":
      return events.of(shown.id)?.name ?? shown.id;
    case "login":
      return t.login.title;
    case "sites":
      return t.sites.title;
    case "missing":
      return t.missing;
    case "now":
    case "bays":
    case "timeline":
    case "log":
    case "system":
    case "handover":
      return t.nav[shown.screen];
  }
}

/** Only an address of this page: `//evil.example` is not one. */
const safePath = (to: string | null): string => (to !== null && /^\/(?![/\\])/.test(to) ? to : "/");

function Screen() {
  const shown = route.value;
  if (shown.screen === "login") return <Login />;
  if (shown.screen === "sites" && (person.value != null || hasEnded.value)) return <Sites />;
  if (elsewhere.value !== null) return <p class="quiet">{elsewhere.value}</p>;
  if ((person.value == null && !hasEnded.value) || (status.value === null && !isList))
    return <p class="quiet">{t.loading}</p>;
  switch (shown.screen) {
    case "now":
      return <Now />;
    case "bays":
      return <Bays />;
    case "vehicle":
      return <VehicleScreen key={shown.id} id={shown.id} />;
    case "event":
      return <EventScreen key={shown.id} id={shown.id} />;
    case "timeline":
      return <Timeline />;
    case "log":
      return <Log />;
    case "system":
      return <System />;
    case "handover":
      return <Handover />;
    case "sites":
    case "missing":
      return <Missing>{t.missing}</Missing>;
  }
}

/** Says that values are old. It is in place from the start, so that a screen reader announces the change. */
const Connection = () => (
  <div class="connection" role="status" aria-live="polite">
    {refusal.value !== "" && <p>{refusal.value}</p>}
    {connection.value === "lost" && (
      <p>
        <Glyph shape="triangle" />
        {t.connection.lost(span(now.value - (lostSince.value ?? now.value)))}
      </p>
    )}
  </div>
);

const Tabs = () => (
  <nav class="tabs" aria-label={t.nav.label}>
    {TABS.map(([to, label]) => (
      <a key={to} href={linkTo(to)} aria-current={isOpen(to) ? "page" : undefined}>
        {label}
      </a>
    ))}
  </nav>
);

const isOpen = (to: string): boolean => path.value === to;

/** The state of the site, on every screen. */
function Strip() {
  const current = status.value;
  return (
    <header class="strip" aria-label={t.strip.label}>
      <div class="strip-site">
        <strong>
          {current?.site ?? t.product}
          {base !== "" && <a href="/">{t.sites.title}</a>}
        </strong>
        {/* Before the sign-in only the clock of the browser is known. */}
        {(current !== null || isList) && <Clock />}
      </div>
      {current !== null && <Facts />}
      {fleet.value !== null && <FleetFacts fleet={fleet.value} />}
      <div class="strip-person">
        <Theme />
        <Who />
      </div>
    </header>
  );
}

function Clock() {
  const at = now.value;
  return (
    <span class="clock">
      <time dateTime={new Date(at).toISOString()}>{exactTime(zone.value, at)}</time>
      <small>
        {dayOf(zone.value, at)}, {zoneName(zone.value, at)}
      </small>
    </span>
  );
}

const Fact = ({
  label,
  shown,
  children,
}: {
  readonly label: string;
  readonly shown: Shown;
  readonly children?: ComponentChildren;
}) => (
  <div class="fact">
    <dt>{label}</dt>
    <dd>
      <State shown={shown} />
      {children !== undefined && <small>{children}</small>}
    </dd>
  </div>
);

/** Beyond this difference of the clocks, in ms, the clock is doubtful. */
const WORST_SKEW = 2000;

function Facts() {
  const current = status.value;
  if (current === null) return null;
  const { partner, webhook, broker, chargers: counted } = current;
  const live = liveChargers(current, chargers.all.value);
  const active = eventsNow(events.all.value, now.value).active.length;
  const skew = partner.skewMs;
  const skewText =
    skew === null
      ? t.strip.unknown
      : Math.abs(skew) < 1000
        ? t.strip.offset(Math.abs(skew))
        : t.strip.offsetSeconds((Math.abs(skew) / 1000).toFixed(1));
  return (
    <dl class="facts">
      <Fact label={t.strip.mode} shown={siteMode(current, active)} />
      <Fact
        label={t.strip.partner}
        shown={
          partner.ok
            ? good(t.strip.ok)
            : partner.answeredAt === null
              ? warn(t.strip.noAnswer)
              : bad(t.strip.failing)
        }
      >
        {webhook !== null && (
          <span>
            {t.strip.webhook} <Age at={partner.webhookAt} />
          </span>
        )}
        <span>
          {t.strip.poll} <Age at={partner.polledAt} />
        </span>
      </Fact>
      <Fact label={t.strip.broker} shown={broker.connected ? good(t.strip.ok) : bad(t.strip.down)} />
      <Fact
        label={t.strip.chargers}
        shown={
          live < counted.total
            ? warn(t.strip.live(live, counted.total))
            : good(t.strip.live(live, counted.total))
        }
      />
      <Fact
        label={t.strip.clock}
        shown={
          skew === null
            ? { word: skewText, shape: "ring", tone: "mute" }
            : Math.abs(skew) > WORST_SKEW
              ? bad(skewText)
              : good(skewText)
        }
      />
    </dl>
  );
}

/** The sites of a fleet in numbers. */
const FleetFacts = ({ fleet: { sites, unled, alarms, processes } }: { readonly fleet: Fleet }) => (
  <dl class="facts">
    <Fact label={t.sites.led} shown={(unled > 0 ? bad : good)(t.sites.ledOf(sites - unled, sites))} />
    <Fact label={t.sites.alarms} shown={(alarms > 0 ? warn : good)(String(alarms))} />
    <Fact label={t.sites.processes} shown={(processes.length === 0 ? bad : good)(String(processes.length))} />
  </dl>
);

function Who() {
  const { value } = person;
  if (value == null) return null;
  return (
    <span class="who">
      <span>{t.person.as(value.name, value.role)}</span>
      {value.via === "session" && (
        <button type="button" class="plain" onClick={() => void signOut()}>
          {t.person.signOut}
        </button>
      )}
    </span>
  );
}
