import type { Ask, Charger, Departure, Level, Setpoint } from "./apiAnswers.ts";
import { t } from "./texts.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const formatters = new Map<string, Intl.DateTimeFormat>();

/** Formats a moment in the zone of the site. Formatters are slow to make, so they are kept. */
function inZone(zone: string, at: number, options: Intl.DateTimeFormatOptions): string {
  const key = `${zone} ${JSON.stringify(options)}`;
  let formatter = formatters.get(key);
  if (formatter === undefined) {
    formatter = new Intl.DateTimeFormat("en-GB", { timeZone: zone, hourCycle: "h23", ...options });
    formatters.set(key, formatter);
  }
  return formatter.format(at);
}

/** `05:40`. */
export const clockTime = (zone: string, at: number): string =>
  inZone(zone, at, { hour: "2-digit", minute: "2-digit" });

/** `05:40:12`. */
export const exactTime = (zone: string, at: number): string =>
  inZone(zone, at, { hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** `Mon 23 Nov`. */
export const dayOf = (zone: string, at: number): string =>
  inZone(zone, at, { weekday: "short", day: "numeric", month: "short" });

/** Day of a moment, `YYYY-MM-DD`. */
export const dateOf = (zone: string, at: number): string =>
  inZone(zone, at, { year: "numeric", month: "2-digit", day: "2-digit" }).split("/").toReversed().join("-");

/** Name and offset of the zone at a moment: `Europe/Oslo, GMT+1`. The offset tells the two hours at a change apart. */
export function zoneName(zone: string, at: number): string {
  const offset = offsetName(zone, at);
  return zone === "UTC" ? zone : `${zone}, ${offset}`;
}

/** `GMT+1`. */
export const offsetName = (zone: string, at: number): string =>
  inZone(zone, at, { hour: "2-digit", timeZoneName: "shortOffset" }).split(" ").at(-1) ?? "";

/** `05:40`, with the weekday on another day than now, and the date where weekdays are not clear. A time that the clocks show twice has its offset. */
export function nearTime(zone: string, at: number, now: number): string {
  const clock = clockTime(zone, at);
  const time = isShownTwice(zone, at, clock) ? `${clock} ${offsetName(zone, at)}` : clock;
  if (dayOf(zone, at) === dayOf(zone, now)) return time;
  const isNear = Math.abs(at - now) < 6 * DAY;
  return `${isNear ? inZone(zone, at, { weekday: "short" }) : dayOf(zone, at)} ${time}`;
}

/** True in the two hours around clocks that are set back by one. */
const isShownTwice = (zone: string, at: number, clock: string): boolean =>
  clockTime(zone, at - HOUR) === clock || clockTime(zone, at + HOUR) === clock;

/**
 * The next moment at which the clocks of the zone show `HH:MM`. Searched by minute, so that a change of the clocks counts.
 * A time that they skip is an hour later on the clock.
 */
export function nextTime(zone: string, now: number, clock: string): number {
  const first = Math.ceil((now + 1) / MINUTE) * MINUTE;
  for (let at = first; at < first + DAY; at += MINUTE) if (clockTime(zone, at) === clock) return at;
  const [hour, minute = "00"] = clock.split(":");
  return nextTime(zone, now, `${String((Number(hour) + 1) % 24).padStart(2, "0")}:${minute}`);
}

/** The next moments at which the clocks of the zone show `HH:MM`, one for each day. */
export function nextTimes(zone: string, now: number, clock: string, days: number): readonly number[] {
  const all = [nextTime(zone, now, clock)];
  // A day has 23 to 25 hours.
  while (all.length < days) all.push(nextTime(zone, (all.at(-1) ?? now) + 22 * HOUR, clock));
  return all;
}

/** A message as the beginning of a sentence. An id keeps its spelling. */
export const sentence = (message: string): string =>
  message.replace(
    /^(the|it|nothing|over|messages|webhook|reports|alarms|nobody|our|deliveries) /,
    (word) => word.charAt(0).toUpperCase() + word.slice(1),
  );

/** Rows of one kind that are written out. */
const MOST_OF_KIND = 10;

/** Rows by kind, in the order of the first of each: some to be written out, and the rest to be named only. */
export const foldKinds = <T>(
  all: readonly T[],
  kindOf: (each: T) => string,
): readonly { readonly written: readonly T[]; readonly rest: readonly T[] }[] =>
  [...Map.groupBy(all, kindOf).values()].map((kind) => ({
    written: kind.slice(0, MOST_OF_KIND),
    rest: kind.slice(MOST_OF_KIND),
  }));

/** A moment in UTC, as the gateway writes it. */
const MOMENT = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;

/** Details of a problem in one sentence. Its moments are those of the clock of the site. */
export function problemDetail(
  zone: string,
  now: number,
  detail: string,
  errors: readonly { readonly path: string; readonly expected: string }[],
): string {
  // The detail names the first fault, or all of them.
  const more = errors.filter(({ expected }) => !detail.includes(expected));
  return [detail, ...more.map(({ path, expected }) => `${path}: ${expected}`)]
    .filter((text) => text !== "")
    .join("; ")
    .replaceAll(MOMENT, (moment) => nearTime(zone, Date.parse(moment), now));
}

/**
 * Why a request to change something failed. `status`: of the answer, 0 without one. Null: nothing was sent. A problem with
 * 503 begins with what is known of the change.
 */
export function failedChange(status: number | null, problem: string): string {
  if (status === 503) return sentence(problem);
  // An answer of a proxy, or a bug, proves nothing.
  const isUnsure = status === 0 || (status ?? 0) >= 500;
  return `${isUnsure ? t.hold.unsure : t.hold.failed}: ${problem}`;
}

/** A span for people: `4 s`, `12 min`, `3 h 20 min`, `2 d`. */
export function span(ms: number): string {
  const length = Math.abs(ms);
  if (length < 2 * MINUTE) return `${Math.round(length / SECOND)} s`;
  if (length < 2 * HOUR) return `${Math.round(length / MINUTE)} min`;
  if (length < 2 * DAY) {
    const rounded = Math.round(length / MINUTE);
    const [hours, minutes] = [Math.floor(rounded / 60), rounded % 60];
    return minutes === 0 ? `${hours} h` : `${hours} h ${minutes} min`;
  }
  return `${Math.round(length / DAY)} d`;
}

/** Rounded so that the number keeps its width: `16 A`, `10.7 A`. */
export const amps = (value: number): string => `${trim(value)} A`;

/** `31 ms`. */
export const delayText = (ms: number | null): string => (ms === null ? "–" : `${ms} ms`);

/** `11.0 kW`. */
export const kilowatts = (watts: number): string => `${(watts / 1000).toFixed(1)} kW`;

/** `18 kWh`. */
export const kilowattHours = (wh: number): string => `${(wh / 1000).toFixed(wh < 10_000 ? 1 : 0)} kWh`;

/** `71 %`. */
export const percent = (value: number): string => `${Math.round(value)} %`;

const trim = (value: number): string => (Math.round(value * 10) / 10).toString();

export function setpointText(setpoint: Setpoint | null): string {
  if (setpoint === null) return t.level.none;
  const { kind, value } = setpoint;
  switch (kind) {
    case "release":
      return t.level.release;
    case "pause":
      return t.level.pause;
    case "current":
      return amps(value ?? 0);
    case "power":
      return kilowatts(value ?? 0);
  }
}

export function levelText(level: Level | null): string {
  if (level === null) return t.level.none;
  if (level.pause === true) return t.level.pause;
  if (level.currentA !== undefined) return amps(level.currentA);
  if (level.powerW !== undefined) return kilowatts(level.powerW);
  return t.level.release;
}

/** The level that an event asks for. Powers of events are in kW. */
export function askText(ask: Ask | undefined): string {
  if (ask === undefined) return t.level.none;
  switch (ask.kind) {
    case "current":
      return amps(ask.level);
    case "power":
      return `${trim(ask.level)} kW`;
    case "unknown":
      return ask.payloadType;
  }
}

/** Current of the most loaded phase. Null: not reported. */
export const loadedPhase = (currents: readonly number[] | null | undefined): number | null =>
  currents === null || currents === undefined || currents.length === 0 ? null : Math.max(...currents);

/** A member of a revision of an event. */
export function revisedText(zone: string, what: string, value: string | number | null): string {
  if (value === null) return t.level.none;
  if (what === "start" || what === "end") return exactTime(zone, Date.parse(String(value)));
  if (what === "randomizeStartMs") return span(Number(value));
  return String(value);
}

/** Measured current, or else power, of a charger. */
export function drawnText(measured: Charger["measured"]): string {
  const current = loadedPhase(measured?.currentsA);
  if (current !== null) return amps(current);
  return measured?.powerW == null ? "–" : kilowatts(measured.powerW);
}

export const NEEDS = ["soc", "energy", "stays", "weekly"] as const;
type Needed = (typeof NEEDS)[number];

/** The need of a departure as the fields of a form show it. Without a departure: what can be measured. */
export function needOf(known: Departure | undefined, hasSoc: boolean): { needed: Needed; amount: string } {
  if (known === undefined) return { needed: hasSoc ? "soc" : "energy", amount: "" };
  return "soc" in known.need
    ? { needed: "soc", amount: String(known.need.soc) }
    : { needed: "energy", amount: String(known.need.energyWh / 1000) };
}

/** Departure that is set for a vehicle, as a text for comparison. The forecast changes all the time and is left out. */
export const setText = (known: Departure | undefined): string =>
  JSON.stringify([known?.at, known?.need, known?.source, known?.by]);
