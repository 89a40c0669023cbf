const BASE_REVISION = Date.parse("2026-11-20T00:00:00Z");

/** An event as a test thinks of it; what is left out is ordinary. */
export interface Wish {
  /** "EV-1" unless told. */
  readonly id?: string;
  /** "08:00" of the depot's first day, or ISO. */
  readonly start: string;
  /** How long it lasts: 60 unless told. */
  readonly minutes?: number;
  /** randomizeStart, in minutes: none unless told. */
  readonly spread?: number;
  readonly amperes?: number;
  readonly kilowatts?: number;
  /** All of the depot unless told. */
  readonly vehicles?: readonly string[];
  readonly priority?: number | null;
  /** Higher is newer: 0 unless told. */
  readonly revision?: number;
  readonly name?: string;
  /** Report descriptors as the partner writes them; of each what is left out is absent. */
  readonly reports?: readonly object[];
}

/** An event as the partner writes it (partner-interface 2.1). */
export interface WireEvent {
  readonly ID: string;
  readonly modificationDateTime: string;
  readonly [field: string]: unknown;
}

export const DAY_ONE = "2026-11-21";

/** "08:00", "08:00:10.250" of the first day, or ISO, as ISO. */
export const moment = (text: string): string =>
  new Date(text.includes("T") ? text : `${DAY_ONE}T${text}Z`).toISOString();

export const revisionTime = (revision: number): string =>
  new Date(BASE_REVISION + revision * 60_000).toISOString();

const timespan = (minutes: number): string => {
  const seconds = Math.round(minutes * 60);
  return [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
    .map((part) => String(part).padStart(2, "0"))
    .join(":");
};

export function wireEvent(wish: Wish, everyone: readonly string[]): WireEvent {
  const { id = "EV-1", minutes = 60, spread = 0, priority = 1, revision = 0 } = wish;
  return {
    ID: id,
    name: wish.name ?? "",
    createdDateTime: revisionTime(0),
    modificationDateTime: revisionTime(revision),
    programID: "PRG-1",
    priority,
    ...(wish.reports === undefined ? {} : { reportDescriptors: wish.reports }),
    targets: [{ targetType: "vehicle", values: wish.vehicles ?? everyone }],
    intervalPeriod: {
      start: moment(wish.start),
      duration: timespan(minutes),
      ...(spread > 0 ? { randomizeStart: timespan(spread) } : {}),
    },
    payload:
      wish.kilowatts === undefined
        ? { payloadType: "CurrentLevel", targetCurrent: wish.amperes ?? 10 }
        : { payloadType: "PowerLevel", targetPower: wish.kilowatts },
  };
}
