import { hash } from "node:crypto";

import type { Rejected } from "../../../domain/delivery.ts";
import type { CoordinationEvent } from "../../../domain/event.ts";
import { instant, type EventId } from "../../../domain/units.ts";
import { fieldsOf, brief, isProblem, misfit, overfull } from "./fields.ts";
import { eventNames, readEventId, wireEvent } from "./schema.ts";

export type EventNotice = { readonly kind: "event"; readonly event: CoordinationEvent } | Rejected;

/** Reads one parsed event into the domain's form. An unreadable event is rejected with path and reason. */
export function readEvent(raw: unknown): EventNotice {
  const found = fieldsOf(eventNames, raw);
  if (found === undefined) return rejected(raw, null, "", misfit(raw, "an event", "a JSON object").problem);
  const id = readEventId(found.ID ?? found.eventId);
  if (isProblem(id)) return rejected(raw, null, "ID", id.problem);
  const excess = overfull(found);
  if (excess !== null) return rejected(raw, id, pathText(excess.path), excess.reason);
  const read = wireEvent.safeParse({ ...found, name: found.name ?? found.eventName });
  if (!read.success) {
    const [first] = read.error.issues;
    return rejected(raw, id, pathText(first?.path ?? []), first?.message ?? "unreadable");
  }
  const wire = read.data;
  const fields = {
    id,
    revision: wire.modificationDateTime ?? wire.createdDateTime ?? instant(0),
    created: wire.createdDateTime ?? instant(0),
    name: wire.name,
    programId: wire.programID,
    priority: wire.priority,
    wireStart: wire.intervalPeriod.start.wireStart,
    start: wire.intervalPeriod.start.start,
    duration: wire.intervalPeriod.duration,
    randomizeStart: wire.intervalPeriod.randomizeStart,
    ask: wire.payload,
    targets: wire.targets,
    reports: wire.reportDescriptors,
  };
  return { kind: "event", event: { ...fields, hash: hash("sha256", JSON.stringify(fields), "hex") } };
}

/** An unreadable entry, with its id if that is readable. */
export const rejected = (raw: unknown, id: EventId | null, path: string, reason: string): Rejected => ({
  kind: "rejected",
  id,
  path,
  reason,
  raw: excerpt(raw),
});

/** `targets[0].values[3]` */
const pathText = (path: readonly PropertyKey[]): string =>
  path
    .map((step) => (typeof step === "number" ? `[${step}]` : `.${String(step)}`))
    .join("")
    .replace(/^\./, "");

const EXCERPT = 4096;

/**
 * JSON text, capped. It is copied through a buffer: a slice would keep the whole text in memory, and may end
 * in half a character.
 */
function excerpt(raw: unknown): string {
  const text = brief(raw);
  return text.length <= EXCERPT ? text : Buffer.from(text.slice(0, EXCERPT)).toString();
}
