import type { EventArchive } from "../domain/event.ts";
import type { Leadership } from "../domain/leadership.ts";
import { isPassing } from "../store/postgres/database.ts";

/** Interval of the tries to read from a database that is away, ms. */
const READ_AGAIN_MS = 250;

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

type Lead = Pick<Leadership, "state"> | null;
type Patiently = <T>(read: () => Promise<T>) => Promise<T>;

/** The lease was lost while the site was starting. */
export class LeadLost extends Error {}

/** Reads that wait for a database that is away. Without a database an error is that of the own disk. */
function patient(lead: Lead, onLost: () => Promise<never>): Patiently {
  if (lead === null) return (read) => read();
  return async (read) => {
    for (;;) {
      try {
        return await read();
      } catch (error) {
        if (lead.state === "lost") return await onLost();
        if (!isPassing(error)) throw error;
        await sleep(READ_AGAIN_MS);
      }
    }
  };
}

/** For the flows of a site, whose errors end the process. After the loss of the lease they get no answer: they are ended. */
export const patientReads = (lead: Lead): Patiently => patient(lead, () => new Promise<never>(() => {}));

/** For the start of a site. The loss of the lease ends it. */
export const readsAtStart = (lead: Lead): Patiently =>
  patient(lead, () => Promise.reject(new LeadLost("another process took the site during the start")));

/** The stored events, for control. */
export const patientArchive = (archive: EventArchive, patiently: Patiently): EventArchive => ({
  whole: (ids) => patiently(() => archive.whole(ids)),
  summaries: (ids) => patiently(() => archive.summaries(ids)),
});
