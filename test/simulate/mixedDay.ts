import { below, chance, oneOf } from "../fuzz/chance.ts";
import { endsOnAFullDisk, LEVELS } from "./fullDisk.ts";
import {
  type Action,
  type CrashPoint,
  type Day,
  HOUR,
  MINUTE,
  type Misanswer,
  type PlannedAsk,
  type PlannedCharger,
  type PlannedEvent,
  type PlannedMake,
  type PlannedVehicle,
} from "./plan.ts";

type Random = () => number;

const EVENTS_AN_HOUR = 6;
const FAULTS_AN_HOUR = 15;
/** What was added later is drawn apart, so that a seed keeps the rest of its hours. */
/** Chargers that repeat that they are online. What a seed adds here is drawn apart. */
const GREETERS_AN_HOUR = 1;
const GREETING = 0x6e17;
const LATER = 0x1a7e;
/** So long before the end nothing goes wrong any more, and nothing is edited. */
const CALM = 40 * MINUTE;

/** Ten makes; whatever they can be told besides, these parameters place them. */
const MAKES: readonly ((place: number) => PlannedMake)[] = [
  (place) => amperesOnly("go-e-v2", { serial: String(100_000 + place) }, 1),
  (place) => amperesOnly("openevse-override", { base: `openevse-${place}` }, 1),
  (place) => amperesOnly("warp", { prefix: `warp3/${place}` }, 0.1),
  (place) => amperesOnly("openwb-secondary", { parentIp: "192.0.2.1", duo: String(place) }, 0.1),
  (place) => amperesOnly("evcc", { id: String(place) }, 0.1),
  (place) => amperesOnly("smartevse", { prefix: `SmartEVSE/${place}` }, 0.1),
  (place) => amperesOnly("victron-evcs", { portalId: `gx${place}` }, 1),
  (place) => takesWatts("everest-api-v1", { limitsModule: `limits${place}`, evseModule: `evse${place}` }),
  (place) => takesWatts("everest-api-legacy", { evse: `evse_manager_${place}` }),
  (place) => takesWatts("ocpp2mqtt", { base: `ocpp/charger${place}` }),
];

const amperesOnly = (profile: string, params: PlannedMake["params"], step: number): PlannedMake => ({
  profile,
  params,
  step,
  takesWatts: false,
});
const takesWatts = (profile: string, params: PlannedMake["params"]): PlannedMake => ({
  profile,
  params,
  step: 0.1,
  takesWatts: true,
});

/** Some hours of a depot whose chargers are of ten makes, one after another, drawn from their seed. */
export function mixedDay(seed: number, chargerCount: number, hours: number): Day {
  const random = chance(seed);
  const chargers = Array.from({ length: chargerCount }, (_, index) => aCharger(index, random));
  const vehicles = chargers.map(({ id }, index): PlannedVehicle => ({
    id: `v${index + 1}`,
    charger: id,
    maxCurrent: oneOf([null, null, 12.5, 20], random),
  }));
  const troubled = hours * HOUR - CALM;
  const greeting = chance(seed ^ GREETING);
  const some = (perHour: number): readonly number[] =>
    Array.from({ length: Math.ceil(hours * perHour) }, (_, n) => n);
  const actions = [
    ...some(EVENTS_AN_HOUR).flatMap((n) => lifeOf(`E${n + 1}`, troubled, vehicles, random)),
    ...some(FAULTS_AN_HOUR).map(() =>
      aFault(MINUTE + below(troubled - 5 * MINUTE, random), chargers, vehicles, random),
    ),
    ...endsOnAFullDisk(1, vehicles, troubled, chance(seed ^ LATER), LEVELS),
    ...some(GREETERS_AN_HOUR).map(() => aGreeter(chargers, troubled, greeting)),
  ];
  return {
    midnight: Date.parse("2026-11-21T00:00:00Z"),
    zone: "UTC",
    writtenIn: "UTC",
    seed,
    chargers,
    vehicles,
    knobs: {
      priority: "lower",
      priorityZero: "highest",
      ties: "newest",
      randomizedEnd: "shift",
      pollEvery: MINUTE,
      reports: false,
    },
    actions: actions.toSorted((a, b) => a.at - b.at),
    ends: hours * HOUR,
  };
}

function aCharger(index: number, random: Random): PlannedCharger {
  const make = MAKES[index % MAKES.length]?.(index + 1);
  return {
    id: `bay-${String(index + 1).padStart(3, "0")}`,
    maxCurrent: oneOf([16, 32], random),
    belowMinimum: oneOf(["pause", "pause", "hold"] as const, random),
    phases: oneOf([1, 3, 3], random),
    tells: false,
    ...(make === undefined ? {} : { make }),
  };
}

const told = (at: number): { readonly at: number; readonly deliveries: readonly number[] } => ({
  at,
  deliveries: [500],
});

/** A charger that says again and again that it is online, for up to half of the day. */
function aGreeter(chargers: readonly PlannedCharger[], until: number, random: Random): Action {
  const at = MINUTE + below(until / 2, random);
  const lasts = 5 * MINUTE + below(until / 2, random);
  return {
    kind: "greets",
    at,
    charger: oneOf(chargers, random).id,
    every: 5_000 + below(25_000, random),
    lasts,
  };
}

/** Told by webhook at once: who is told late is what other days are for. */
function lifeOf(
  id: string,
  until: number,
  vehicles: readonly PlannedVehicle[],
  random: Random,
): readonly Action[] {
  const at = MINUTE + below(until - 10 * MINUTE, random);
  const event: PlannedEvent = {
    id,
    start: Math.max(0, at - (at % 1000) + MINUTE * (below(30, random) - 5)),
    duration: MINUTE * oneOf([1, 5, 15, 30, 60], random),
    spread: MINUTE * oneOf([0, 0, 1, 5], random),
    priority: oneOf([null, 1, 2, 3], random),
    ask: anAsk(random),
    vehicles: vehicles.map((vehicle) => vehicle.id).filter(() => random() < 0.4),
    reports: [],
  };
  const later = Math.min(at + MINUTE * below(40, random) + 5_000, until);
  const put = { kind: "put", sameTime: false } as const;
  switch (oneOf(["stands", "stands", "changes", "ends"], random)) {
    case "changes":
      return [
        { ...put, ...told(at), event },
        { ...put, ...told(later), event: { ...event, ask: anAsk(random) } },
      ];
    case "ends":
      return [
        { ...put, ...told(at), event },
        { kind: "withdraw", ...told(later), id },
      ];
    default:
      return [{ ...put, ...told(at), event }];
  }
}

const anAsk = (random: Random): PlannedAsk =>
  oneOf<PlannedAsk>(
    [
      { kind: "current", amperes: below(340, random) / 10 },
      { kind: "current", amperes: below(20, random) },
      { kind: "power", kilowatts: below(230, random) / 10 },
    ],
    random,
  );

const MISANSWERS: readonly Misanswer[] = ["silent", "error", "slow"];

function aFault(
  at: number,
  chargers: readonly PlannedCharger[],
  vehicles: readonly PlannedVehicle[],
  random: Random,
): Action {
  const lasts = 500 + below(oneOf([5_000, MINUTE, 3 * MINUTE], random), random);
  const { id: charger } = oneOf(chargers, random);
  const kind = oneOf(
    [
      "crash",
      "brokerGone",
      "linkLost",
      "brokerSlow",
      "unruly",
      "partner",
      "disk",
      "reboot",
      "reboot",
      "deaf",
      "lies",
      "mute",
      "plug",
    ] as const,
    random,
  );
  switch (kind) {
    case "crash":
      return {
        kind,
        at,
        downFor: lasts,
        point: oneOf<CrashPoint>(["at once", "after a commit", "after a publish"], random),
      };
    case "partner":
      return { kind, at, lasts, how: oneOf<Misanswer>(MISANSWERS, random) };
    case "disk":
      return { kind, at, lasts, how: oneOf(["full", "slow"] as const, random) };
    case "plug":
      return { kind, at, charger, vehicle: oneOf([oneOf(vehicles, random).id, "stranger", null], random) };
    case "reboot":
    case "deaf":
    case "lies":
    case "mute":
      return { kind, at, charger, lasts };
    case "brokerGone":
    case "linkLost":
    case "brokerSlow":
    case "unruly":
      return { kind, at, lasts };
  }
}
