import { describe, expect, test } from "vitest";

import { postgresMissing } from "../../support/postgres.ts";
import { aFleetOf } from "./fleetRows.ts";
import { aCluster } from "./state.ts";

const put = (site: string) => ({ site, file: "{}", vehicles: [`bus of ${site}`] });
const states = { chargers: 2, live: 1, alarms: 0, worst: null };

describe.skipIf(postgresMissing() !== null)("the list of the sites of a fleet", () => {
  const cluster = aCluster();

  test("each page begins behind the last site of the page before, and a text narrows by site or by leader", async () => {
    const { list, sites, process } = await aFleetOf(cluster());
    await sites.put(["a-1", "a-2", "b-1", "b-2", "c_%"].map(put));
    const ids = async (query: Parameters<typeof list.list>[0]) =>
      (await list.list(query)).map(({ site }) => site);
    expect(await ids({ limit: 2 })).toEqual(["a-1", "a-2"]);
    expect(await ids({ limit: 2, after: "a-2" })).toEqual(["b-1", "b-2"]);
    expect(await ids({ limit: 2, after: "b-2" })).toEqual(["c_%"]);
    expect(await ids({ text: "B-" })).toEqual(["b-1", "b-2"]);
    expect(await ids({ text: "_%" })).toEqual(["c_%"]);
    expect(await ids({ text: "worker" })).toEqual([]);
    const { work } = process("Worker 1");
    await work.alive({ most: 10, room: 8, page: "https://one.example" });
    await work.take(2);
    expect(await ids({ text: "worker" })).toEqual(["a-1", "a-2"]);
    expect(await ids({ text: "worker", after: "a-1" })).toEqual(["a-2"]);
    expect(await ids({ state: "unled" })).toEqual(["b-1", "b-2", "c_%"]);
    expect((await list.list({ limit: 3 })).map(({ page }) => page)).toEqual([
      "https://one.example",
      "https://one.example",
      null,
    ]);
  });

  test("a site shows the state that its leader reported last, and counts while it has open alarms", async () => {
    const { list, sites, sql } = await aFleetOf(cluster());
    await sites.put(["a", "b", "c"].map(put));
    await list.report([]);
    await list.report([
      { site: "a", epoch: 7, ...states, alarms: 3, worst: "critical" },
      { site: "b", epoch: 7, ...states },
    ]);
    expect(await list.list()).toMatchObject([
      { site: "a", vehicles: 1, state: { chargers: 2, live: 1, alarms: 3, worst: "critical" } },
      { site: "b", state: { alarms: 0, worst: null, at: expect.stringMatching(/^\d{4}-.*Z$/) } },
      { site: "c", state: null },
    ]);
    expect((await list.list({ state: "alarms" })).map(({ site }) => site)).toEqual(["a"]);
    expect(await list.counts()).toEqual({ sites: 3, unled: 3, alarms: 1 });
    // A leader that was frozen wakes up in an old term.
    await list.report([{ site: "a", epoch: 6, ...states }]);
    expect((await list.list({ state: "alarms" })).map(({ site }) => site)).toEqual(["a"]);
    await sql("UPDATE fleet_state SET at = at - interval '1 hour'");
    const [before] = await list.list({ limit: 1 });
    await list.report([{ site: "a", epoch: 8, ...states, live: 2 }]);
    const [after] = await list.list({ limit: 1 });
    expect(after?.state).toMatchObject({ live: 2, alarms: 0 });
    expect(Date.parse(after?.state?.at ?? "")).toBeGreaterThan(Date.parse(before?.state?.at ?? ""));
    await sites.remove("a");
    expect(await list.counts()).toMatchObject({ sites: 2, alarms: 0 });
  });
});
