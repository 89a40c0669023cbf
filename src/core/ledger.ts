import type { AuditEntry } from "./audit.ts";
import type { CommandRecord } from "./control/command.ts";
import type { Hold } from "./control/hold.ts";
import type { KnownEvent } from "./control/known.ts";
import type { Rejected } from "./delivery.ts";
import type { ChargerId, Instant } from "./units.ts";

/** One thing to be remembered. All changes written in one turn of the loop are committed together, in order. */
export type Change =
  | { readonly kind: "event"; readonly known: KnownEvent }
  | { readonly kind: "command"; readonly record: CommandRecord }
  | { readonly kind: "hold"; readonly hold: Hold }
  | { readonly kind: "holdEnded"; readonly charger: ChargerId }
  | {
      readonly kind: "quarantine";
      readonly rejected: Rejected;
      readonly at: Instant;
      readonly source: string;
    }
  /** Everything that was due by then was looked at, whether or not anything came of it. */
  | { readonly kind: "looked"; readonly at: Instant }
  | { readonly kind: "audit"; readonly entry: AuditEntry };

export type Committed = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** What survived the last stop. */
export interface Remembered {
  readonly events: readonly KnownEvent[];
  readonly commands: readonly CommandRecord[];
  readonly holds: readonly Hold[];
  /** The last moment at which somebody certainly looked; null: never. */
  readonly lookedAt: Instant | null;
}
