import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

import { readEvent } from "../src/vtn/wire/event.ts";
import { readListBody, readWebhookBody } from "../src/vtn/wire/envelope.ts";

const read = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), "utf8");
const page = read("docs/first-event.md");
const events = JSON.parse(read("config/example-events.json")) as readonly { readonly ID: string }[];

/** Each line of the block that shows what a delivery may look like, with an event in it. */
const bodies = (/```text\n(EVENT\n[\s\S]*?)```/.exec(page)?.[1] ?? "")
  .trim()
  .split("\n")
  .map((line) => line.replaceAll("EVENT]", `${JSON.stringify(events[0])}]`))
  .map((line) =>
    line.replace(/(^|:)EVENT(?=\}|,|$)/, (_, before) => `${before}${JSON.stringify(events[0])}`),
  );

test.each(bodies)("the webhook reads %s as its page says", (body) => {
  const found = readWebhookBody(Buffer.from(body));
  expect(found).toMatchObject({ kind: "read", poll: false });
  if (found.kind !== "read") return;
  const ids = found.notices.map((notice) => (notice.kind === "event" ? notice.event.id : notice.id));
  expect([...ids, ...found.ask]).toEqual([body.includes("EXAMPLE-1") ? "EXAMPLE-1" : "EV-1"]);
  expect(found.notices.filter(({ kind }) => kind === "rejected")).toEqual([]);
});

test("the block of the page has all shapes", () => {
  expect(bodies).toHaveLength(11);
});

test("each of the example's events can be read, alone and as a list", () => {
  expect(events.map((event) => readEvent(event).kind)).toEqual(["event", "event", "event"]);
  const list = readListBody(Buffer.from(read("config/example-events.json")));
  expect(list).toMatchObject({ kind: "read", complete: true });
});

test.each([
  ["ID", "rejected"],
  ["modificationDateTime", "event"],
  ["priority", "event"],
  ["targets", "event"],
  ["intervalPeriod", "rejected"],
  ["payload", "rejected"],
])("an event without %s is what the page says: %s", (field, kind) => {
  const rest = Object.entries(events[0] ?? {}).filter(([name]) => name !== field);
  expect(readEvent(Object.fromEntries(rest)).kind).toBe(kind);
});
