import type { Json } from "../../domain/audit.ts";
import type { Notice, UnchangedEntries } from "../../domain/delivery.ts";
import type { Price, PriceKind } from "../../domain/prices.ts";
import type { EventId, Instant } from "../../domain/units.ts";
import type { ResumableTask } from "../../platform/cooperative.ts";
import type { Report } from "../../reporting/report.ts";

/**
 * The wire format of an event service: paths, scope, and readers and writers of its bodies. Everything else in the
 * room `vtn` is the same for every service. `partner/` implements it; another dialect is a folder beside it.
 */
export interface Dialect {
  /** Configuration keys to check after an answer from a wrong address. */
  readonly addressKeys: string;
  /** Scope of the access token. Null: the field is left out. */
  readonly scope: string | null;
  readonly paths: Paths;
  /** Reads a webhook body. Unknown JSON and an empty body request the list. */
  readonly readDelivery: (body: Buffer) => WebhookBody;
  /**
   * Reads a list of events. It may hold 100,000, so the task yields after each. `earlier`: a list to compare with; only
   * what differs becomes a notice. Null: none yet. Absent: the list is never compared.
   */
  readonly readingList: (body: Buffer, earlier?: ListIndex | null) => ResumableTask<ListBody>;
  /** Reads the answer to a fetch by id. */
  readonly readEvent: (body: Buffer) => ListBody;
  /** Reads the prices of a region, received at `at`. */
  readonly readPrices: (body: Buffer, region: string, at: Instant) => PricesRead;
  /** A report as the service reads it. */
  readonly writeReport: (report: Report) => Json;
  /** Identity of a body that `writeReport` made. Null: unreadable. */
  readonly reportIdentity: (body: string) => ReportIdentity | null;
  /** Reads one page of the list of reports. Null: no list. */
  readonly readReportPage: (body: Buffer) => ReportPage | null;
  /** True: the report listed by the service is ours. */
  readonly isSameReport: (ours: ReportIdentity, theirs: ReportIdentity) => boolean;
}

/** Paths after the base URL, each starting with a slash. */
interface Paths {
  /** The list of events. One event is `<events>/<id>`. */
  readonly events: string;
  readonly reports: string;
  /** Path with {region} in it. Null: the service has no such series. */
  readonly prices: Readonly<Record<PriceKind, string | null>>;
}

/** A page of the list of reports. `entries` counts unreadable ones too. */
export interface ReportPage {
  readonly entries: number;
  readonly reports: readonly ReportIdentity[];
}

/** Content of a webhook body. */
export type WebhookBody =
  | { readonly kind: "unparsable"; readonly reason: string }
  /** Far more entries than a webhook needs: none of them was read. The list holds the events. */
  | { readonly kind: "overfull"; readonly reason: string }
  | {
      readonly kind: "read";
      readonly notices: readonly Notice[];
      /** Events of which only the id was given: to be fetched. */
      readonly fetchById: readonly EventId[];
      /** True: the body does not show what changed, so the list has to be fetched. */
      readonly poll: boolean;
      /** Entries of lists that concern other objects than events. The answer counts them as repeats. */
      readonly foreign: number;
    };

/** Events as a fetch returned them. `complete`: every entry had a readable id, so absence can be trusted. */
export type ListBody =
  | { readonly kind: "unparsable"; readonly reason: string }
  | {
      readonly kind: "read";
      readonly notices: readonly Notice[];
      readonly complete: boolean;
      /** Entries that are the same as in the earlier list. Absent: the list was read as a whole. */
      readonly unchanged?: UnchangedEntries;
      /** For the comparison with the next list. Null: it cannot be compared. */
      readonly index?: ListIndex | null;
    };

/** A list as it was read: its bytes, and of each entry the end and the id. No id occurs twice. */
export interface ListIndex {
  readonly body: Buffer;
  /** Position after the opening bracket. */
  readonly start: number;
  /** Positions of the comma or bracket after each entry. */
  readonly ends: readonly number[];
  readonly ids: readonly EventId[];
  readonly rejected: readonly boolean[];
}

/** Content of a price body. `raw`: its start, as text. */
export type PricesRead =
  | {
      readonly kind: "read";
      readonly prices: readonly Price[];
      readonly doubts: readonly string[];
      readonly raw: string;
    }
  | { readonly kind: "unreadable"; readonly reason: string; readonly raw: string };

/** Members that identify a report on the wire. */
export interface ReportIdentity {
  readonly event: string;
  readonly name: string;
  /** Null: the format has none. */
  readonly client: string | null;
}
