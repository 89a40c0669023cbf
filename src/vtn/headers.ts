import { DateTime } from "luxon";
import { type Instant, type Millis, between, instant, millis, minutes, seconds } from "../core/units.ts";

/** Header fields of a request or an answer, names in lower case, as node and undici give them. */
export type HeaderFields = Readonly<Record<string, string | readonly string[] | undefined>>;

/** The value of a field; null where it is absent or was sent more than once. */
export function headerText(headers: HeaderFields, name: string): string | null {
  const value = headers[name.toLowerCase()];
  return typeof value === "string" ? value : null;
}

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json$/;
const CHARSET = /^charset\s*=\s*"?([^"]*)"?$/;

/** `application/json` or `application/…+json`, with any parameters, but in no charset other than UTF-8. */
export function readsAsJson(contentType: string): boolean {
  const [type = "", ...parameters] = contentType.split(";").map((part) => part.trim().toLowerCase());
  return (
    JSON_TYPE.test(type) &&
    parameters.every((parameter) => {
      const charset = CHARSET.exec(parameter)?.[1];
      return charset === undefined || charset === "utf-8" || charset === "utf8";
    })
  );
}

/** False for anything compressed, as a whole or on its way: a small body could then unpack to any size (F38). */
export const isPlain = (headers: HeaderFields): boolean =>
  isAbsentOr(headers["content-encoding"], "identity") && isAbsentOr(headers["transfer-encoding"], "chunked");

const isAbsentOr = (value: HeaderFields[string], only: string): boolean =>
  value === undefined || (typeof value === "string" && value.toLowerCase() === only);

const httpDate = (text: string | null): Instant | null => {
  if (text === null) return null;
  const at = DateTime.fromHTTP(text.trim());
  return at.isValid ? instant(at.toMillis()) : null;
};

/** How far our clock is ahead of the partner's `Date`; null where there is none. The field counts whole seconds. */
export function skewOf(headers: HeaderFields, at: Instant): Millis | null {
  const theirs = httpDate(headerText(headers, "date"));
  return theirs === null ? null : between(theirs, at);
}

const LONGEST_WAIT = minutes(15);
const ABSURD_WAIT = minutes(24 * 60);

/** `Retry-After` as seconds or as a date, at most 15 min; null where it is absent, unreadable or over a day (F32). */
export function retryAfterOf(headers: HeaderFields, at: Instant): Millis | null {
  const text = headerText(headers, "retry-after")?.trim() ?? "";
  if (/^\d{1,9}$/.test(text)) return bounded(seconds(Number(text)));
  const until = httpDate(text);
  // A date of theirs is held against their clock, not against ours.
  return until === null ? null : bounded(between(httpDate(headerText(headers, "date")) ?? at, until));
}

const bounded = (wait: Millis): Millis | null =>
  wait > ABSURD_WAIT ? null : millis(Math.min(Math.max(wait, 0), LONGEST_WAIT));
