import { below, chance, oneOf } from "../fuzz/chance.ts";
import { endsOnAFullDisk } from "./fullDisk.ts";
import {
  type Action,
  type Calendar,
  CALM_FROM,
  DAY,
  type CrashPoint,
  type Day,
  HOUR,
  MINUTE,
  type Misanswer,
  type PlannedAsk,
  type PlannedCharger,
  type PlannedEvent,
  type PlannedReport,
  type PlannedVehicle,
} from "./plan.ts";

import type { Misidentity } from "./simIdentity.ts";
import type { Mistake } from "./simTray.ts";

type Random = () => number;

const FAULTS_A_DAY = 60;
/** The longest ends before the night. */
const FAULTS_UNTIL = CALM_FROM - 30 * MINUTE;
const EVENTS_PER_CHARGER = 4;
const LONGEST_SLEEP = 20 * MINUTE;
/** A gateway without the time may be down for 10 min, and be excused for 100 min after it is back. */
const NO_TIME_UNTIL = DAY - 111 * MINUTE;
const ENDS_ON_A_FULL_DISK = 2;
const GREETERS = 2;
/** What was added later is drawn apart, so that a seed keeps the rest of its day. */
const LATER = 0x1a7e;

/** The whole day, drawn from its seed before any of it is played. */
export function dayFrom(
  seed: number,
  chargerCount: number,
  calendar: Calendar = { midnight: Date.parse("2026-11-21T00:00:00Z"), zone: "UTC", writtenIn: "UTC" },
): Day {
  const random = chance(seed);
  const chargers = Array.from({ length: chargerCount }, (_, index) => aCharger(index, random));
  const vehicles = [
    ...chargers.map(({ id }, index) => aVehicle(`v${index + 1}`, id, random)),
    aVehicle("rover", null, random),
  ];
  const events = Array.from({ length: 6 + EVENTS_PER_CHARGER * chargerCount }, (_, index) =>
    lifeOf(`E${index + 1}`, vehicles, random),
  );
  const turningPoints = events.flat().flatMap((action) => boundariesOf(action));
  const faults = Array.from({ length: FAULTS_A_DAY }, () => {
    const at = random() < 0.5 ? aMoment(random, FAULTS_UNTIL) : near(turningPoints, random);
    return aFault(at, chargers, vehicles, random);
  });
  const knobs = {
    priority: oneOf(["lower", "lower", "higher"] as const, random),
    priorityZero: oneOf(["highest", "unset"] as const, random),
    ties: oneOf(["newest", "newest", "mostRestrictive"] as const, random),
    randomizedEnd: oneOf(["shift", "shift", "clip"] as const, random),
    pollEvery: oneOf([MINUTE, MINUTE, 5 * MINUTE], random),
    reports: oneOf([true, false, false], random),
  };
  const later = chance(seed ^ LATER);
  const actions = [
    ...events.flat(),
    ...faults,
    ...endsOnAFullDisk(ENDS_ON_A_FULL_DISK, vehicles, FAULTS_UNTIL, later),
    ...Array.from({ length: GREETERS }, () => aGreeter(chargers, later)).flat(),
  ].toSorted((a, b) => a.at - b.at);
  return { ...calendar, seed, chargers, vehicles, knobs, actions };
}

/** What is worth breaking something at: a change, and the start and the end of what it asks for. */
const boundariesOf = (action: Action): readonly number[] =>
  action.kind === "put"
    ? [action.at, action.event.start, action.event.start + action.event.duration]
    : [action.at];

const near = (turningPoints: readonly number[], random: Random): number =>
  Math.min(Math.max(oneOf(turningPoints, random) + below(MINUTE, random) - MINUTE / 2, MINUTE), FAULTS_UNTIL);

const aCharger = (index: number, random: Random): PlannedCharger => ({
  id: `bay-${String(index + 1).padStart(2, "0")}`,
  maxCurrent: oneOf([16, 32, 32, 63], random),
  belowMinimum: oneOf(["pause", "pause", "hold"] as const, random),
  phases: oneOf([1, 3, 3], random),
  tells: random() < 0.7,
});

const aVehicle = (id: string, charger: string | null, random: Random): PlannedVehicle => ({
  id,
  charger,
  maxCurrent: oneOf([null, null, 12.5, 20], random),
});

/** A moment that leaves the night calm. */
const aMoment = (random: Random, latest = CALM_FROM): number => MINUTE + below(latest - MINUTE, random);

/** An event from its first word to its last: put, edited some times before, during and after, perhaps withdrawn and back. */
function lifeOf(id: string, vehicles: readonly PlannedVehicle[], random: Random): readonly Action[] {
  const first = anEvent(id, aMoment(random, CALM_FROM - 2 * HOUR), vehicles, random);
  const actions: Action[] = [put(first.said, first.event, random)];
  let at = first.said;
  let event = first.event;
  for (let edits = below(4, random); edits > 0; edits -= 1) {
    at += aGap(event, at, random);
    if (at >= CALM_FROM) break;
    if (random() < 0.25) {
      actions.push({ kind: "withdraw", at, id, deliveries: deliveriesBy(at, random) });
    } else {
      event = edited(event, at, vehicles, random);
      actions.push(put(at, event, random));
    }
  }
  return actions;
}

function put(at: number, event: PlannedEvent, random: Random): Action {
  return { kind: "put", at, event, sameTime: random() < 0.03, deliveries: deliveriesBy(at, random) };
}

/** Often right before something: a start, an end, or shortly after the last edit. */
function aGap(event: PlannedEvent, at: number, random: Random): number {
  const left = event.start + event.duration - at;
  return oneOf(
    [
      1 + below(5_000, random),
      1 + below(20 * MINUTE, random),
      Math.max(1, event.start - at + below(2 * MINUTE, random) - MINUTE),
      Math.max(1, left + below(2 * MINUTE, random) - MINUTE),
      1 + below(Math.max(1, left), random),
    ],
    random,
  );
}

/** Mostly once and soon; sometimes again, late, or never. */
function deliveriesBy(at: number, random: Random): readonly number[] {
  const soon = 100 + below(900, random);
  const late = below(15 * MINUTE, random);
  const all = oneOf([[soon], [soon], [soon], [soon, soon + 20], [soon, late], [late], []], random);
  return all.filter((delay) => at + delay < CALM_FROM);
}

function anEvent(
  id: string,
  said: number,
  vehicles: readonly PlannedVehicle[],
  random: Random,
): { readonly said: number; readonly event: PlannedEvent } {
  const event = {
    id,
    start: wholeSecond(said + below(3 * HOUR, random) - 30 * MINUTE),
    duration: aDuration(random),
    spread: aSpread(random),
    priority: oneOf([null, 0, 1, 1, 2, 3], random),
    ask: anAsk(random),
    vehicles: someOf(vehicles, random),
    reports: someReports(random),
  };
  return { said, event };
}

function edited(
  event: PlannedEvent,
  at: number,
  vehicles: readonly PlannedVehicle[],
  random: Random,
): PlannedEvent {
  switch (
    oneOf(["ask", "ask", "duration", "start", "vehicles", "spread", "priority", "reports", "again"], random)
  ) {
    case "ask":
      return { ...event, ask: anAsk(random) };
    case "duration":
      return { ...event, duration: aDuration(random) };
    case "start":
      return { ...event, start: wholeSecond(at + below(HOUR, random) - 20 * MINUTE) };
    case "vehicles":
      return { ...event, vehicles: someOf(vehicles, random) };
    case "spread":
      return { ...event, spread: aSpread(random) };
    case "priority":
      return { ...event, priority: oneOf([null, 0, 1, 2, 3], random) };
    case "reports":
      return { ...event, reports: someReports(random) };
    default:
      return event;
  }
}

const wholeSecond = (ms: number): number => Math.max(0, Math.round(ms / 1000) * 1000);
const aDuration = (random: Random): number =>
  random() < 0.05
    ? 0
    : MINUTE * oneOf([1, 5, 15, 30, 60, 120, 240], random) + wholeSecond(below(MINUTE, random));
const aSpread = (random: Random): number => MINUTE * oneOf([0, 0, 0, 1, 5, 10, 30], random);

function anAsk(random: Random): PlannedAsk {
  const kind = oneOf(["current", "current", "current", "power", "power", "unknown"] as const, random);
  switch (kind) {
    case "current":
      return { kind, amperes: below(400, random) / 10 };
    case "power":
      return { kind, kilowatts: below(250, random) / 10 };
    case "unknown":
      return random() < 0.5 ? { kind } : { kind: "current", amperes: 0 };
  }
}

/** Mostly one on the whole event; some at each quarter of an hour, some in advance. */
function someReports(random: Random): readonly PlannedReport[] {
  const once = { payloadType: "USAGE", historical: true, numIntervals: -1, repeat: 0 };
  const steady = { ...once, numIntervals: 1, repeat: -1 };
  const ahead = { ...once, payloadType: "SETPOINT", historical: false };
  return oneOf([[], [once], [once], [steady], [once, ahead], [{ ...once, payloadType: "DEMAND" }]], random);
}

function someOf(vehicles: readonly PlannedVehicle[], random: Random): readonly string[] {
  const ids = vehicles.map(({ id }) => id).filter(() => random() < 0.6);
  return random() < 0.1 ? [...ids, "somebody-else"] : ids;
}

function aFault(
  at: number,
  chargers: readonly PlannedCharger[],
  vehicles: readonly PlannedVehicle[],
  random: Random,
): Action {
  const lasts = 500 + below(oneOf([5_000, MINUTE, 10 * MINUTE, 25 * MINUTE], random), random);
  const charger = oneOf(chargers, random).id;
  const kind = oneOf(
    [
      ...([
        "crash",
        "crash",
        "crash",
        "crash",
        "crash",
        "crash",
        "brokerGone",
        "linkLost",
        "brokerSlow",
        "unruly",
      ] as const),
      ...(["partner", "partner", "identity", "tray", "tray", "noTime", "suspend"] as const),
      ...(["reboot", "reboot", "deaf", "lies", "mute"] as const),
      ...(["plug", "plug", "plug", "plug", "clock", "disk", "disk"] as const),
    ],
    random,
  );
  switch (kind) {
    case "crash":
      return { kind, at, point: aPoint(random), downFor: below(oneOf([1_000, 10 * MINUTE], random), random) };
    case "partner":
      return { kind, at, lasts, how: oneOf<Misanswer>(MISANSWERS, random) };
    case "identity":
      return { kind, at, lasts, how: oneOf<Misidentity>(MISIDENTITIES, random) };
    case "tray":
      return { kind, at, lasts, how: oneOf<Mistake>(MISTAKES, random) };
    case "noTime":
      return {
        kind,
        at: Math.min(at, NO_TIME_UNTIL),
        lasts,
        downFor: below(oneOf([1_000, 10 * MINUTE], random), random),
      };
    case "suspend":
      return { kind, at: Math.min(at, FAULTS_UNTIL - LONGEST_SLEEP), lasts: Math.min(lasts, LONGEST_SLEEP) };
    case "reboot":
    case "deaf":
    case "lies":
    case "mute":
      return { kind, at, charger, lasts };
    case "plug": {
      const guests = [...vehicles.map(({ id }) => id), "rover", "stranger", null, null];
      return { kind, at, charger, vehicle: oneOf(guests, random) };
    }
    case "clock":
      return { kind, at, lasts, by: oneOf([3_000, -3_000, 45 * MINUTE, -45 * MINUTE, -200_000], random) };
    case "disk":
      return { kind, at, lasts, how: oneOf(["full", "broken", "doubtful", "slow"] as const, random) };
    case "brokerGone":
    case "linkLost":
    case "brokerSlow":
    case "unruly":
      return { kind, at, lasts };
  }
}

/** One that repeats for hours that it is online; and half of them ignore commands for a time. */
function aGreeter(chargers: readonly PlannedCharger[], random: Random): readonly Action[] {
  const lasts = HOUR + below(2 * HOUR, random);
  const at = aMoment(random, FAULTS_UNTIL - lasts);
  const { id: charger } = oneOf(chargers, random);
  const greets: Action = { kind: "greets", at, charger, every: 5_000 + below(25_000, random), lasts };
  const deaf: Action = { kind: "deaf", at: at + 20 * MINUTE, charger, lasts: 25 * MINUTE };
  return random() < 0.5 ? [greets] : [greets, deaf];
}

const MISANSWERS: readonly Misanswer[] = [
  "silent",
  "error",
  "garbage",
  "empty",
  "partial",
  "slow",
  "unauthorized",
  "throttled",
];
const MISIDENTITIES: readonly Misidentity[] = ["silent", "error", "refuses", "short"];
const MISTAKES: readonly Mistake[] = ["lost", "silent", "error", "refuses", "gone", "forbids", "busy"];

const aPoint = (random: Random): CrashPoint =>
  oneOf<CrashPoint>(
    [
      "at once",
      "before a commit",
      "after a commit",
      "before a publish",
      "after a publish",
      { turns: 1 + below(40, random) },
    ],
    random,
  );
