import { fieldsOf, spelling } from "./fields.ts";
import { decodeJson } from "./json.ts";

/** What tells one report from another on the wire. */
export interface ReportIdentity {
  readonly event: string;
  readonly name: string;
  /** Null: the format has none. */
  readonly client: string | null;
}

const names = spelling(["eventID", "reportName", "name", "clientName"]);

/** Of a report, in any of the formats that we send. Null: it is none. */
function identityOf(raw: unknown): ReportIdentity | null {
  const fields = fieldsOf(names, raw);
  const [event, name] = [fields?.eventID, fields?.reportName ?? fields?.name];
  const client = fields?.clientName;
  return typeof event === "string" && typeof name === "string"
    ? { event, name, client: typeof client === "string" ? client : null }
    : null;
}

/** Of a body of our own. */
export const identityIn = (body: string): ReportIdentity | null => {
  const decoded = decodeJson(Buffer.from(body));
  return decoded.kind === "json" ? identityOf(decoded.value) : null;
};

const listNames = spelling(["reports"]);

/** One page of `GET reports`: a bare array or `{reports: [...]}`. Null: it is no list. */
export function readReportPage(
  body: Buffer,
): { readonly entries: number; readonly reports: readonly ReportIdentity[] } | null {
  const decoded = decodeJson(body);
  if (decoded.kind !== "json") return null;
  const entries = Array.isArray(decoded.value) ? decoded.value : fieldsOf(listNames, decoded.value)?.reports;
  if (!Array.isArray(entries)) return null;
  const reports = entries.flatMap((entry) => identityOf(entry) ?? []);
  return { entries: entries.length, reports };
}

/** A VTN that does not tell the client lists only our own. */
export const isSameReport = (ours: ReportIdentity, theirs: ReportIdentity): boolean =>
  ours.event === theirs.event &&
  ours.name === theirs.name &&
  (ours.client === null || theirs.client === null || ours.client === theirs.client);
