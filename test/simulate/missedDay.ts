import { aDay, asked, time } from "./aDay.ts";
import {
  type Action,
  type Day,
  MINUTE,
  type PlannedAsk,
  type PlannedCharger,
  type PlannedMake,
} from "./plan.ts";

export interface Make extends PlannedMake {
  /** It is on at its full current, or off. */
  readonly isRelay?: true;
  readonly switchesPhases?: true;
}

const of = (
  profile: string,
  params: PlannedMake["params"],
  step: number,
  more: Partial<Make> = {},
): Make => ({
  profile,
  params,
  step,
  takesWatts: false,
  ...more,
});
const WATTS = { takesWatts: true } as const;
const SWITCHES = { switchesPhases: true } as const;

/** Every make that has a profile. */
export const EVERY_MAKE: readonly Make[] = [
  of("go-e-v2", { serial: "100001" }, 1, SWITCHES),
  of("openevse-override", { base: "openevse-a7d4" }, 1),
  of("openevse-claim", { base: "openevse-a7d4" }, 1),
  of("warp", { prefix: "warp3/AbCd" }, 0.1, SWITCHES),
  of("openwb-secondary", { duo: "0" }, 0.1, SWITCHES),
  of("openwb-simpleapi", { id: "1" }, 1),
  of("openwb-1.9", { id: "1" }, 1, SWITCHES),
  of("openwb-mqtt-chargepoint", { id: "1" }, 0.1, SWITCHES),
  of("evcc", { id: "1" }, 0.1, SWITCHES),
  of("everest-api-legacy", { evse: "evse_manager" }, 0.1, { ...WATTS, ...SWITCHES }),
  of("everest-api-v1", { limitsModule: "limits", evseModule: "evse" }, 0.1, WATTS),
  of("smartevse", { prefix: "SmartEVSE/1" }, 0.1, SWITCHES),
  of("victron-evcs", { portalId: "gx1" }, 1),
  of("wallbox-mqtt-bridge", { serial: "123" }, 1),
  of("wbec", { lp: "1" }, 0.1),
  of("pulsatrix", { clientId: "c1" }, 0.1, WATTS),
  of("greencell-habuden", { serial: "S1" }, 1),
  of("ocpp2mqtt", { base: "ocpp/charger1" }, 0.1, WATTS),
  of("tasmota-switch", { topic: "plug" }, 0.1, { isRelay: true }),
  of("shelly-gen2-switch", { prefix: "shelly1" }, 0.1, { isRelay: true }),
  of("twcmanager", { twc: "AB12", ownAction: "1" }, 1),
  of("e3dc-rscp2mqtt", {}, 1),
];

const MOST = 16;
const A = (amperes: number): PlannedAsk => ({ kind: "current", amperes });
/** Less than a charger can: a pause. */
const PAUSE = A(4.7);

type Span = readonly [from: string, until: string, ask: PlannedAsk];

const AT = "00:20";
/** Events by the command that a charger misses at 00:20. */
const MISSED: Readonly<Record<string, readonly Span[]>> = {
  pause: [[AT, "01:00", PAUSE]],
  level: [[AT, "01:00", A(10)]],
  reduction: [
    ["00:10", AT, A(12)],
    [AT, "01:00", A(8)],
  ],
  resume: [
    ["00:10", AT, PAUSE],
    [AT, "01:00", A(MOST)],
  ],
  "release-of-pause": [["00:10", AT, PAUSE]],
  "release-of-level": [["00:10", AT, A(10)]],
};
const OF_A_RELAY: readonly string[] = ["pause", "resume", "release-of-pause"];

/** The charger is away from so long before the command, ms. */
const BEFORE = 1_500;
const LASTING = [
  ["3s", 3_000],
  ["30s", 30_000],
  ["10min", 10 * MINUTE],
] as const;

/** A broker misses a charger without power after one and a half keepalives, ms. */
const MISSED_AFTER = 45_000;

/** Off, or only cut off: then it goes on as it was told. */
const outage = (charger: string, at: string, lasts: number, isCutOff: boolean): Action => ({
  kind: "reboot",
  at: time(at) - BEFORE,
  charger,
  lasts: lasts + BEFORE,
  ...(isCutOff ? { forgets: false } : { willAfter: MISSED_AFTER }),
});

/**
 * Bays of one make. Each misses another command, for another time. Its vehicle is there, or left before and comes two minutes
 * after the charger is back. Every other charger is only cut off.
 */
export function missedDay(make: Make): Day {
  const cases = Object.keys(MISSED)
    .filter((missed) => make.isRelay !== true || OF_A_RELAY.includes(missed))
    .flatMap((missed, row) =>
      LASTING.flatMap(([name, lasts], column) =>
        [false, true].map((isEmpty) => ({
          missed,
          lasts,
          isEmpty,
          id: `${missed}-${name}${isEmpty ? "-empty" : ""}`,
          isCutOff: (row + column + Number(isEmpty)) % 2 === 0,
        })),
      ),
    );
  const events = Object.entries(MISSED).flatMap(([missed, spans]) =>
    spans.map(([from, until, ask], index) => {
      const vehicles = cases.flatMap((one) => (one.missed === missed ? [vehicleAt(one.id)] : []));
      return asked(`${missed}-${index}`, from, until, { ask, vehicles });
    }),
  );
  const actions = cases.flatMap(({ id, lasts, isEmpty, isCutOff }): readonly Action[] => [
    outage(id, AT, lasts, isCutOff),
    ...(isEmpty
      ? [plug(id, time("00:15"), null), plug(id, time(AT) + lasts + 2 * MINUTE, vehicleAt(id))]
      : []),
  ]);
  const { switchesPhases: _, ...onThree } = make;
  return { ...depot(onThree, cases, [...events, ...actions]), ends: time("00:36") };
}

/** When the charger is away, by the step of the switch that it misses. */
const STEPS: Readonly<Record<string, string>> = {
  pause: "00:05",
  switch: "00:05:10",
  level: "00:06:10",
  release: "00:25",
};

/** W per phase that an event asks for: too little for three phases. */
export const ON_ONE_PHASE = 2_300;

/** When a bay is judged, ms of the day. Null: never under this event. */
interface Judged {
  readonly id: string;
  readonly under: number | null;
  readonly free: number;
}

/** A charger that returns has so long for what it missed, ms. */
const SETTLES = 3 * MINUTE;

/** Bays of one make that switch to one phase from 00:05 to 00:25. Each misses another step. */
export function switchingDay(make: Make): { readonly day: Day; readonly judged: readonly Judged[] } {
  const cases = Object.entries(STEPS).flatMap(([step, at], row) =>
    LASTING.map(([name, lasts], column) => ({
      id: `${step}-${name}`,
      at,
      lasts,
      isCutOff: (row + column) % 2 === 0,
    })),
  );
  const event = asked("E1", "00:05", "00:25", {
    ask: { kind: "power", kilowatts: ON_ONE_PHASE / 1_000 },
    vehicles: cases.map(({ id }) => vehicleAt(id)),
  });
  const outages = cases.map(({ id, at, lasts, isCutOff }) => outage(id, at, lasts, isCutOff));
  const day = depot(make, cases, [event, ...outages]);
  const judged = cases.map(({ id, at, lasts }) => {
    const [back, ends] = [time(at) + lasts + SETTLES, time("00:25")];
    return {
      id,
      under: back < ends ? Math.max(back, time("00:08")) : null,
      free: Math.max(back, ends + SETTLES),
    };
  });
  return { day: { ...day, ends: time("00:40") }, judged };
}

const vehicleAt = (charger: string): string => `v-${charger}`;

const plug = (charger: string, at: number, vehicle: string | null): Action => ({
  kind: "plug",
  at,
  charger,
  vehicle,
});

function depot(
  { switchesPhases, ...make }: Make,
  bays: readonly { readonly id: string }[],
  actions: readonly Action[],
): Day {
  const chargers = bays.map(({ id }): PlannedCharger => ({
    id,
    maxCurrent: MOST,
    belowMinimum: "pause",
    phases: 3,
    tells: false,
    make,
    ...(switchesPhases === true ? { switchesPhases } : {}),
  }));
  const vehicles = bays.map(({ id }) => ({ id: vehicleAt(id), charger: id, maxCurrent: null }));
  return { ...aDay(actions), chargers, vehicles };
}
