import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chownSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { dirname, join } from "node:path";
import { Client } from "pg";
import { pino } from "pino";
import { describe, expect, onTestFinished, test } from "vitest";

import type { LeaderSeen } from "../../../src/domain/leadership.ts";
import { Database } from "../../../src/store/postgres/database.ts";
import { inspect } from "../../../src/store/postgres/inspect.ts";
import { Gate } from "../../support/aGate.ts";
import { Authority } from "../../support/certificates.ts";
import { freePort } from "../../support/freePort.ts";
import { Postgres, postgresMissing, serverUser } from "../../support/postgres.ts";
import { waitFor } from "../../support/waitFor.ts";
import { aDirectory } from "../sqlite/state.ts";
import { commandRecord, NOON, row, tombstone } from "../sqlite/words.ts";
import { aCluster, aSite, openedSite } from "./state.ts";

const look = async (url: string, schema: string, site = "depot") => {
  const log = pino({ level: "silent" });
  await using database = new Database({ url: () => url, schema, patience: 5_000, log });
  return await inspect(database, schema, site, null);
};

const PGBOUNCER = "/usr/sbin/pgbouncer";

/** PgBouncer in front of a server. It refuses root, so the user of the server runs it. */
async function aPooler(mode: string, behind: number): Promise<AsyncDisposable & { readonly url: string }> {
  const file = join(aDirectory(), "pgbouncer.ini");
  const port = await freePort();
  writeFileSync(
    file,
    `[databases]
postgres = host=127.0.0.1 port=${behind} user=setpointd
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
`,
  );
  const user = serverUser();
  if (user !== null) for (const path of [dirname(file), file]) chownSync(path, user.uid, user.gid);
  const pooler = spawn(PGBOUNCER, [file], { ...user, stdio: "ignore" });
  const ended = once(pooler, "exit");
  const url = `postgres://setpointd@127.0.0.1:${port}/postgres`;
  await waitFor(async () => {
    const client = new Client(url);
    client.on("error", () => {});
    const isUp = await client.connect().then(
      () => true,
      () => false,
    );
    await client.end().catch(() => {});
    return isUp;
  });
  return {
    url,
    [Symbol.asyncDispose]: async () => {
      pooler.kill("SIGKILL");
      await ended;
    },
  };
}

describe.skipIf(postgresMissing() !== null)("PostgreSQL", () => {
  const cluster = aCluster();
  const at = (database: string, user = "setpointd") =>
    `postgres://${user}@127.0.0.1:${cluster().port}/${database}`;
  const sql = async (text: string, url = cluster().url): Promise<void> => {
    const client = new Client(url);
    await client.connect();
    await client.query(text);
    await client.end();
  };

  /** Runs a statement against the tables of a site. Returns what a verification finds then. */
  const change = async (statement: string): Promise<string> => {
    const open = openedSite(cluster);
    const directory = aDirectory();
    const first = await open({ directory });
    first.store.write([
      row("16 A"),
      { kind: "command", record: commandRecord("bay-01", 1) },
      { kind: "event", known: tombstone("EV-1") },
      row("8 A"),
    ]);
    await first.store.durable();
    const site = first.store.site;
    await sql(`SET search_path = setpointd; ${statement.replaceAll("$site", `'${site}'`)}`);
    const verified = await first.store.verify();
    await first.store[Symbol.asyncDispose]();
    return verified.ok ? "ok" : verified.reason;
  };

  test("a site has one leader: another process is refused, and leads when the first has stopped", async () => {
    const open = aSite(cluster);
    const first = await open();
    expect(await open({ process: "second" })).toMatchObject({
      ok: false,
      reason: expect.stringContaining("another setpointd leads the site depot-"),
    });
    if (!first.ok) throw new Error(first.reason);
    await first.store[Symbol.asyncDispose]();
    const second = await open({ process: "second" });
    expect(second).toMatchObject({ ok: true });
    expect(second.ok && second.epoch).toBeGreaterThan(first.epoch);
  });

  test("a stand-in waits until the leader has stopped, and loads what it left", async () => {
    const open = openedSite(cluster);
    const first = await open({ length: 300 });
    const { signal } = new AbortController();
    const second = open({ process: "second", length: 300, standBy: { signal } });
    first.store.write([{ kind: "command", record: commandRecord("bay-01", 1) }, row("16 A")]);
    await first.store[Symbol.asyncDispose]();
    const { storedState, store } = await second;
    expect(storedState.commands).toEqual([commandRecord("bay-01", 1)]);
    expect(store.head().seq).toBe(1);
  });

  test("a stand-in knows the leader, its page and a database that is away", async () => {
    const open = openedSite(cluster);
    await using gate = await Gate.before(cluster().port);
    await gate.open();
    const first = await open({ process: "gw-1 1", length: 1_500 });
    first.leadership?.begun("http://gw-1:8080");
    const stop = new AbortController();
    const seen: LeaderSeen[] = [];
    const url = () => cluster().url.replace(/:\d+\//, `:${gate.port}/`);
    const standBy = { signal: stop.signal, onSeen: (each: LeaderSeen) => void seen.push(each) };
    const second = open({ process: "second", length: 1_500, url, standBy });
    await waitFor(() => seen.at(-1)?.leader?.page === "http://gw-1:8080");
    // The clock of this machine is at noon of a fixed day in tests.
    expect(Math.abs((seen.at(-1)?.ahead ?? 0) - (NOON - Date.now()))).toBeLessThan(60_000);
    const { epoch } = first;
    expect(seen.at(-1)).toMatchObject({ fault: null, leader: { self: false, process: "gw-1 1", epoch } });
    await gate.shut();
    await waitFor(() => seen.at(-1)?.fault !== null);
    expect(seen.at(-1)?.leader?.process).toBe("gw-1 1");
    stop.abort();
    await expect(second).rejects.toThrow("stopped before");
  });

  test("a stand-in whose address is taken ends with that reason, and is not a fault of the database", async () => {
    const open = aSite(cluster);
    await open();
    const taken = Object.assign(new Error("listen EADDRINUSE"), { code: "EADDRINUSE", syscall: "listen" });
    const { signal } = new AbortController();
    const second = open({ process: "second", standBy: { signal, begin: () => Promise.reject(taken) } });
    await expect(second).rejects.toBe(taken);
  });

  test("a stand-in that is stopped ends its wait", async () => {
    const open = aSite(cluster);
    await open();
    const stop = new AbortController();
    const second = open({ process: "second", length: 300, standBy: stop });
    stop.abort();
    expect(await second).toEqual({ ok: false, reason: "stopped before this process led the site" });
  });

  test("a stand-in waits while the password of the database is changed before its file is", async () => {
    const open = openedSite(cluster);
    const first = await open({ length: 600 });
    const stop = new AbortController();
    const seen: LeaderSeen[] = [];
    let user = "setpointd";
    const second = open({
      process: "second",
      length: 600,
      url: () => at("postgres", user),
      standBy: { signal: stop.signal, onSeen: (each) => void seen.push(each) },
    });
    await waitFor(() => seen.at(-1)?.leader !== null && seen.length > 0);
    user = "nobody";
    const end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()";
    await sql(`${end} AND application_name = 'setpointd'`);
    await waitFor(() => seen.at(-1)?.fault?.includes("does not exist"));
    user = "setpointd";
    await first.store[Symbol.asyncDispose]();
    expect((await second).store.head().seq).toBe(0);
  });

  test("a stand-in waits for a database that is away at its start, and a verb is refused at once", async () => {
    const open = aSite(cluster);
    await using gate = await Gate.before(cluster().port);
    const url = () => cluster().url.replace(/:\d+\//, `:${gate.port}/`);
    expect(await open({ url })).toEqual({
      ok: false,
      reason: expect.stringMatching(
        /^state\.postgres\.url: database: .*ECONNREFUSED.*; expected the host and the port/,
      ),
    });
    const { signal } = new AbortController();
    const waiting = open({ url, length: 300, standBy: { signal } });
    await gate.open();
    expect(await waiting).toMatchObject({ ok: true });
  });

  test("where the wait ends during the first try, the database is the reason", async () => {
    await using gate = await Gate.before(cluster().port);
    const url = () => cluster().url.replace(/:\d+\//, `:${gate.port}/`);
    const standBy = { signal: AbortSignal.abort() };
    expect(await aSite(cluster)({ url, standBy })).toMatchObject({
      ok: false,
      reason: expect.stringContaining("ECONNREFUSED"),
    });
  });

  test("a schema of a newer version is refused, and stays as it is", async () => {
    const schema = "from_the_future";
    await aSite(cluster)({ schema }).then(async (opened) => opened.ok && opened.store[Symbol.asyncDispose]());
    await sql(`UPDATE ${schema}.version SET number = 99`);
    expect(await aSite(cluster)({ schema })).toEqual({
      ok: false,
      reason: expect.stringContaining("was written by a newer setpointd (schema 99"),
    });
  });

  test("a schema of an earlier version stays as it is for a verb that only looks, because its leader cannot start on a newer one", async () => {
    const schema = "from_the_past";
    const start = async () =>
      aSite(cluster)({ schema }).then(async (opened) => opened.ok && opened.store[Symbol.asyncDispose]());
    await start();
    await sql(
      `UPDATE ${schema}.version SET number = number - 1; ALTER TABLE ${schema}.site DROP COLUMN restored`,
    );
    const looks = () => aSite(cluster)({ schema, isVerb: true, older: "refuse" });
    const refused = { ok: false, reason: expect.stringContaining("was written by an older setpointd") };
    expect([await looks(), await looks()]).toEqual([refused, refused]);
    await start();
    const opened = await looks();
    expect(opened.ok).toBe(true);
    if (opened.ok) await opened.store[Symbol.asyncDispose]();
  });

  test("a check of the database names its contents, and the remedy for each fault", async () => {
    const { url, port } = cluster();
    const first = await aSite(cluster)({ schema: "looked_at", process: "gateway-1" });
    if (!first.ok) throw new Error(first.reason);
    const { site } = first.store;
    const found = [
      await look(url, "nothing_yet"),
      await look(url, "looked_at"),
      await look(url, "looked_at", site),
    ];
    await first.store[Symbol.asyncDispose]();
    found.push(await look(url, "looked_at", site));
    expect(found).toEqual([
      { ok: true, found: "the database answers; the schema nothing_yet is made at the first start" },
      { ok: true, found: "the database answers; the site depot is new there" },
      { ok: true, found: `the database answers; gateway-1 leads the site ${site} with epoch ${first.epoch}` },
      { ok: true, found: `the database answers; no process leads the site ${site}` },
    ]);
    await sql("UPDATE looked_at.version SET number = 99");
    const wrong = [
      await look(url, "looked_at"),
      await look(`postgres://someone@127.0.0.1:${port}/postgres`, "looked_at"),
      await look(`postgres://setpointd@127.0.0.1:${port}/nothing`, "looked_at"),
      await look("postgres://setpointd@127.0.0.1:1/postgres", "looked_at"),
    ];
    expect(wrong.map((each) => !each.ok && each.expected.slice(0, 22))).toEqual([
      "the newest version of ",
      "the user and the passw",
      "the name of an existin",
      "the host and the port ",
    ]);
  });

  test("a database that cannot store every name is refused before anything is made there", async () => {
    await sql("CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
    const opened = await aSite(cluster)({ url: () => at("latin") });
    expect(opened).toEqual({
      ok: false,
      reason: expect.stringMatching(
        /^state\.postgres\.url: the encoding of this database is LATIN1.*; expected .*UTF8/,
      ),
    });
    expect(await look(at("latin"), "setpointd")).toMatchObject({
      ok: false,
      found: expect.stringContaining("LATIN1"),
    });
  });

  test("a database of a cluster in the locale C, which has no encoding of its own, stores every name", async () => {
    await sql("CREATE DATABASE plain ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
    const open = openedSite(cluster);
    const place = { url: () => at("plain"), directory: aDirectory() };
    const name = "Bus 214 nördlich 車庫 \u{1F68C}";
    const first = await open(place);
    first.store.write([row(name)]);
    await first.store.durable();
    await first.store[Symbol.asyncDispose]();
    const again = await open(place);
    expect((await again.store.audit({})).map(({ words }) => words)).toEqual([name]);
    expect(await again.store.verify()).toMatchObject({ ok: true });
    expect(await look(at("plain"), "setpointd")).toMatchObject({ ok: true });
  });

  test("a user without the right to make a schema uses the one that was made for it, and a check names what it lacks", async () => {
    await sql("CREATE ROLE guest LOGIN");
    await sql("CREATE DATABASE theirs");
    const url = at("theirs", "guest");
    const open = () => aSite(cluster)({ url: () => url, schema: "depots" });
    expect(await look(url, "depots")).toMatchObject({
      ok: false,
      found: "this user may not write in the schema depots",
    });
    await sql("CREATE SCHEMA depots", at("theirs"));
    expect(await look(url, "depots")).toMatchObject({ ok: false });
    expect(await open()).toMatchObject({
      ok: false,
      reason: expect.stringContaining("GRANT USAGE, CREATE ON SCHEMA"),
    });
    await sql("GRANT USAGE, CREATE ON SCHEMA depots TO guest", at("theirs"));
    expect(await look(url, "depots")).toMatchObject({ ok: true });
    expect(await open()).toMatchObject({ ok: true });
    await sql("CREATE ROLE visitor LOGIN");
    await sql(
      "GRANT USAGE ON SCHEMA depots TO visitor; GRANT SELECT ON depots.version TO visitor",
      at("theirs"),
    );
    expect(await look(at("theirs", "visitor"), "depots")).toMatchObject({
      ok: false,
      expected: expect.stringContaining("the owner of the schema"),
    });
  });

  test("a server that takes no writes is named as that, by a check and by a start", async () => {
    await sql("CREATE ROLE reader LOGIN SUPERUSER");
    await sql("ALTER ROLE reader SET default_transaction_read_only = on");
    expect(await look(at("postgres", "reader"), "read_only")).toEqual({
      ok: false,
      found: "the server takes no writes: it is a replica, or writes are switched off for this user",
      expected: expect.stringContaining("the primary server"),
    });
    expect(await aSite(cluster)({ url: () => at("postgres", "reader"), schema: "read_only" })).toEqual({
      ok: false,
      reason: expect.stringMatching(/read-only transaction; expected .*primary server/),
    });
  });

  test("a server older than the documents name is used with a warning, and a check refuses it", async () => {
    const old = createServer((client) => {
      const server = connect(cluster().port, "127.0.0.1");
      for (const socket of [client, server]) socket.on("error", () => {});
      client.pipe(server);
      server.on("data", (chunk: Buffer) => {
        client.write(chunk.toString("latin1").replaceAll(/PostgreSQL \d\d/g, "PostgreSQL 12"), "latin1");
      });
      server.on("end", () => client.end());
    });
    await new Promise<void>((resolve) => old.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void old.close());
    const { port } = old.address() as AddressInfo;
    const url = cluster().url.replace(/:\d+\//, `:${port}/`);
    const lines: string[] = [];
    const log = pino({ level: "warn" }, { write: (line: string) => void lines.push(line) });
    expect(await aSite(cluster)({ url: () => url, log })).toMatchObject({ ok: true });
    expect(lines).toEqual([
      expect.stringMatching(
        /state\.postgres\.url: the server is PostgreSQL 12.*; expected PostgreSQL 15 or later/,
      ),
    ]);
    expect(await look(url, "setpointd")).toMatchObject({
      ok: false,
      expected: "PostgreSQL 15 or later",
    });
  });

  test.skipIf(!existsSync(PGBOUNCER))(
    "a pooler that lends its connections for a transaction is refused at once, one that lends them for a session is used",
    async () => {
      const found = [];
      for (const mode of ["transaction", "session"]) {
        await using pooler = await aPooler(mode, cluster().port);
        found.push((await look(pooler.url, "pooled")).ok);
        const opened = await aSite(cluster)({ url: () => pooler.url, schema: "pooled" });
        found.push(opened.ok || opened.reason);
        if (opened.ok) await opened.store[Symbol.asyncDispose]();
      }
      expect(found).toEqual([false, expect.stringContaining("pool_mode = session"), true, true]);
    },
  );

  test("two processes that start on an empty database make one schema", async () => {
    const schema = "at_once";
    const opened = await Promise.all([1, 2, 3].map(() => aSite(cluster)({ schema })));
    expect(opened.map(({ ok }) => ok)).toEqual([true, true, true]);
  });

  test("another site key, another proof key and a missing key are refused by their path", async () => {
    const open = aSite(cluster);
    const directory = aDirectory();
    const first = await open({ directory });
    if (!first.ok) throw new Error(first.reason);
    await first.store[Symbol.asyncDispose]();
    for (const name of ["proof.key", "site.key"]) {
      const path = join(directory, name);
      const right = readFileSync(path);
      writeFileSync(path, randomBytes(32));
      expect(await open({ directory })).toEqual({
        ok: false,
        reason: expect.stringContaining(`${path} is not the key that the site`),
      });
      rmSync(path);
      expect(await open({ directory })).toEqual({
        ok: false,
        reason: expect.stringContaining(`${path} is missing: put the ${name} there`),
      });
      writeFileSync(path, right);
    }
  });

  test("sslmode=verify-full: a server with a certificate of the named authority is used, any other is refused", async () => {
    using authority = new Authority();
    const { cert, key } = authority.issue("database");
    await using server = await Postgres.start(
      { ssl: "on", ssl_cert_file: "tls.pem", ssl_key_file: "tls-key.pem" },
      (data) => {
        for (const [name, from] of [
          ["tls.pem", cert],
          ["tls-key.pem", key],
        ] as const) {
          const path = join(data, name);
          writeFileSync(path, readFileSync(from), { mode: 0o600 });
          const user = serverUser();
          if (user !== null) chownSync(path, user.uid, user.gid);
        }
      },
    );
    const url = `${server.url}?sslmode=verify-full`;
    const trusted = await aSite(() => server)({ url: () => `${url}&sslrootcert=${authority.ca}` });
    expect(trusted).toMatchObject({ ok: true });
    expect(await aSite(() => server)({ url: () => url })).toEqual({
      ok: false,
      reason: expect.stringMatching(/certificate.*; expected .*sslrootcert/),
    });
    const plain = await aSite(cluster)({ url: () => `${cluster().url}?sslmode=verify-full` });
    expect(plain).toMatchObject({ ok: false, reason: expect.stringContaining("does not support SSL") });
  });

  test("a database that cannot be reached or refuses the login is named, and its password is not", async () => {
    const server = createServer((socket) => socket.destroy());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const reasonAt = async (url: string): Promise<string> => {
      const opened = await aSite(cluster)({ url: () => url });
      return opened.ok ? "" : opened.reason;
    };
    const address = server.address();
    const port = typeof address === "object" ? address?.port : 0;
    const { port: own } = cluster();
    const reasons = [
      await reasonAt("postgres://setpointd:hunter2hunter2@127.0.0.1:1/postgres"),
      await reasonAt(`postgres://setpointd:hunter2hunter2@127.0.0.1:${port}/postgres`),
      await reasonAt(`postgres://nobody-here:hunter2hunter2@127.0.0.1:${own}/postgres`),
      await reasonAt(`postgres://setpointd:hunter2hunter2@127.0.0.1:${own}/nothing`),
    ];
    expect(reasons).toEqual([
      expect.stringContaining("database: connect ECONNREFUSED 127.0.0.1:1"),
      expect.stringContaining("database: "),
      expect.stringContaining('role "nobody-here" does not exist'),
      expect.stringContaining('database "nothing" does not exist'),
    ]);
    expect(reasons.join(" ")).not.toContain("hunter2");
  });

  test("changes by another program are found: a row, a column that is searched, the head, a command", async () => {
    expect(await change("SELECT 1")).toBe("ok");
    expect(await change("UPDATE audit SET body = replace(body, '16 A', '32 A') WHERE site = $site")).toBe(
      "row 1, or the hash of the row before it, was changed",
    );
    expect(await change("UPDATE audit SET charger = 'bay-09' WHERE site = $site AND seq = 2")).toContain(
      "row 2",
    );
    expect(await change("DELETE FROM audit WHERE site = $site AND seq = 1")).toContain("row 1 is missing");
    expect(await change("DELETE FROM audit WHERE site = $site AND seq = 2")).toBe(
      "it ends at row 1, but its head says 2",
    );
    expect(
      await change(
        `INSERT INTO audit SELECT (jsonb_populate_record(a, '{"seq": -5}')).* FROM audit a WHERE site = $site AND seq = 2`,
      ),
    ).toBe("row 1 is missing: the next one is -5");
    expect(await change("UPDATE body SET body = body || ' ' WHERE site = $site AND kind = 'command'")).toBe(
      "the stored command bay-01 was changed",
    );
  });

  test("a command that another program changed is refused with the whole state; an event is shown only", async () => {
    const open = aSite(cluster);
    const first = await open();
    if (!first.ok) throw new Error(first.reason);
    first.store.write([
      { kind: "event", known: tombstone("EV-1") },
      { kind: "command", record: commandRecord("bay-01", 1) },
    ]);
    const { site } = first.store;
    await first.store[Symbol.asyncDispose]();
    const edit = (kind: string) =>
      sql(
        `UPDATE setpointd.body SET body = replace(body, '7', '8') WHERE site = '${site}' AND kind LIKE '${kind}'`,
      );
    await sql(`UPDATE setpointd.body SET body = body || ' ' WHERE site = '${site}' AND kind LIKE 'event%'`);
    const second = await open();
    if (!second.ok) throw new Error(second.reason);
    expect(second.storedState).toMatchObject({ events: [], edited: [{ id: "EV-1" }] });
    await second.store[Symbol.asyncDispose]();
    await edit("command");
    expect(await open()).toEqual({
      ok: false,
      reason: "the stored command bay-01 was edited by another program",
    });
  });
});
