import type { Action, CrashPoint, Day, PlannedAsk, PlannedEvent } from "./plan.ts";

/** "08:12:30.250". */
export const timeOfDay = (ms: number): string => new Date(ms).toISOString().slice(11, 23);

/** "1.5 s", "10 min". */
function span(ms: number): string {
  if (ms >= 60_000 && ms % 60_000 === 0) return `${ms / 60_000} min`;
  return ms >= 600_000 ? `${Math.round(ms / 60_000)} min` : `${ms / 1000} s`;
}

function asked(ask: PlannedAsk): string {
  switch (ask.kind) {
    case "current":
      return `${ask.amperes} A`;
    case "power":
      return `${ask.kilowatts} kW`;
    case "unknown":
      return "something unknown";
  }
}

const eventInWords = (event: PlannedEvent): string => {
  const spread = event.spread === 0 ? "" : `, spread over ${span(event.spread)}`;
  const whom = event.vehicles.length === 0 ? "nobody" : event.vehicles.join(", ");
  const priority = event.priority === null ? "no priority" : `priority ${event.priority}`;
  const reports = event.reports.length === 0 ? "" : `, reports ${JSON.stringify(event.reports)}`;
  return `${event.id}: ${asked(event.ask)} for ${whom} from ${timeOfDay(event.start)} for ${span(event.duration)}${spread}, ${priority}${reports}`;
};

const delivered = (deliveries: readonly number[]): string =>
  deliveries.length === 0
    ? "no webhook tells"
    : `webhook after ${deliveries.map((delay) => span(delay)).join(" and ")}`;

const pointInWords = (point: CrashPoint): string =>
  typeof point === "string" ? point : `${point.turns} turns later`;

function whatHappens(action: Action): string {
  switch (action.kind) {
    case "put":
      return `partner has ${eventInWords(action.event)}${action.sameTime ? ", same modification time" : ""}; ${delivered(action.deliveries)}`;
    case "withdraw":
      return `partner withdraws ${action.id}; ${delivered(action.deliveries)}`;
    case "hold": {
      const whom = JSON.stringify(action.scope);
      const what = action.level === null ? "exempt" : JSON.stringify(action.level);
      const { until } = action;
      const end = typeof until === "number" ? span(until) : JSON.stringify(until);
      return `an operator holds ${whom}: ${what} until ${end}`;
    }
    case "observe":
      return `an operator has the site observe for ${span(action.lasts)}`;
    case "drive":
      return "an operator has the site drive";
    case "endHold":
      return "an operator ends the oldest hold";
    case "crash":
      return `the gateway dies ${pointInWords(action.point)}, back after ${span(action.downFor)}`;
    case "brokerGone":
      return `the broker is gone for ${span(action.lasts)}`;
    case "linkLost":
      return `the gateway has no broker for ${span(action.lasts)}`;
    case "brokerSlow":
      return `the broker is slow for ${span(action.lasts)}`;
    case "unruly":
      return `messages to chargers come late and twice for ${span(action.lasts)}`;
    case "partner":
      return `the partner answers ${action.how} for ${span(action.lasts)}`;
    case "identity":
      return `the identity server answers ${action.how} for ${span(action.lasts)}`;
    case "tray":
      return `where reports go answers ${action.how} for ${span(action.lasts)}`;
    case "reboot":
      return `${action.charger} is off for ${span(action.lasts)} and forgets`;
    case "deaf":
    case "mute":
      return `${action.charger} is ${action.kind} for ${span(action.lasts)}`;
    case "greets":
      return `${action.charger} repeats each ${span(action.every)} that it is online, for ${span(action.lasts)}`;
    case "lies":
      return `${action.charger} refuses and lies for ${span(action.lasts)}`;
    case "plug":
      return `${action.vehicle ?? "nobody"} is plugged in at ${action.charger}`;
    case "claims":
      return `${action.charger} names ${action.vehicle} for ${span(action.lasts)}`;
    case "clock":
      return `the gateway's clock is set by ${span(action.by)} for ${span(action.lasts)}`;
    case "noTime":
      return `the gateway dies, back after ${span(action.downFor)} at 1970, for ${span(action.lasts)}`;
    case "suspend":
      return `the gateway's machine sleeps for ${span(action.lasts)}`;
    case "disk":
      return `the disk is ${action.how} for ${span(action.lasts)}`;
  }
}

/** The day as a person reads it, one line each. */
export const dayInWords = ({
  midnight,
  zone,
  chargers,
  vehicles,
  knobs,
  actions,
}: Day): readonly string[] => [
  `from ${new Date(midnight).toISOString()}, ${zone}; knobs: ${JSON.stringify(knobs)}`,
  ...chargers.map(({ id, ...rest }) => `charger ${id} ${JSON.stringify(rest)}`),
  ...vehicles.map(({ id, ...rest }) => `vehicle ${id} ${JSON.stringify(rest)}`),
  ...actions.map((action) => `${timeOfDay(action.at)} ${whatHappens(action)}`),
];
