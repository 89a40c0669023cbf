import { batch, computed, signal } from "@preact/signals";

import { absent, get, problemText, Refused, remove, session, showTimesIn } from "./api.ts";
import type {
  Alarm,
  Charger,
  Departure,
  Hold,
  Person,
  Role,
  Site,
  StandInStatus,
  Status,
  Vehicle,
} from "./apiAnswers.ts";
import type { BrokersAway, SiteEvent } from "./derive.ts";
import { Collection, type Frame, FrameQueue, Stream } from "./live.ts";
import { base, browserWindow, isList, linkTo } from "./router.ts";

export const status = signal<Status | null>(null);
export const site = signal<Site | null>(null);
export const chargers = new Collection<Charger>(({ charger }) => charger);
export const vehicles = new Collection<Vehicle>(({ id }) => id);
export const events = new Collection<SiteEvent>(({ id }) => id);
export const holds = new Collection<Hold>(({ id }) => id);
export const alarms = new Collection<Alarm>(({ key }) => key);
export const departures = new Collection<Departure>(({ vehicle }) => vehicle);
/** Number of the newest row of the record that the stream sent. 0: none yet. */
export const lastSeq = signal(0);
/** False: this gateway has no departures. */
export const hasDepartures = signal(true);
/** Reason why this process of a fleet has no data of the site: another one leads it. Null: it has. */
export const elsewhere = signal<string | null>(null);

/** A text, which is equal to the one before: a new status must not draw every tile of a yard again. */
const awayAsText = computed(() => JSON.stringify(status.value?.broker.away ?? []));
export const brokersAway = computed((): BrokersAway => new Set<string>(JSON.parse(awayAsText.value)));

/** Undefined: not asked yet. Null: no person is signed in. */
export const person = signal<Person | null | undefined>(undefined);
/** True: the session ended while the page was open. What a person typed is kept until the next sign-in. */
export const hasEnded = signal(false);
const RANK: Readonly<Record<Role, number>> = { viewer: 0, operator: 1, integrator: 2 };
/** True: the person may do what needs this role. */
export const mayAct = (role: Role): boolean => person.value != null && RANK[person.value.role] >= RANK[role];

/** Reason why a button does nothing, for some seconds: a phone shows no title of it. */
export const refusal = signal("");
let refusalTimer = 0;
export function refuse(reason: string): void {
  refusal.value = reason;
  clearTimeout(refusalTimer);
  refusalTimer = setTimeout(() => (refusal.value = ""), 5000);
}

/** `live`: values are current. `lost`: the gateway does not answer, since `lostSince`. */
export const connection = signal<"connecting" | "live" | "lost">("connecting");
export const lostSince = signal<number | null>(null);

/** Clock of the gateway minus the clock of this browser, in ms. */
const ahead = signal(0);
const ticks = signal(Date.now());
/** The gateway's time, to the second. */
export const now = computed(() => ticks.value + ahead.value);
const MINUTE = 60_000;
/** The gateway's time, to the minute: for what must not be drawn again every second. */
export const thisMinute = computed(() => Math.floor(now.value / MINUTE) * MINUTE);
/** The list of a fleet has sites in many zones, so it shows the time of the browser. */
const ZONE_BEFORE = isList ? Intl.DateTimeFormat().resolvedOptions().timeZone : "UTC";
export const zone = computed(() => status.value?.timezone ?? ZONE_BEFORE);

/** Ms without a message after which the gateway is asked whether it lives. */
const QUIET = 1000;
/** Ms that this question may take. With QUIET and a tick of 1 s, a silent gateway is noticed within 4 s. */
const PROBE = 2000;
const RETRY = 1500;
let source: Stream | null = null;
let lastSign = 0;
let isProbing = false;

/** Signs of life: a message, or an answer. */
export function alive(): void {
  lastSign = performance.now();
  if (connection.value === "live") return;
  connection.value = "live";
  lostSince.value = null;
}

function lost(since = now.value): void {
  if (connection.value === "lost") return;
  lostSince.value = since;
  connection.value = "lost";
}

function apply({ kind, value }: Frame): void {
  switch (kind) {
    case "status":
      // The first one comes with the lists. Before them each screen would say that there is nothing.
      if (status.value !== null) setStatus(value);
      return;
    case "charger":
      chargers.put(value);
      return;
    case "vehicle":
      vehicles.put(value);
      return;
    case "event":
      events.put(value);
      return;
    case "hold":
      holds.put(value);
      return;
    case "alarm":
      alarms.put(value);
      return;
    case "audit":
      lastSeq.value = Math.max(lastSeq.value, value.seq);
      if (value.kind === "operator") void loadHolds().catch(() => undefined);
  }
}

const frames = new FrameQueue(apply, browserWindow);

/** `at`: the gateway's time as it answered. */
export const followClock = (at: string): void => void (ahead.value = Date.parse(at) - Date.now());

function setStatus(value: Status): void {
  followClock(value.now);
  showTimesIn(value.timezone);
  status.value = value;
}

export async function loadHolds(): Promise<void> {
  holds.load(await get<readonly Hold[]>("holds?limit=200").catch(absent([])));
}

export async function loadDepartures(): Promise<void> {
  departures.load(await get<readonly Departure[]>("departures").catch(absent([])));
}

/** Loads all lists. The stream sends only what changes. */
async function loadAll(): Promise<void> {
  const requestedAt = performance.now();
  const [stand, chargerList, vehicleList, eventList, holdList, alarmList, departureList, fixed] =
    await Promise.all([
      get<Status>("status"),
      get<readonly Charger[]>("chargers"),
      get<readonly Vehicle[]>("vehicles"),
      // The newest starts.
      get<readonly SiteEvent[]>("events?limit=200"),
      get<readonly Hold[]>("holds?limit=200").catch(absent([])),
      get<readonly Alarm[]>("alarms").catch(absent([])),
      get<readonly Departure[] | null>("departures").catch(absent(null)),
      get<Site>("site").catch(() => null),
    ]);
  batch(() => {
    setStatus(stand);
    chargers.load(chargerList, requestedAt);
    vehicles.load(vehicleList, requestedAt);
    events.load(eventList, requestedAt);
    holds.load(holdList, requestedAt);
    alarms.load(alarmList, requestedAt);
    hasDepartures.value = departureList !== null;
    departures.load(departureList ?? []);
    site.value = fixed;
    alive();
  });
}

/** Loads the lists, again after a failure. */
async function catchUp(): Promise<void> {
  try {
    await loadAll();
  } catch (error) {
    if (error instanceof Refused && error.status === 401) endSession();
    else setTimeout(() => source !== null && void catchUp(), RETRY);
  }
}

function open(): void {
  const stream = new Stream(linkTo("/api/v1/stream"), {
    // The gateway ends the stream of a session that lost its rights. The browser reconnects by itself.
    onOpen: () => {
      alive();
      elsewhere.value = null;
      void askAgain();
    },
    onReset: () => void catchUp(),
    onFrame: (frame) => {
      alive();
      frames.add(frame);
    },
    onError: () => {
      lost();
      if (!stream.isClosed || source !== stream) return;
      // Refused: signed out, or starting.
      stop();
      void leaveStandIn();
      setTimeout(() => void signedIn(), RETRY);
    },
  });
  source = stream;
}

/** A gateway that stands by now has another page, with a link to the leader. A process of a fleet names the leader. */
async function leaveStandIn(): Promise<void> {
  try {
    const found = await get<Status | StandInStatus>("status");
    if ("sentence" in found) location.reload();
  } catch (error) {
    if (base === "" || !(error instanceof Refused) || error.status !== 404) return;
    elsewhere.value = problemText(error);
    alive();
  }
}

function stop(): void {
  source?.close();
  source = null;
}

function endSession(): void {
  if (person.value != null) hasEnded.value = true;
  person.value = null;
  stop();
}

/** True: the question who this is is on its way. */
let isAsking = false;
/** Asks again who this is, after a refusal: the session has ended, or the role has changed. */
async function askAgain(): Promise<void> {
  if (isAsking || person.value == null) return;
  isAsking = true;
  await signedIn();
  isAsking = false;
}

/** Asks who this is. Starts or ends the live data accordingly. */
export async function signedIn(): Promise<void> {
  try {
    person.value = await get<Person>("session");
    hasEnded.value = false;
    if (isList) alive();
    else if (source === null) open();
  } catch (error) {
    if (error instanceof Refused && (error.status === 401 || error.status === 403)) {
      alive();
      endSession();
      return;
    }
    lost();
    setTimeout(() => void signedIn(), RETRY);
  }
}

/** A connection that dies without a word is found by a question. */
async function probe(): Promise<void> {
  if (isProbing || (source === null && !isList) || performance.now() - lastSign < QUIET) return;
  isProbing = true;
  try {
    await fetch("/readyz", { signal: AbortSignal.timeout(PROBE), cache: "no-store" });
    // A stream that reconnects is not live yet.
    if (isList || source?.isOpen === true) alive();
  } catch {
    lost();
  } finally {
    isProbing = false;
  }
}

/** Opens a dead stream anew. Behind a proxy that holds it back, the lists are loaded each time. */
function watchStream(): void {
  if (source?.isSilent === true) {
    lost(source.lastMessage + ahead.value);
    stop();
    open();
  } else if (source?.takeMute() === true) void loadAll().catch(() => undefined);
}

/** Starts the clock and the live data. */
export function start(): void {
  setInterval(() => {
    ticks.value = Date.now();
    watchStream();
    void probe();
  }, 1000);
  // Departures change with the plan, which the stream does not carry.
  setInterval(() => {
    if (source !== null && connection.value === "live" && hasDepartures.value)
      void loadDepartures().catch(() => undefined);
  }, 15_000);
  session.addEventListener("refused", () => void askAgain());
  void signedIn();
}

export async function signOut(): Promise<void> {
  await remove("session").catch(() => undefined);
  stop();
  person.value = null;
}
