import * as fc from "fast-check";
import { expect, test } from "vitest";

import type { TrackedEvent } from "../../../src/domain/event.ts";
import { UnreadChanges } from "../../../src/control/changeFeed.ts";
import { KnownEvents } from "../../../src/control/ingest/knownEvents.ts";
import { type EventId, eventId } from "../../../src/domain/units.ts";
import { aReportedEvent } from "../../support/aReport.ts";
import { live } from "../../support/anEvent.ts";
import { NOTHING_STORED } from "../../support/aPicture.ts";

const IDS = ["EV-1", "EV-2", "EV-3"].map(eventId);

const change = fc.oneof(
  fc.record({ kind: fc.constantFrom("set", "delete"), id: fc.constantFrom(...IDS) }),
  fc.record({ kind: fc.constantFrom("clear", "take", "startOver"), id: fc.constant(eventId("EV-1")) }),
);

test("a reader that applies only the changed events knows all events", () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 30 }), (changes) => {
      const changed = new UnreadChanges<EventId>();
      const known = new KnownEvents(NOTHING_STORED, (id) => changed.add(id));
      let taken = new Map<EventId, TrackedEvent>();
      const take = (): void => {
        for (const id of changed.takeAll()) {
          const now = known.get(id);
          if (now === undefined) taken.delete(id);
          else taken.set(id, now);
        }
      };
      for (const { kind, id } of changes) {
        if (kind === "set") known.set(id, live(aReportedEvent(), { id }));
        else if (kind === "delete") known.delete(id);
        else if (kind === "clear") known.clear();
        else if (kind === "take") take();
        else {
          taken = new Map();
          // What is gone by then needs no forgetting: nothing is left of it.
          changed.takeAll();
          for (const id of known.keys()) changed.add(id);
        }
      }
      take();
      expect(taken).toEqual(new Map(known));
      expect(changed.takeAll()).toEqual([]);
    }),
  );
});
