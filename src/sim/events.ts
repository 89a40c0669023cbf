import { iso, millis, type Instant } from "../core/units.ts";
import { writeTimespan } from "../vtn/wire/timespan.ts";

/** partner-interface 2.2. */
interface WireTarget {
  readonly targetType: string;
  readonly values: readonly string[];
}

/** partner-interface 2.3, the partner's spelling. */
interface WireReportDescriptor {
  readonly payloadType: string;
  readonly readingType: string;
  readonly targets?: readonly WireTarget[];
  readonly aggregate: boolean;
  readonly frequency: number;
  readonly historical: boolean;
  readonly numIntervals: number;
  readonly repeat: number;
  readonly startInterval: number;
}

/** partner-interface 2.5; amperes and kilowatts. */
type WirePayload =
  | { readonly payloadType: "CurrentLevel"; readonly targetCurrent: number }
  | { readonly payloadType: "PowerLevel"; readonly targetPower: number };

/** partner-interface 2.1, letter for letter. */
export interface WireEvent {
  readonly createdDateTime: string;
  readonly ID: string;
  readonly modificationDateTime: string;
  readonly name: string;
  readonly priority: number;
  readonly programID: string;
  readonly reportDescriptors?: readonly WireReportDescriptor[];
  readonly targets?: readonly WireTarget[];
  readonly intervalPeriod: {
    readonly start: string;
    readonly duration: string;
    readonly randomizeStart?: string;
  };
  readonly payload: WirePayload;
}

/** What an event shall ask for, in words of the depot; `wireEvent` spells it as the partner does. */
export interface EventPlan {
  readonly id: string;
  readonly name?: string;
  readonly start: Instant;
  readonly durationMs: number;
  /** Absent: none asked. */
  readonly randomizeStartMs?: number;
  /** Absent: 5. Lower wins. */
  readonly priority?: number;
  readonly ask: { readonly amperes: number } | { readonly kilowatts: number };
  /** VTN resource ids. Absent: the event has no targets at all. */
  readonly vehicles?: readonly string[];
  readonly programId?: string;
  readonly reportDescriptors?: readonly Omit<WireReportDescriptor, "targets">[];
}

const payload = (ask: EventPlan["ask"]): WirePayload =>
  "amperes" in ask
    ? { payloadType: "CurrentLevel", targetCurrent: ask.amperes }
    : { payloadType: "PowerLevel", targetPower: ask.kilowatts };

/** Contract JSON of one event (partner-interface 2), created and modified at `now`. */
export function wireEvent(plan: EventPlan, now: Instant): WireEvent {
  const targets = plan.vehicles && [{ targetType: "vehicle", values: plan.vehicles }];
  return {
    createdDateTime: iso(now),
    ID: plan.id,
    modificationDateTime: iso(now),
    name: plan.name ?? plan.id,
    priority: plan.priority ?? 5,
    programID: plan.programId ?? "depot-flex",
    ...(targets && { targets }),
    // The targets of a descriptor are those of its event (partner-interface 2.2).
    ...(plan.reportDescriptors && {
      reportDescriptors: plan.reportDescriptors.map((asked) => ({ ...asked, ...(targets && { targets }) })),
    }),
    intervalPeriod: {
      start: iso(plan.start),
      duration: writeTimespan(millis(plan.durationMs)),
      ...(plan.randomizeStartMs !== undefined && {
        randomizeStart: writeTimespan(millis(plan.randomizeStartMs)),
      }),
    },
    payload: payload(plan.ask),
  };
}
