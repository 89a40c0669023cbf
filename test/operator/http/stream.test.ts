import { Writable } from "node:stream";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import type { Json } from "../../../src/domain/audit.ts";
import { LiveStream, MAX_CLIENTS, type LiveObject } from "../../../src/operator/http/stream.ts";
import { aRow } from "../../support/aListener.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] }));
afterEach(() => void vi.useRealTimers());

/** One round of the stream. */
const round = (count = 1): void => void vi.advanceTimersByTime(100 * count);

/** Objects that a test changes. */
class Site {
  readonly epoch = 7;
  isCollecting = false;
  readonly #changed = new Map<string, LiveObject>();

  readonly collect = (isOn: boolean): void => void (this.isCollecting = isOn);

  readonly take = (most: number): readonly LiveObject[] => {
    const taken = [...this.#changed].slice(0, most);
    for (const [key] of taken) this.#changed.delete(key);
    return taken.map(([, object]) => object);
  };

  change(key: string, value: Json): void {
    this.#changed.set(key, { kind: "charger", key, value });
  }
}

interface Received {
  readonly id: string;
  readonly event: string;
  readonly data: Json;
}

/** The end of a connection that reads, or does not. */
class Phone extends Writable {
  text = "";
  #waiting: (() => void)[] = [];
  isReading = true;

  constructor() {
    super({ highWaterMark: 256 });
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    const read = (): void => {
      this.text += chunk.toString();
      done();
    };
    if (this.isReading) read();
    else this.#waiting.push(read);
  }

  /** Reads all that has arrived, and from now on everything. */
  async readOn(): Promise<void> {
    this.isReading = true;
    for (const read of this.#waiting.splice(0)) read();
    await new Promise((done) => setImmediate(done));
  }

  get received(): readonly Received[] {
    return this.text
      .split("\n\n")
      .filter((block) => block.startsWith("id: "))
      .map((block) => {
        const [id = "", event = "", data = ""] = block.split("\n").map((line) => line.replace(/^\w+: /, ""));
        return { id, event, data: JSON.parse(data) as Json };
      });
  }
}

const always = (): boolean => true;

function aStream() {
  const site = new Site();
  return { site, stream: new LiveStream().follow(site) };
}

test("a new client gets reset, then each change once, with a cursor that grows", () => {
  const { site, stream } = aStream();
  const phone = new Phone();
  stream.join(phone, null, always);
  expect(site.isCollecting).toBe(true);
  site.change("bay-01", { n: 1 });
  site.change("bay-01", { n: 2 });
  site.change("bay-02", { n: 1 });
  round(3);
  expect(phone.received).toEqual([
    { id: "7-1", event: "reset", data: { because: "new" } },
    { id: "7-2", event: "charger", data: { n: 2 } },
    { id: "7-3", event: "charger", data: { n: 1 } },
  ]);
});

test("an object is sent at most ten times a second", () => {
  const { site, stream } = aStream();
  const phone = new Phone();
  stream.join(phone, null, always);
  for (let change = 0; change < 1000; change++) {
    site.change("bay-01", { change });
    vi.advanceTimersByTime(1);
  }
  expect(phone.received.length).toBeLessThanOrEqual(11);
});

test("a slow phone gets fewer states, never an old one after a new one, and the last one", async () => {
  const { site, stream } = aStream();
  const [slow, fast] = [new Phone(), new Phone()];
  stream.join(slow, null, always);
  stream.join(fast, null, always);
  slow.isReading = false;
  for (let n = 1; n <= 200; n++) {
    site.change("bay-01", { n, text: "x".repeat(300) });
    if (n === 50) site.change("bay-02", { n });
    round();
    await new Promise((done) => setImmediate(done));
  }
  await slow.readOn();
  round();
  await slow.readOn();
  const numbers = (phone: Phone): readonly number[] =>
    phone.received.flatMap(({ data }) =>
      typeof data === "object" && data !== null && "text" in data ? [Number(Reflect.get(data, "n"))] : [],
    );
  expect(numbers(fast)).toHaveLength(200);
  expect(numbers(slow).length).toBeLessThan(5);
  expect(numbers(slow)).toEqual(numbers(slow).toSorted((a, b) => a - b));
  expect(numbers(slow).at(-1)).toBe(200);
  expect(slow.received.map(({ data }) => data)).toContainEqual({ n: 50 });
  const ids = slow.received.map(({ id }) => Number(id.split("-")[1]));
  expect(ids).toEqual(ids.toSorted((a, b) => a - b));
});

test("a client that comes back gets what changed since, and nothing twice", () => {
  const { site, stream } = aStream();
  const phone = new Phone();
  stream.join(phone, null, always);
  site.change("bay-01", { n: 1 });
  site.change("bay-02", { n: 1 });
  round();
  const last = phone.received.at(-1)?.id ?? "";
  phone.destroy();
  site.change("bay-01", { n: 2 });
  round();
  site.change("bay-01", { n: 3 });
  round(100);
  const again = new Phone();
  stream.join(again, last, always);
  expect(again.received).toEqual([{ id: "7-5", event: "charger", data: { n: 3 } }]);
});

test.each(["6-2", "7-999", "7-0", "nonsense", ""])("the position %j cannot be resumed: reset", (last) => {
  const { site, stream } = aStream();
  stream.join(new Phone(), null, always);
  site.change("bay-01", { n: 1 });
  round();
  const phone = new Phone();
  stream.join(phone, last, always);
  expect(phone.received).toEqual([{ id: "7-2", event: "reset", data: { because: "position unknown" } }]);
});

test("changes are collected for a minute after the last client, then no more", async () => {
  const { site, stream } = aStream();
  const phone = new Phone();
  stream.join(phone, null, always);
  phone.destroy();
  await new Promise((done) => setImmediate(done));
  round(599);
  expect(site.isCollecting).toBe(true);
  round(2);
  expect(site.isCollecting).toBe(false);
  const again = new Phone();
  stream.join(again, phone.received.at(-1)?.id ?? "", always);
  expect(again.received).toMatchObject([{ event: "reset" }]);
});

test("rows of the record arrive one by one; who has fallen behind them gets reset", async () => {
  const { stream } = aStream();
  const [slow, fast] = [new Phone(), new Phone()];
  stream.join(slow, null, always);
  stream.join(fast, null, always);
  slow.isReading = false;
  for (let batch = 0; batch < 15; batch++) {
    stream.addRows(Array.from({ length: 100 }, (_, row) => aRow(batch * 100 + row + 1)));
    round();
    await new Promise((done) => setImmediate(done));
  }
  expect(fast.received.filter(({ event }) => event === "audit")).toHaveLength(1500);
  expect(fast.received.at(-1)?.data).toMatchObject({ seq: 1500, at: "2026-11-23T05:30:00.000Z" });
  await slow.readOn();
  await slow.readOn();
  expect(slow.received.at(-1)).toMatchObject({ event: "reset", data: { because: "fell behind" } });
});

test("a heartbeat every 15 s; who may no longer read is disconnected, and so is who reads nothing", async () => {
  const { site, stream } = aStream();
  const [phone, revoked, dead] = [new Phone(), new Phone(), new Phone()];
  let mayStay = true;
  stream.join(phone, null, always);
  stream.join(revoked, null, () => mayStay);
  stream.join(dead, null, always);
  dead.isReading = false;
  site.change("bay-01", { text: "x".repeat(500) });
  round(299);
  expect(phone.text.match(/^: alive$/gm)).toHaveLength(1);
  mayStay = false;
  round(2);
  expect([phone.writableEnded, revoked.writableEnded]).toEqual([false, true]);
  round(600);
  expect([phone.destroyed, dead.destroyed]).toEqual([false, true]);
});

test("the number of clients has a cap", () => {
  const { stream } = aStream();
  for (let client = 1; client < MAX_CLIENTS; client++) stream.join(new Phone(), null, always);
  expect(stream.isFull).toBe(false);
  stream.join(new Phone(), null, always);
  expect(stream.isFull).toBe(true);
});

test("memory depends on the objects, not on their changes", () => {
  const { site, stream } = aStream();
  stream.join(new Phone(), null, always);
  for (let n = 0; n < 5000; n++) {
    site.change(`bay-${n % 3}`, { n });
    round();
  }
  expect(stream.kept).toBeLessThan(1100);
});
