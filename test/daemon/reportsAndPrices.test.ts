import { expect, test } from "vitest";

import { shownReports } from "../../src/daemon/reportsAndPrices.ts";
import { reportSchedule } from "../../src/reporting/obligations.ts";
import { after, millis } from "../../src/domain/units.ts";
import { aDirectory, opened } from "../store/sqlite/state.ts";
import { NOON, reportRecord } from "../store/sqlite/words.ts";

test("after a long outage of the partner every report that waits is shown, the oldest last", async () => {
  const { store } = opened(aDirectory());
  const records = Array.from({ length: 1_200 }, (_, index) =>
    reportRecord(`EV-${index}/0/0`, { composedAt: after(NOON, millis(index)) }),
  );
  store.write(records.map((record) => ({ kind: "report", record, body: "{}" })));
  expect(await store.durable()).toEqual({ ok: true });
  const schedule = reportSchedule();
  for (const record of records) schedule.outbox.set(record.name, record);
  const shown = await shownReports(schedule, store);
  expect(shown.map(({ name }) => name)).toEqual(records.map(({ name }) => name).toReversed());
});
