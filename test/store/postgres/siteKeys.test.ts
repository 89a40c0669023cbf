import { randomBytes } from "node:crypto";
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { pino } from "pino";
import { describe, expect, test } from "vitest";

import { Database } from "../../../src/store/postgres/database.ts";
import { inspect } from "../../../src/store/postgres/inspect.ts";
import { postgresMissing } from "../../support/postgres.ts";
import { aDirectory } from "../sqlite/state.ts";
import { row } from "../sqlite/words.ts";
import { aCluster, aSite, type NewProcess } from "./state.ts";

/** Opens the site and closes it. A text: the reason why it cannot be opened. */
const opening = async (
  open: NewProcess,
  operatorKeys: readonly Buffer[] | null,
  directory = aDirectory(),
): Promise<{ readonly site: string; readonly siteKey: Buffer; readonly der: Buffer } | string> => {
  const opened = await open({ directory, siteKeys: operatorKeys === null ? null : () => operatorKeys });
  if (!opened.ok) return opened.reason;
  const { store, siteKey } = opened;
  store.write([row("1")]);
  await store.durable();
  await store[Symbol.asyncDispose]();
  return { site: store.site, siteKey, der: store.proofKey.export({ format: "der", type: "pkcs8" }) };
};
const opened = async (...args: Parameters<typeof opening>) => {
  const found = await opening(...args);
  if (typeof found === "string") throw new Error(found);
  return found;
};

describe.skipIf(postgresMissing() !== null)("keys of a site in PostgreSQL", () => {
  const cluster = aCluster();
  const sql = async (text: string): Promise<readonly Record<string, unknown>[]> => {
    const client = new Client(cluster().url);
    await client.connect();
    const { rows } = await client.query(text);
    await client.end();
    return rows;
  };
  const [old, newest] = [randomBytes(32), randomBytes(32)];

  test("the first process makes them, every other reads them, and no file and no column has them in clear", async () => {
    const open = aSite(cluster);
    const directory = join(aDirectory(), "state");
    const first = await opened(open, [old], directory);
    // Sockets and users are there.
    expect(existsSync(directory)).toBe(true);
    expect(existsSync(join(directory, "site.key"))).toBe(false);
    expect(existsSync(join(directory, "proof.key"))).toBe(false);
    expect(await opened(open, [old])).toEqual(first);
    const stored = JSON.stringify(await sql("SELECT * FROM setpointd.site"));
    for (const key of [first.siteKey, first.der.subarray(-32)])
      for (const form of ["hex", "base64"] as const) expect(stored).not.toContain(key.toString(form));
  });

  test("a key that was read keeps no memory but its own: a process of a fleet has thousands", async () => {
    const open = aSite(cluster);
    await opened(open, [old]);
    const { siteKey } = await opened(open, [old]);
    expect(siteKey.buffer.byteLength).toBe(32);
  });

  test("processes that start on a new site at once have the same keys", async () => {
    const open = aSite(cluster);
    const { signal } = new AbortController();
    const starting = () =>
      open({ directory: aDirectory(), siteKeys: () => [old], length: 3_000, standBy: { signal } });
    const all = [starting(), starting(), starting()];
    const keys = new Set<string>();
    for (const each of await Promise.all(
      all.map((one) =>
        one.then(async (found) => {
          if (!found.ok) throw new Error(found.reason);
          await found.store[Symbol.asyncDispose]();
          return found.siteKey.toString("hex");
        }),
      ),
    ))
      keys.add(each);
    expect(keys.size).toBe(1);
  });

  test("another key of the operator is refused by its SHA-256, by a start and by a look", async () => {
    const open = aSite(cluster);
    const { site } = await opened(open, [old]);
    const reason = expect.stringMatching(
      /^the keys of the site depot-\S+ are encrypted with another key of the operator: the SHA-256 of siteKeys begins with [0-9a-f]{8}, that of the right key with [0-9a-f]{8}$/,
    );
    expect(await opening(open, [newest])).toEqual(reason);
    const { url } = cluster();
    const log = pino({ level: "silent" });
    await using database = new Database({
      url: () => url,
      schema: "setpointd",
      patience: 5_000,
      log,
    });
    expect(await inspect(database, "setpointd", site, [newest])).toEqual({
      ok: false,
      found: reason,
      expected: expect.stringContaining("state.postgres.siteKeys"),
    });
    expect(await inspect(database, "setpointd", site, [old])).toMatchObject({ ok: true });
    expect(await opening(open, null)).toMatch(
      /site\.key is missing: .* or name the key of the operator in state\.postgres\.siteKeys/,
    );
  });

  test("a rotation: with both keys every process opens the site, and afterwards the newest alone does", async () => {
    const open = aSite(cluster);
    const first = await opened(open, [old]);
    expect(await opened(open, [old, newest])).toEqual(first);
    expect(await opened(open, [old])).toEqual(first);
    expect(await opened(open, [newest, old])).toEqual(first);
    expect(await opened(open, [newest])).toEqual(first);
    expect(await opening(open, [old])).toContain("encrypted with another key of the operator");
  });

  test("keys that were files move into the database, and other files are refused", async () => {
    const open = aSite(cluster);
    const directory = aDirectory();
    const first = await opened(open, null, directory);
    expect(await opening(open, [old])).toContain("site.key is missing");
    const other = aDirectory();
    await opened(aSite(cluster), null, other);
    expect(await opening(open, [old], other)).toContain("site.key is not the key that the site");
    expect(await opened(open, [old], directory)).toEqual(first);
    for (const name of ["site.key", "proof.key"]) rmSync(join(directory, name));
    expect(await opened(open, [old], directory)).toEqual(first);
  });

  test("keys of another site in the row are refused", async () => {
    const [open, another] = [aSite(cluster), aSite(cluster)];
    const [{ site }, from] = [await opened(open, [old]), await opened(another, [old])];
    await sql(
      `UPDATE setpointd.site SET keys = (SELECT keys FROM setpointd.site WHERE id = '${from.site}') WHERE id = '${site}'`,
    );
    expect(await opening(open, [old])).toContain("were changed by another program");
  });
});
