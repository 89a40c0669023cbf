import { Client } from "pg";
import { pino } from "pino";
import { describe, expect, onTestFinished, test } from "vitest";

import { Announcements } from "../../../src/store/postgres/announcements.ts";
import { Gate } from "../../support/aGate.ts";
import { postgresMissing } from "../../support/postgres.ts";
import { waitFor } from "../../support/waitFor.ts";
import { aCluster } from "./state.ts";

describe.skipIf(postgresMissing() !== null)("the connection for announcements", () => {
  const cluster = aCluster();

  /** The server has its connection, and no answer of the server arrived yet. */
  async function connecting(schema: string) {
    const gate = await Gate.before(cluster().port);
    onTestFinished(() => gate[Symbol.asyncDispose]());
    await gate.open();
    gate.hold("out");
    const watching = new Client(cluster().url);
    await watching.connect();
    onTestFinished(() => watching.end());
    const open = async (): Promise<number> => {
      const sql = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'setpointd announcements'";
      return (await watching.query(sql)).rows.length;
    };
    const announcements = new Announcements(
      {
        url: () => cluster().url.replace(/:\d+\//, `:${gate.port}/`),
        schema,
        patience: 30_000,
        log: pino({ level: "silent" }),
      },
      () => {},
    );
    onTestFinished(() => announcements[Symbol.dispose]());
    await waitFor(async () => (await open()) === 1);
    return { gate, open, announcements };
  }

  test("a connection that may not listen is closed: the tries use up no connections", async () => {
    // A server refuses LISTEN while it is a replica. Here it cannot read the name of the channel.
    const { gate, open, announcements } = await connecting('no"schema');
    gate.free();
    await waitFor(async () => (await open()) === 0);
    expect(announcements.isListening).toBe(false);
  });

  test("a connection that is made only after the end of the lease is closed", async () => {
    const { gate, open, announcements } = await connecting("setpointd");
    announcements[Symbol.dispose]();
    gate.free();
    await waitFor(async () => (await open()) === 0);
    expect(announcements.isListening).toBe(false);
  });
});
