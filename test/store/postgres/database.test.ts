import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { describe, expect, onTestFinished, test } from "vitest";

import {
  Database,
  faultOf,
  isOfDatabase,
  isPassing,
  isRefusal,
} from "../../../src/store/postgres/database.ts";
import { migrate } from "../../../src/store/postgres/schema.ts";
import { postgresMissing } from "../../support/postgres.ts";
import { waitFor } from "../../support/waitFor.ts";
import { aCluster } from "./state.ts";

const backends = async (database: Database, count: number): Promise<number> => {
  const rows = await Promise.all(
    Array.from({ length: count }, () => database.query("SELECT pg_backend_pid() AS pid, pg_sleep(0.05)")),
  );
  return new Set(rows.map(([row]) => row?.["pid"])).size;
};

describe.skipIf(postgresMissing() !== null)("connections to PostgreSQL", () => {
  const cluster = aCluster();
  const connect = (connections?: number) =>
    new Database({
      url: () => cluster().url,
      schema: "public",
      patience: 10_000,
      log: pino({ level: "silent" }),
      ...(connections === undefined ? {} : { connections }),
    });

  test("as many connections are used as were asked for, four unless told", async () => {
    await using few = connect(2);
    await using usual = connect();
    expect([await backends(few, 12), await backends(usual, 12)]).toEqual([2, 4]);
  });

  test("a site of many uses the connections of all, and leaves them open when it ends", async () => {
    await using all = connect(2);
    const site = all.borrow();
    await Promise.all([backends(site, 6), backends(all, 6)]);
    const [row] = await all.query(
      "SELECT count(*) AS open FROM pg_stat_activity WHERE application_name = 'setpointd'",
    );
    expect(row?.["open"]).toBe(2);
    await site[Symbol.asyncDispose]();
    expect(await all.query("SELECT 1 AS one")).toEqual([{ one: 1 }]);
    expect(await site.borrow().query("SELECT 2 AS two")).toEqual([{ two: 2 }]);
  });

  test("what is asked after the connections are closed is refused as by a database, and nobody waits for it", async () => {
    const database = connect();
    await database.answer();
    await database[Symbol.asyncDispose]();
    const error: unknown = await database.answer().catch((thrown: unknown) => thrown);
    expect([isOfDatabase(error), isPassing(error), faultOf(error).reason]).toEqual([
      true,
      false,
      "database: the connections are closed: this process stops, or leads no more",
    ]);
  });

  test("a new password, or a new address, in the file of the secret is used by the next connection", async () => {
    let url = "postgres://setpointd@127.0.0.1:1/none";
    await using database = new Database({
      url: () => url,
      schema: "public",
      patience: 10_000,
      log: pino({ level: "silent" }),
    });
    await expect(database.answer()).rejects.toThrow("ECONNREFUSED");
    url = cluster().url;
    await waitFor(() =>
      database.answer().then(
        () => true,
        () => false,
      ),
    );
  });

  test("the user and the address change neither the schema, nor when a commit counts, nor how statements wait", async () => {
    await using admin = connect();
    await admin.query("CREATE ROLE odd LOGIN");
    const odd = {
      default_transaction_isolation: "'repeatable read'",
      synchronous_commit: "off",
      search_path: "pg_catalog",
      statement_timeout: 1,
    };
    for (const [name, value] of Object.entries(odd))
      await admin.query(`ALTER ROLE odd SET ${name} = ${value}`);
    await using database = new Database({
      url: () => `${cluster().url.replace("setpointd@", "odd@")}?options=-c%20geqo%3Doff`,
      schema: "own",
      patience: 10_000,
      log: pino({ level: "silent" }),
    });
    const names = [...Object.keys(odd), "geqo"];
    const found = await database.query(
      `SELECT ${names.map((name) => `current_setting('${name}') AS ${name}`).join(", ")}`,
    );
    expect(found).toEqual([
      {
        default_transaction_isolation: "read committed",
        synchronous_commit: "on",
        search_path: "own",
        statement_timeout: "10s",
        geqo: "off",
      },
    ]);
  });

  test("a change of the schema may take longer than any other statement", async () => {
    await using database = new Database({
      url: () => cluster().url,
      schema: "slow",
      patience: 200,
      log: pino({ level: "silent" }),
    });
    await expect(database.query("SELECT pg_sleep(1)")).rejects.toThrow("timeout");
    expect(await migrate(database, "slow", ["SELECT pg_sleep(1)"])).toBeNull();
    // The connection has its own timeout again.
    await expect(database.query("SELECT pg_sleep(1)")).rejects.toThrow("timeout");
  });

  test("two statements that wait for each other: the one that the server ends may succeed later", async () => {
    await using database = connect(2);
    await database.query("CREATE TABLE ordered (n integer PRIMARY KEY)");
    await database.query("INSERT INTO ordered VALUES (1), (2)");
    const locked = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const locking = (first: number, second: number) =>
      database.transaction(async (query) => {
        const lock = (n: number) => query("SELECT n FROM ordered WHERE n = $1 FOR UPDATE", [n]);
        await lock(first);
        locked[first - 1]?.resolve();
        await Promise.all(locked.map(({ promise }) => promise));
        await lock(second);
      });
    const ended = await Promise.allSettled([locking(1, 2), locking(2, 1)]);
    const errors = ended.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
    expect(errors.map((error) => [error.code, isPassing(error)])).toEqual([["40P01", true]]);
  });

  test("a user, a database or a table that is refused is no bug, and does not pass by itself", async () => {
    const cases = [
      { path: "?user=nobody", sql: "SELECT 1", code: "28000", isRefused: true },
      { path: "-away", sql: "SELECT 1", code: "3D000", isRefused: true },
      { path: "", sql: "SELECT 1 FROM away", code: "42P01", isRefused: true },
      { path: "", sql: "SELECT 1 +", code: "42601", isRefused: false },
    ];
    for (const { path, sql, code, isRefused } of cases) {
      const url = () => `${cluster().url}${path}`;
      const log = pino({ level: "silent" });
      await using database = new Database({ url, schema: "public", patience: 10_000, log });
      const error = await database.query(sql).catch((refused: Error) => refused);
      expect([error, isRefusal(error), isPassing(error)]).toEqual([
        expect.objectContaining({ code }),
        isRefused,
        false,
      ]);
    }
  });

  test("of a transaction all statements count, or none, and its connection serves others afterwards", async () => {
    await using database = connect(1);
    await database.query("CREATE TABLE counted (n integer)");
    await expect(
      database.transaction(async (query) => {
        await query("INSERT INTO counted VALUES (1)");
        throw new Error("changed its mind");
      }),
    ).rejects.toThrow("changed its mind");
    expect(await database.query("SELECT n FROM counted")).toEqual([]);
    await database.transaction((query) => query("INSERT INTO counted VALUES (2)"));
    expect(await database.query("SELECT n FROM counted")).toEqual([{ n: 2 }]);
  });

  test("a connection that breaks between two statements of a transaction fails that transaction and nothing else", async () => {
    await using database = connect(2);
    const broken = database.transaction(async (query) => {
      const [own] = await query("SELECT pg_backend_pid() AS pid");
      await database.query("SELECT pg_terminate_backend($1)", [own?.["pid"]]);
      await waitFor(async () => {
        const open = await database.query("SELECT 1 FROM pg_stat_activity WHERE pid = $1", [own?.["pid"]]);
        return open.length === 0;
      });
      await query("SELECT 1");
    });
    await expect(broken).rejects.toSatisfy(isOfDatabase);
    expect(await database.query("SELECT 2 AS two")).toEqual([{ two: 2 }]);
  });
});

test("a bug, a file that cannot be read and a wrong argument are no errors of the database", async () => {
  const path = join(tmpdir(), "no such file");
  for (const work of [
    async () => String(Reflect.get(JSON.parse("null"), "key")),
    async () => readFileSync(path),
    async () => Buffer.from(1 as never),
  ])
    await expect(work()).rejects.toSatisfy(
      (error) => !isOfDatabase(error) && !faultOf(error).reason.startsWith("database:"),
    );
  await using unknown = new Database({
    url: () => "postgres://setpointd@none.invalid:1/none",
    schema: "public",
    patience: 10_000,
    log: pino({ level: "silent" }),
  });
  await expect(unknown.answer()).rejects.toSatisfy(
    (error) => isOfDatabase(error) && faultOf(error).reason.startsWith("database: "),
  );
});

/** Connections to a server that treats each socket so. */
async function databaseAt(onSocket: (socket: Socket) => void): Promise<Database> {
  const server = createServer(onSocket);
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => void server.close());
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("it listens on no port");
  return new Database({
    url: () => `postgres://setpointd@127.0.0.1:${address.port}/none`,
    schema: "public",
    patience: 10_000,
    connections: 4,
    log: pino({ level: "silent" }),
  });
}

/** A message of the server. */
const serverMessage = (type: string, body: string): Buffer => {
  const length = Buffer.alloc(4);
  length.writeInt32BE(4 + Buffer.byteLength(body));
  return Buffer.concat([Buffer.from(type), length, Buffer.from(body)]);
};

test("a connection that the server ends in the moment in which it opens fails its statement, and ends no process", async () => {
  const ended = "SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0";
  await using database = await databaseAt((socket) => {
    const opened = [serverMessage("R", "\0\0\0\0"), serverMessage("Z", "I"), serverMessage("E", ended)];
    socket.once("data", () => socket.end(Buffer.concat(opened)));
  });
  await expect(database.answer()).rejects.toSatisfy(isOfDatabase);
});

test("while the database refuses connections, many statements share the failure of a few, and later ones try again", async () => {
  let attempts = 0;
  await using database = await databaseAt((socket) => {
    attempts += 1;
    socket.destroy();
  });
  const failed = await Promise.allSettled(Array.from({ length: 1_000 }, () => database.answer()));
  expect(failed.filter((each) => each.status === "rejected" && isOfDatabase(each.reason))).toHaveLength(
    1_000,
  );
  expect(attempts).toBeLessThanOrEqual(4);
  const before = attempts;
  await waitFor(async () => {
    await database.answer().catch(() => undefined);
    return attempts > before;
  });
});

test("connections that end before their first statement count as refused, and never as open", async () => {
  let attempts = 0;
  await using database = await databaseAt((socket) => {
    attempts += 1;
    socket.once("data", () => {
      socket.write(Buffer.concat([serverMessage("R", "\0\0\0\0"), serverMessage("Z", "I")]));
      socket.once("data", () => socket.destroy());
    });
  });
  const failed = await Promise.allSettled(Array.from({ length: 1_000 }, () => database.answer()));
  expect(failed.every((each) => each.status === "rejected" && isOfDatabase(each.reason))).toBe(true);
  expect(attempts).toBeLessThanOrEqual(4);
});
