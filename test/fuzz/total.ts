import type { CoordinationEvent, Target } from "../../src/domain/event.ts";

const isId = (text: string): boolean =>
  text.isWellFormed() && text === text.normalize("NFC") && !/\p{Cc}/u.test(text) && /^.{1,256}$/su.test(text);
const isWhole = (value: number | null): boolean =>
  value === null || (Number.isSafeInteger(value) && !Object.is(value, -0));
/** 100 centuries around the epoch hold every moment that has four digits for its year. */
const isMoment = (value: number): boolean => Number.isSafeInteger(value) && Math.abs(value) < 8.64e15;
const isSpan = (value: number): boolean => Number.isSafeInteger(value) && value >= 0;
const isTarget = ({ type, values }: Target): boolean => typeof type === "string" && values.every(isId);

const checks: Readonly<Record<keyof CoordinationEvent, (event: CoordinationEvent) => boolean>> = {
  id: ({ id }) => isId(id),
  revision: ({ revision }) => isMoment(revision),
  created: ({ created }) => isMoment(created),
  name: ({ name }) => typeof name === "string",
  programId: ({ programId }) => programId === "" || isId(programId),
  priority: ({ priority }) => isWhole(priority),
  wireStart: ({ wireStart }) => typeof wireStart === "string" && wireStart !== "",
  start: ({ start }) => start === "now" || (isMoment(start) && start >= Date.UTC(2000, 0, 1)),
  duration: ({ duration }) => isSpan(duration),
  randomizeStart: ({ randomizeStart }) => isSpan(randomizeStart),
  ask: ({ ask }) =>
    ask.kind === "unknown"
      ? typeof ask.payloadType === "string"
      : Number.isFinite(ask.level) && !Object.is(ask.level, -0),
  targets: ({ targets }) => targets.every(isTarget),
  reports: ({ reports }) =>
    reports.every(
      ({ targets, ...asked }) =>
        targets.every(isTarget) &&
        [asked.payloadType, asked.readingType].every((text) => typeof text === "string") &&
        [asked.aggregate, asked.historical].every((flag) => typeof flag === "boolean") &&
        [asked.frequency, asked.numIntervals, asked.repeat, asked.startInterval].every(isWhole),
    ),
  hash: ({ hash }) => /^[0-9a-f]{64}$/.test(hash),
};

/** The first field of an accepted event that is not as core expects it: nothing absent, nothing unnormalized. */
export function notTotal(event: CoordinationEvent): string | null {
  const foreign = Object.keys(event).find((field) => !(field in checks));
  if (foreign !== undefined) return `unknown field ${foreign}`;
  const wrong = Object.entries(checks).find(([, isRight]) => !isRight(event));
  return wrong === undefined ? null : wrong[0];
}
