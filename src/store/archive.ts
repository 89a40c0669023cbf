import type { Logger } from "pino";
import type { EventArchive } from "../core/control/known.ts";
import type { EventId } from "../core/units.ts";
import { isFault } from "./boot.ts";
import type { Disk } from "./disk.ts";
import { type Fault, faultOf } from "./fault.ts";
import type { Source } from "./readBodies.ts";
import { readEvent, readSummary } from "./storedEvents.ts";

/** The stored events. One that cannot be read is logged. */
export function archiveOf(disk: Pick<Disk, "connection">, siteKey: Buffer, log: Logger): EventArchive {
  const read = <T extends object>(
    event: EventId,
    query: (from: Source, id: EventId) => T | Fault | null,
  ): T | null => {
    const found = attempt(() =>
      query(
        { database: disk.connection.database, trust: { siteKey, isSigned: true }, onEdited: null },
        event,
      ),
    );
    if (found === null || !isFault(found)) return found;
    log.error({ event, reason: found.reason }, "a stored event cannot be read");
    return null;
  };
  return {
    event: (id) => read(id, readEvent),
    summary: (id) => read(id, readSummary),
  };
}

function attempt<T>(query: () => T): T | Fault {
  try {
    return query();
  } catch (error) {
    return faultOf(error);
  }
}
