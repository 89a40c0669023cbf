import type { Format } from "../core/proof/spelling.ts";
import { eventId, type Instant } from "../core/units.ts";
import { proofNow, type Proven } from "../proof.ts";
import { configuration } from "./configuration.ts";
import { complain, type ExitCode, saySealed } from "./outcome.ts";
import { askOrRead, LONG_PATIENCE_MS } from "./storedState.ts";

/** `proof EVENT`: all that is known of one event, sealed; from the running daemon, or the stored state. */
export async function proof(
  named: string | undefined,
  id: string,
  format: Format,
  now: () => Instant,
): Promise<ExitCode> {
  const config = configuration(named);
  if (config === null) return 2;
  const event = id.normalize("NFC").toWellFormed();
  const query = new URLSearchParams({ event, format });
  const proven = await askOrRead<Proven>(
    config,
    `/proof?${query.toString()}`,
    ({ store, siteKey }) =>
      proofNow(event, format, {
        config,
        store,
        siteKey,
        now,
        known: store.events.event(eventId(event)),
      }),
    LONG_PATIENCE_MS,
  );
  const reason = typeof proven === "string" ? proven : proven.ok ? null : proven.reason;
  if (reason !== null) complain(reason);
  else if (typeof proven === "object" && proven.ok) saySealed(proven.text.trimEnd());
  return reason === null ? 0 : 1;
}
