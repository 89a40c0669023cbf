import { expect, test } from "vitest";

import { prove } from "../../src/daemon/proof.ts";
import { eventId } from "../../src/domain/units.ts";
import { configured } from "../support/aConfiguration.ts";
import { aDirectory, opened } from "../store/sqlite/state.ts";
import { NOON, row } from "../store/sqlite/words.ts";

async function wholeOf(pieces: AsyncIterable<string>): Promise<string> {
  let text = "";
  for await (const piece of pieces) text += piece;
  return text;
}

test("a proof whose rows are pruned while it is made ends as not whole", async () => {
  const { store, siteKey } = opened(aDirectory());
  const event = eventId("EV-1");
  store.write([
    row("EV-1 is new", { kind: "event", event }),
    row("EV-1 is changed", { kind: "event", event }),
  ]);
  await store.durable();
  const sources = {
    config: configured({}),
    store,
    siteKey,
    now: () => NOON,
    monotonic: () => 0,
    known: null,
  };
  const [whole, cut] = [await prove("EV-1", "json", sources), await prove("EV-1", "json", sources)];
  if (!whole.ok || !cut.ok) throw new Error("no proof");
  expect(await wholeOf(whole.pieces)).toContain("EV-1 is changed");
  const hash = store.reads.hashes([1]).get(1) ?? "";
  store.write([
    row("pruned", { kind: "checkpoint", facts: { through: 1, hash } }),
    { kind: "auditPruned", through: 1 },
  ]);
  await store.durable();
  await expect(wholeOf(cut.pieces)).rejects.toThrow("pruned or changed while the proof was made");
  const later = await prove("EV-1", "json", sources);
  if (!later.ok) throw new Error("no proof");
  expect(await wholeOf(later.pieces)).toContain("rows 1 to 1 are no longer kept");
});
