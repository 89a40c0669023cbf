import type { Config } from "../config/schema.ts";
import type { Instant } from "../core/units.ts";
import { instant, iso } from "../core/units.ts";
import { wallClock } from "../wallClock.ts";
import { configuration } from "./configuration.ts";
import { complain, type ExitCode, say } from "./outcome.ts";
import { askOrRead, LONG_PATIENCE_MS } from "./storedState.ts";

export interface AuditOptions {
  readonly config: string | undefined;
  readonly json: boolean;
  readonly event: string | undefined;
  readonly charger: string | undefined;
}

interface Row {
  readonly seq: number;
  /** ISO. */
  readonly at: string;
  readonly kind: string;
  readonly words: string;
}

/** Rows asked for at a time; the record may be much longer. */
const PAGE = 5000;

/** `audit`: the record, oldest first. */
export async function audit(
  { config: named, json, event, charger }: AuditOptions,
  now: () => Instant,
): Promise<ExitCode> {
  const config = configuration(named);
  if (config === null) return 2;
  const clock = wallClock(config.site.timezone, now);
  const id = event?.normalize("NFC").toWellFormed();
  const query = { ...(id === undefined ? {} : { event: id }), ...(charger === undefined ? {} : { charger }) };
  const page = (after: number): Promise<readonly Row[] | string> => {
    const parameters = new URLSearchParams({ ...query, after: String(after), limit: String(PAGE) });
    return askOrRead(config.state, `/audit?${parameters.toString()}`, ({ store }) =>
      store.audit({ ...query, after, limit: PAGE }).map((row) => ({ ...row, at: iso(row.at) })),
    );
  };
  for (let after = 0; ;) {
    const rows = await page(after);
    if (typeof rows === "string") {
      complain(rows);
      return 1;
    }
    for (const row of rows)
      say(json ? JSON.stringify(row) : `${clock(instant(Date.parse(row.at)))}  ${row.words}`);
    const last = rows.at(-1);
    if (last === undefined && after === 0) complain(nothingOf(id, charger, config));
    if (last === undefined || rows.length < PAGE) return 0;
    after = last.seq;
  }
}

/** Who mistypes a name must not take it for a quiet night; a charger that left the configuration may still have rows. */
function nothingOf(event: string | undefined, charger: string | undefined, { chargers }: Config): string {
  if (charger !== undefined && !chargers.some(({ id }) => id === charger))
    return `there is no charger ${charger}; the configuration has ${chargers.map(({ id }) => id).join(", ")}`;
  const of = [event === undefined ? [] : `event ${event}`, charger ?? []].flat().join(" at ");
  return of === "" ? "the record is empty" : `the record has nothing of ${of}`;
}

/** `audit verify`: follows the hash chain from the first row to the authenticated head. */
export async function auditVerify(named: string | undefined, json: boolean): Promise<ExitCode> {
  const config = configuration(named);
  if (config === null) return 2;
  const verified = await askOrRead(
    config.state,
    "/audit/verify",
    ({ store }) => store.verify(),
    LONG_PATIENCE_MS,
    (broken) => broken,
  );
  if (typeof verified === "string") {
    complain(verified);
    return 1;
  }
  if (json) {
    say(JSON.stringify(verified));
    return verified.ok ? 0 : 1;
  }
  if (!verified.ok) {
    complain(`the record is broken at row ${verified.seq}: ${verified.reason}`);
    return 1;
  }
  say(`the record is whole: ${verified.rows} rows, head ${verified.head}`);
  return 0;
}
