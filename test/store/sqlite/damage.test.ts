import { randomInt } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

import { aDirectory, open, opened } from "./state.ts";
import { commandRecord, reportRecord, row, tombstone } from "./words.ts";

const DATABASE = "setpointd.db";
const WAL = "setpointd.db-wal";
const PAGE = 4096;

/** In [0, 1), the same for the same seed: mulberry32. */
function chances(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A state with some of everything, half of it in the log, as a kill -9 leaves it. */
async function written(): Promise<ReadonlyMap<string, Buffer>> {
  const directory = aDirectory();
  for (const part of [1, 2]) {
    const { store } = opened(directory);
    for (let n = 0; n < 40; n += 1) {
      const id = `${part}-${n}`;
      store.write([
        row(`row ${id} ${"x".repeat(300)}`, { facts: { n } }),
        { kind: "command", record: commandRecord(`bay-${id}`, n) },
        { kind: "event", known: tombstone(`EV-${id}`) },
        { kind: "report", record: reportRecord(`EV-${id}/0/0`), body: "{}" },
      ]);
      expect(await store.durable()).toEqual({ ok: true });
    }
    if (part === 1) store[Symbol.dispose]();
  }
  const names = readdirSync(directory).filter((name) => name !== "lock");
  return new Map(names.map((name) => [name, readFileSync(join(directory, name))]));
}

type Damage = (files: Map<string, Buffer>, chance: () => number) => string;

const changed =
  (file: string, how: (bytes: Buffer, at: number, chance: () => number) => Buffer): Damage =>
  (files, chance) => {
    const bytes = Buffer.from(files.get(file) ?? Buffer.alloc(0));
    const at = Math.floor(chance() * bytes.length);
    files.set(file, how(bytes, at, chance));
    return `${file} at ${at}`;
  };

const flipped = (bytes: Buffer, at: number, chance: () => number): Buffer => {
  bytes.writeUInt8(bytes.readUInt8(at) ^ (1 << Math.floor(chance() * 8)), at);
  return bytes;
};
const cutOff = (bytes: Buffer, at: number): Buffer => bytes.subarray(0, at);
const zeroed = (bytes: Buffer, at: number, chance: () => number): Buffer => {
  const from = at - (at % PAGE);
  return bytes.fill(0, from, Math.min(bytes.length, from + PAGE * (1 + Math.floor(chance() * 3))));
};
/** Sectors that never reached the disk although later ones did. */
const torn = (bytes: Buffer, at: number, chance: () => number): Buffer => {
  const from = at - (at % 512);
  return bytes.fill(
    Math.floor(chance() * 256),
    from,
    Math.min(bytes.length, from + 512 * (1 + Math.floor(chance() * 8))),
  );
};
const gone =
  (file: string): Damage =>
  (files) => {
    files.delete(file);
    return `${file} gone`;
  };

const DAMAGES: Readonly<Record<string, readonly [number, readonly Damage[]]>> = {
  "a flipped bit": [120, [changed(DATABASE, flipped), changed(WAL, flipped)]],
  truncation: [60, [changed(DATABASE, cutOff), changed(WAL, cutOff)]],
  "zeroed pages": [60, [changed(DATABASE, zeroed), changed(WAL, zeroed)]],
  "torn writes": [60, [changed(WAL, torn), changed(DATABASE, torn)]],
  "files that are gone": [6, [gone(WAL), gone(DATABASE), gone("head")]],
};

test.for(Object.entries(DAMAGES))(
  "%s: the state opens as it was or is set aside whole, key and epoch stay, and the fresh one works (F03, F04)",
  async ([name, [variants, damages]]) => {
    const seed = randomInt(1e9);
    console.log(`${name}: seed ${seed}`);
    const chance = chances(seed);
    const good = await written();
    const counts = { whole: 0, setAside: 0 };
    for (let variant = 0; variant < variants; variant += 1) {
      const files = new Map(good);
      const damage = damages[variant % damages.length];
      const what = `seed ${seed}, variant ${variant}: ${damage?.(files, chance) ?? ""}`;
      const directory = aDirectory();
      for (const [file, bytes] of files) writeFileSync(join(directory, file), bytes);
      const state = open(directory);
      if (!state.ok) throw new Error(`${what}: ${state.reason}`);
      using store = state.store;
      counts[state.setAside === null ? "whole" : "setAside"] += 1;
      expect(state.siteKey, what).toEqual(good.get("site.key"));
      expect(state.epoch, what).toBeGreaterThan(Number.parseInt(good.get("epoch")?.toString() ?? "", 10));
      if (state.setAside === null) {
        // Nothing of what is acted on may differ, whatever was hit; the record may be damaged far back.
        expect(state.storedState.commands.length, what).toBe(80);
        expect(state.storedState.events.length, what).toBe(80);
        expect(state.storedState.commands, what).toContainEqual(commandRecord("bay-2-39", 39));
      } else {
        const kept = readdirSync(state.setAside);
        for (const file of [DATABASE, WAL, "head"]) if (files.has(file)) expect(kept, what).toContain(file);
        const log = files.get(WAL);
        if (log !== undefined) expect(readFileSync(join(state.setAside, WAL)).equals(log), what).toBe(true);
      }
      store.write([row("goes on")]);
      expect(await store.durable(), what).toEqual({ ok: true });
    }
    console.log(`${name}: ${JSON.stringify(counts)}`);
    expect(counts.setAside).toBeGreaterThan(0);
  },
);
